// Rule 26: reading a header of N bytes takes 32 N of memory at most, whatever the header holds.
// This program counts every allocation, those of simdjson's library too.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <string>

#include <gtest/gtest.h>
#include <malloc.h>

#include "checkpoint/header.hpp"

namespace {

std::atomic<std::size_t> live = 0;
std::atomic<std::size_t> peak = 0;

void* counted(void* address) {
  if (address == nullptr) throw std::bad_alloc();
  const std::size_t now = live += ::malloc_usable_size(address);
  if (now > peak) peak = now;
  return address;
}

void release(void* address) {
  live -= ::malloc_usable_size(address);
  std::free(address);
}

}  // namespace

void* operator new(std::size_t bytes) { return counted(std::malloc(bytes)); }
void* operator new[](std::size_t bytes) { return counted(std::malloc(bytes)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  const auto align = static_cast<std::size_t>(alignment);
  return counted(std::aligned_alloc(align, (bytes + align - 1) / align * align));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  void* address = std::malloc(bytes);
  return address == nullptr ? nullptr : counted(address);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  void* address = std::malloc(bytes);
  return address == nullptr ? nullptr : counted(address);
}
void operator delete(void* address) noexcept { release(address); }
void operator delete[](void* address) noexcept { release(address); }
void operator delete(void* address, std::size_t) noexcept { release(address); }
void operator delete[](void* address, std::size_t) noexcept { release(address); }
void operator delete(void* address, std::align_val_t) noexcept { release(address); }
void operator delete(void* address, std::size_t, std::align_val_t) noexcept { release(address); }

namespace wc::checkpoint {
namespace {

constexpr std::size_t kHeaderBytes = 8'000'000;
constexpr std::string_view kEmpty = R"("dtype":"U8","shape":[0],"data_offsets":[0,0])";

// A header of about kHeaderBytes: `start`, then what part(n) gives, with commas, then `end`.
template <typename Part>
std::string header_of(std::string_view start, Part&& part, std::string_view end) {
  std::string text(start);
  text.reserve(kHeaderBytes + 4096);
  for (std::size_t at = 0; text.size() < kHeaderBytes; ++at) {
    if (at > 0) text += ',';
    text += part(at);
  }
  text += end;
  return text;
}

// Base 90: names as short as many different ones can be.
std::string short_name(std::size_t number) {
  std::string name;
  do {
    const char digit = static_cast<char>('#' + number % 90);
    name += digit == '\\' ? '!' : digit;
    number /= 90;
  } while (number > 0);
  return name;
}

void expect_bounded(const std::string& header, bool accepted) {
  const std::size_t before = live;
  peak = before;
  HeaderParser parser;
  const std::span<char> room = parser.room(header.size());
  std::copy(header.begin(), header.end(), room.begin());
  const auto table = parser.parse_room(8 + header.size(), {.compat = true});
  const std::size_t taken = peak - before;
  EXPECT_EQ(table.has_value(), accepted) << (table ? "" : table.error().message);
  EXPECT_LE(taken, 32 * header.size());
  ::testing::Test::RecordProperty("bytes_for_each", static_cast<int>(taken / header.size()));
  EXPECT_GT(taken, header.size()) << "allocations go uncounted";
}

TEST(HeaderMemoryTest, ManySmallTensors) {
  expect_bounded(
      header_of(
          "{",
          [](std::size_t at) { return "\"" + short_name(at) + "\":{" + std::string(kEmpty) + "}"; },
          "}"),
      true);
}

TEST(HeaderMemoryTest, ManyShortPairsOfMetadata) {
  const auto pair = [](std::size_t at) { return "\"" + short_name(at) + "\":\"\""; };
  expect_bounded(header_of(R"({"__metadata__":{)", pair, "}}"), true);
}

TEST(HeaderMemoryTest, ManyDimensions) {
  std::string shape = "0";
  for (int at = 1; at < 64; ++at) shape += ",1";
  expect_bounded(header_of(
                     "{",
                     [&shape](std::size_t at) {
                       return "\"" + short_name(at) + R"(":{"dtype":"U8","shape":[)" + shape +
                              R"(],"data_offsets":[0,0]})";
                     },
                     "}"),
                 true);
}

TEST(HeaderMemoryTest, ManyFurtherFields) {
  const auto field = [](std::size_t at) { return "\"" + short_name(at) + "\":0"; };
  expect_bounded(header_of("{\"a\":{" + std::string(kEmpty) + ",", field, "}}"), true);
  expect_bounded(header_of("{\"a\":{" + std::string(kEmpty) + ",\"x\":{", field, "}}}"), true);
}

TEST(HeaderMemoryTest, OneLongDimensionList) {
  expect_bounded(header_of(R"({"a":{"shape":[)", [](std::size_t) { return "1"; }, "]}}"), false);
}

TEST(HeaderMemoryTest, NothingButBrackets) {
  expect_bounded("{\"a\":" + std::string(kHeaderBytes, '[') + "}", false);
  expect_bounded("{" + std::string(kHeaderBytes, ' ') + "}", true);
}

TEST(HeaderMemoryTest, OneLongText) {
  expect_bounded("{\"__metadata__\":{\"a\":\"" + std::string(kHeaderBytes, 'x') + "\"}}", true);
  std::string escapes;
  for (std::size_t at = 0; at < kHeaderBytes / 6; ++at) escapes += "\\u20ac";
  expect_bounded("{\"__metadata__\":{\"a\":\"" + escapes + "\"}}", true);
}

}  // namespace
}  // namespace wc::checkpoint
