// Checkpoints on disk for tests: safetensors files with tensors whose bytes are known. Written with
// nothing of the project's own, so that it does not read what it wrote by its own rules.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace wc::abi {

struct FileTensor {
  std::string name;
  std::string dtype = "F32";
  std::vector<std::int64_t> shape = {};
  std::string bytes = {};
};

/// A tensor of bytes that depend on its name, its length and `seed`.
inline FileTensor u8_tensor(const std::string& name, std::int64_t bytes, unsigned seed = 0) {
  FileTensor tensor{name, "U8", {bytes}, std::string(static_cast<std::size_t>(bytes), '\0')};
  std::uint32_t state = seed * 2654435761U + 1;
  for (const char letter : name) state = (state ^ static_cast<unsigned char>(letter)) * 16777619U;
  for (char& byte : tensor.bytes) {
    state = state * 1664525U + 1013904223U;
    byte = static_cast<char>(state >> 24U);
  }
  return tensor;
}

inline std::string joined(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (const std::int64_t dimension : shape)
    text += (text.empty() ? "" : ",") + std::to_string(dimension);
  return text;
}

/// The file's bytes; `metadata` is the value of "__metadata__", empty: none.
inline std::string safetensors(const std::vector<FileTensor>& tensors,
                               const std::string& metadata = {}) {
  std::string header = metadata.empty() ? "{" : "{\"__metadata__\":" + metadata;
  std::string data;
  for (const FileTensor& tensor : tensors) {
    if (header.size() > 1) header += ",";
    header += "\"" + tensor.name + "\":{\"dtype\":\"" + tensor.dtype + "\",\"shape\":[" +
              joined(tensor.shape) + "],\"data_offsets\":[" + std::to_string(data.size()) + "," +
              std::to_string(data.size() + tensor.bytes.size()) + "]}";
    data += tensor.bytes;
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string file(8, '\0');
  for (unsigned i = 0; i < 8; ++i) file[i] = static_cast<char>(header.size() >> (8 * i));
  return file + header + data;
}

inline void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!file.good()) ADD_FAILURE() << "write " << path;
}

/// Overwrites one byte of a file with another, in place.
inline void flip_byte(const std::string& path, std::uint64_t offset) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekg(static_cast<std::streamoff>(offset));
  const int byte = file.get();
  file.seekp(static_cast<std::streamoff>(offset));
  file.put(static_cast<char>(byte ^ 0xff));
  if (!file.good()) ADD_FAILURE() << "flip a byte of " << path;
}

/// `shards` files with `per_shard` tensors each ("t0.0", "t0.1", ...), and their index.
inline void write_sharded(const std::string& folder, unsigned shards, unsigned per_shard,
                          std::int64_t tensor_bytes, unsigned seed = 0) {
  std::string map;
  for (unsigned shard = 0; shard < shards; ++shard) {
    std::vector<FileTensor> tensors;
    const std::string file = "model-" + std::to_string(shard) + ".safetensors";
    for (unsigned i = 0; i < per_shard; ++i) {
      const std::string name = "t" + std::to_string(shard) + "." + std::to_string(i);
      tensors.push_back(u8_tensor(name, tensor_bytes, seed));
      map += (map.empty() ? "\"" : ",\"") + name + "\":\"" + file + "\"";
    }
    write_file(folder + "/" + file, safetensors(tensors, "{\"format\":\"pt\"}"));
  }
  write_file(folder + "/model.safetensors.index.json", "{\"weight_map\":{" + map + "}}");
}

}  // namespace wc::abi
