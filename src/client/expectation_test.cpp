#include "client/expectation.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "manifest/fingerprint.hpp"

namespace wc::client {
namespace {

using testing::HasSubstr;

constexpr const char* kDigest = "xxh3t-4m:00112233445566778899aabbccddeeff";

class ExpectationTest : public testing::Test {
 protected:
  ExpectationTest() {
    manifest::Fingerprint value;
    value.source.shards = {{"b.safetensors", 20, kDigest}, {"a.safetensors", 10, kDigest}};
    value.form.engine = "vllm";
    value.form.dtype = "bfloat16";
    value.form.quantization_config = R"({"weight_block_size": [128, 128]})";
    value.partition.tensor = {.size = 2, .rank = 1};
    document_ = *manifest::canonical_json(value);
    digest_ = *manifest::digest_of(value);
  }
  Result<> check(std::string_view expect) const {
    return check_expectation(expect, {digest_, document_});
  }
  void expect_mismatch(std::string_view expect, const std::string& text) const {
    const auto checked = check(expect);
    ASSERT_FALSE(checked) << expect;
    EXPECT_EQ(checked.error().code, Code::mismatch) << checked.error().message;
    EXPECT_EQ(checked.error().message, text);
  }
  std::string document_;
  std::string digest_;
};

TEST_F(ExpectationTest, AnySubsetOfTheFieldsMayBeAskedFor) {
  for (const char* expect :
       {"", "{}", R"({"form": {"dtype": "bfloat16"}})", R"({"form": {"dtype": null}})",
        R"({"source": {"shards": [{"name": "a.safetensors", "bytes": 10}]}})",
        R"({"form": {"quantization_config": {"weight_block_size": [128, 128]}}})",
        R"({"partition": {"tensor": {"size": 2, "rank": 1}, "expert": {"size": 1, "rank": 0}}})",
        R"({"form": {"engine_version": "", "extra": {}}})"})
    EXPECT_TRUE(check(expect)) << expect << ": " << check(expect).error().message;
  EXPECT_TRUE(check(document_));
  EXPECT_TRUE(check(digest_));
}

TEST_F(ExpectationTest, EachFieldThatDiffersIsNamedWithBothValues) {
  expect_mismatch(R"({"form": {"dtype": "float16", "engine": "sglang"}})",
                  R"(form.dtype is "bfloat16", expected "float16"; form.engine is "vllm", )"
                  R"(expected "sglang")");
  expect_mismatch(R"({"partition": {"tensor": {"rank": 0}}})",
                  "partition.tensor.rank is 1, expected 0");
  expect_mismatch(R"({"form": {"engine_version": "0.11"}})",
                  R"(form.engine_version is (absent), expected "0.11")");
  expect_mismatch(R"({"source": {"shards": [{"name": "b.safetensors", "bytes": 10}]}})",
                  R"(source.shards["b.safetensors"].bytes is 20, expected 10)");
  expect_mismatch("00112233445566778899aabbccddeeff",
                  "the fingerprint is " + digest_ + ", expected 00112233445566778899aabbccddeeff");
}

TEST_F(ExpectationTest, FieldAskedToBeAbsentMayNotBeThere) {
  expect_mismatch(R"({"form": {"dtype": ""}})", R"(form.dtype is "bfloat16", expected "")");
  EXPECT_EQ(check(R"({"form": "raw"})").error().code, Code::mismatch);
  EXPECT_EQ(check(R"({"partition": {}})").error().code, Code::mismatch);
  EXPECT_EQ(check(R"({"partition": {"tensor": {"size": 1}}})").error().code, Code::mismatch);
}

TEST_F(ExpectationTest, RawFormIsTheSameAsNoForm) {
  const Identity raw = {"", R"({"form":"raw","partition":{},"source":{"source_id":"x"}})"};
  EXPECT_TRUE(check_expectation(R"({"form": "raw"})", raw));
  EXPECT_TRUE(check_expectation(R"({"form": {}})", raw));
  EXPECT_EQ(check_expectation(R"({"form": {"dtype": "x"}})", raw).error().code, Code::mismatch);
}

TEST_F(ExpectationTest, WhatIsNoObjectIsTheCallersFault) {
  for (const std::string& expect :
       {std::string("nonsense"), std::string("[]"), std::string("1"), std::string("{\"a\": "),
        std::string(R"({"a": )") + std::string(100, '[') + std::string(100, ']') + "}"}) {
    EXPECT_EQ(check(expect).error().code, Code::invalid_argument) << expect;
  }
  EXPECT_EQ(check_expectation("{}", {"", "nonsense"}).error().code, Code::corrupt);
}

}  // namespace
}  // namespace wc::client
