#include "api/expect.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "manifest/fingerprint.hpp"

namespace wc::api {
namespace {

using ::testing::HasSubstr;

std::string raw_document() {
  const std::string digest = "xxh3t-4m:" + std::string(32, 'a');
  return *manifest::canonical_json(
      manifest::raw_fingerprint({{"a.safetensors", 100, digest}, {"b.safetensors", 200, digest}}));
}

std::string engine_document() {
  manifest::Fingerprint fingerprint;
  fingerprint.source.source_id = "org/name@1";
  fingerprint.form.engine = "vllm";
  fingerprint.form.dtype = "bfloat16";
  fingerprint.form.quantization = "fp8";
  fingerprint.form.quantization_config = R"({"weight_block_size": [128, 128]})";
  fingerprint.partition.tensor = {4, 2};
  return *manifest::canonical_json(fingerprint);
}

void expect_equal(const std::string& expected, const std::string& actual) {
  const auto result = check_expected(expected, actual);
  EXPECT_TRUE(result) << expected << ": " << result.error().message;
}

std::string mismatch(const std::string& expected, const std::string& actual) {
  const auto result = check_expected(expected, actual);
  EXPECT_FALSE(result) << expected;
  if (result) return {};
  EXPECT_EQ(result.error().code, Code::mismatch) << result.error().message;
  return result.error().message;
}

TEST(ExpectTest, AnySubsetOfTheOwnDocumentIsExpected) {
  for (const std::string& document : {raw_document(), engine_document()}) {
    expect_equal(document, document);
    expect_equal("{}", document);
  }
  expect_equal(R"({"source": {"source_id": "org/name@1"}})", engine_document());
  expect_equal(R"({"form": {"dtype": "bfloat16"}, "partition": {"tensor": {"rank": 2}}})",
               engine_document());
}

TEST(ExpectTest, DefaultsMayBeSpelledOut) {
  expect_equal(R"({"form": "raw", "partition": {}})", raw_document());
  expect_equal(R"({"form": {"engine": "", "dtype": null, "extra": {}}})", raw_document());
  expect_equal(R"({"partition": {"tensor": {"size": 1, "rank": 0}}})", raw_document());
  expect_equal(R"({"partition": {"pipeline": {"size": 1}}})", engine_document());
}

TEST(ExpectTest, AMismatchNamesEveryFieldWithBothValues) {
  const std::string message = mismatch(
      R"({"form": {"dtype": "float16", "engine": "vllm"}, "partition": {"tensor": {"size": 8}}})",
      engine_document());
  EXPECT_THAT(message, HasSubstr(R"(form.dtype is "bfloat16", expected "float16")"));
  EXPECT_THAT(message, HasSubstr("partition.tensor.size is 4, expected 8"));
  EXPECT_THAT(message, ::testing::Not(HasSubstr("form.engine")));
}

TEST(ExpectTest, ARawEntryIsNoEnginesForm) {
  EXPECT_THAT(mismatch(R"({"form": {"dtype": "float16"}})", raw_document()),
              HasSubstr(R"(form.dtype is (absent), expected "float16")"));
  EXPECT_THAT(mismatch(R"({"form": "raw"})", engine_document()), HasSubstr("form is {"));
  EXPECT_THAT(mismatch(R"({"source": {"source_id": "x"}})", raw_document()),
              HasSubstr(R"(source.source_id is (absent), expected "x")"));
}

TEST(ExpectTest, ShardsAreComparedByNameWhateverTheirOrder) {
  expect_equal(R"({"source": {"shards": [{"name": "b.safetensors"}, {"name": "a.safetensors"}]}})",
               raw_document());
  EXPECT_THAT(mismatch(R"({"source": {"shards": [{"name": "a.safetensors", "bytes": 101},
                                                  {"name": "b.safetensors"}]}})",
                       raw_document()),
              HasSubstr(R"(source.shards["a.safetensors"].bytes is 100, expected 101)"));
  EXPECT_THAT(mismatch(R"({"source": {"shards": [{"name": "a.safetensors"}]}})", raw_document()),
              HasSubstr(R"(source.shards["b.safetensors"] is {)"));
  EXPECT_THAT(mismatch(R"({"source": {"shards": [{"name": "c.safetensors"}]}})", raw_document()),
              HasSubstr(R"(source.shards["c.safetensors"].name is (absent))"));
}

TEST(ExpectTest, AMisspeltFieldIsAMismatchNotIgnored) {
  EXPECT_THAT(mismatch(R"({"from": "raw"})", raw_document()), HasSubstr("from is (absent)"));
}

TEST(ExpectTest, WhatIsNoDocumentIsInvalid) {
  for (const char* text :
       {"", "[]", "3", "{\"form\": 1.5}", "{\"form\": \"a\", \"form\": \"b\"}"}) {
    const auto result = check_expected(text, raw_document());
    ASSERT_FALSE(result) << text;
    EXPECT_EQ(result.error().code, Code::invalid_argument) << text;
  }
}

}  // namespace
}  // namespace wc::api
