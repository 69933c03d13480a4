// Small checkpoints for tests, and large ones for benchmarks: valid by default, every byte of a
// tensor known from its name. What must be invalid is written by hand, by whoever tests it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace wc::support {

struct MadeTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::string dtype = "U8";
  std::uint64_t element_bytes = 1;

  [[nodiscard]] std::uint64_t bytes() const {
    std::uint64_t product = element_bytes;
    for (const auto dimension : shape) product *= static_cast<std::uint64_t>(dimension);
    return product;
  }
};

struct MadeShard {
  std::string name = "model.safetensors";
  std::vector<MadeTensor> tensors;
  std::uint64_t header_spaces = 0;  // behind the JSON: moves the data's start
  std::string metadata = {};        // the object of `__metadata__`, as JSON
};

/// A tensor of so many bytes.
[[nodiscard]] inline MadeTensor made_tensor(std::string name, std::uint64_t bytes) {
  return {.name = std::move(name), .shape = {static_cast<std::int64_t>(bytes)}};
}

/// The bytes of a tensor from `offset` on: no two tensors have the same, nor two stretches of one.
inline void tensor_bytes(std::string_view name, std::uint64_t offset, std::byte* to,
                         std::uint64_t bytes) {
  std::uint64_t seed = 0xCBF29CE484222325U;
  for (const char letter : name) {
    seed = (seed ^ static_cast<unsigned char>(letter)) * 0x100000001B3U;
  }
  const auto word_at = [&](std::uint64_t index) {
    std::uint64_t mixed = seed + index * 0x9E3779B97F4A7C15U;
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9U;
    return mixed ^ (mixed >> 27);
  };
  while (bytes > 0) {
    const std::uint64_t word = word_at(offset / 8);
    const std::uint64_t skip = offset % 8;
    const std::uint64_t take = std::min<std::uint64_t>(8 - skip, bytes);
    std::array<std::byte, 8> raw = {};
    std::memcpy(raw.data(), &word, 8);
    std::memcpy(to, raw.data() + skip, take);
    to += take;
    offset += take;
    bytes -= take;
  }
}

[[nodiscard]] inline std::vector<std::byte> tensor_bytes(const MadeTensor& tensor) {
  std::vector<std::byte> bytes(tensor.bytes());
  tensor_bytes(tensor.name, 0, bytes.data(), bytes.size());
  return bytes;
}

/// The JSON header of a shard, unpadded.
[[nodiscard]] inline std::string header_of(const MadeShard& shard) {
  std::string json = "{";
  if (!shard.metadata.empty()) json += format("\"__metadata__\":{},", shard.metadata);
  std::uint64_t offset = 0;
  for (const MadeTensor& tensor : shard.tensors) {
    std::string shape;
    for (const auto dimension : tensor.shape)
      shape += format("{}{}", shape.empty() ? "" : ",", dimension);
    json += format("\"{}\":{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}},",
                   tensor.name, tensor.dtype, shape, offset, offset + tensor.bytes());
    offset += tensor.bytes();
  }
  if (json.back() == ',') json.pop_back();
  return json + "}" + std::string(shard.header_spaces, ' ');
}

/// Writes one file. Returns its size.
inline std::uint64_t write_shard(const std::filesystem::path& folder, const MadeShard& shard) {
  std::ofstream out(folder / shard.name, std::ios::binary | std::ios::trunc);
  const std::string header = header_of(shard);
  const std::uint64_t length = header.size();  // little-endian, as the machines that this runs on
  out.write(reinterpret_cast<const char*>(&length), sizeof length);
  out.write(header.data(), static_cast<std::streamsize>(header.size()));
  constexpr std::uint64_t kPiece = std::uint64_t{1} << 20;
  std::vector<std::byte> piece;
  std::uint64_t size = sizeof length + header.size();
  for (const MadeTensor& tensor : shard.tensors) {
    for (std::uint64_t at = 0; at < tensor.bytes(); at += piece.size()) {
      piece.resize(std::min(kPiece, tensor.bytes() - at));
      tensor_bytes(tensor.name, at, piece.data(), piece.size());
      out.write(reinterpret_cast<const char*>(piece.data()),
                static_cast<std::streamsize>(piece.size()));
    }
    size += tensor.bytes();
  }
  if (!out.good()) ADD_FAILURE() << "write " << shard.name;
  return size;
}

/// Writes the shards, and the index where there are several. Returns the folder's name.
inline std::string write_checkpoint(const std::filesystem::path& folder,
                                    const std::vector<MadeShard>& shards) {
  std::filesystem::create_directories(folder);
  std::string map;
  for (const MadeShard& shard : shards) {
    write_shard(folder, shard);
    for (const MadeTensor& tensor : shard.tensors) {
      map += format("{}\"{}\":\"{}\"", map.empty() ? "" : ",", tensor.name, shard.name);
    }
  }
  if (shards.size() > 1) {
    std::ofstream out(folder / "model.safetensors.index.json", std::ios::binary);
    const std::string json = format("{{\"metadata\":{{}},\"weight_map\":{{{}}}}}", map);
    out.write(json.data(), static_cast<std::streamsize>(json.size()));
    if (!out.good()) ADD_FAILURE() << "write the index";
  }
  return folder.string();
}

}  // namespace wc::support
