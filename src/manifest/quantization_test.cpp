#include "manifest/quantization.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace wc::manifest {
namespace {

using testing::HasSubstr;

constexpr const char* kBlockWise = R"({"quant_method": "fp8", "weight_block_size": [128, 128]})";

void expect_unsupported(const QuantizationQuery& query, const char* reason) {
  const auto verdict = quantization_verdict(query);
  ASSERT_FALSE(verdict) << reason;
  EXPECT_EQ(verdict.error().code, Code::unsupported);
  EXPECT_THAT(verdict.error().message, HasSubstr(reason));
}

TEST(QuantizationTest, UnquantizedIsAlwaysAllowed) {
  EXPECT_TRUE(quantization_verdict({.method = ""}));
  EXPECT_TRUE(quantization_verdict({.method = "", .config = "{}", .place = GatePlace::attach}));
}

TEST(QuantizationTest, Fp8IsAllowedBlockWise) {
  EXPECT_TRUE(quantization_verdict({.method = "fp8", .config = kBlockWise}));
  EXPECT_TRUE(quantization_verdict(
      {.method = "fp8", .config = R"({"weight_block_size": [1, 128], "x": 0.5})"}));
}

TEST(QuantizationTest, Fp8IsRefusedOtherwise) {
  expect_unsupported({.method = "fp8"}, "only block-wise fp8");
  expect_unsupported({.method = "fp8", .config = "{}"}, "only block-wise fp8");
  expect_unsupported({.method = "fp8", .config = R"({"weight_block_size": null})"},
                     "only block-wise fp8");
  for (const char* size :
       {"128", "[128]", "[128,0]", "[128,-1]", "[128,1.5]", "[\"a\",\"b\"]", "{}"}) {
    const std::string config = std::string(R"({"weight_block_size":)") + size + "}";
    expect_unsupported({.method = "fp8", .config = config}, "not two numbers");
  }
}

TEST(QuantizationTest, Fp8IsRefusedWhereItsBytesAreNotTheWholeEffect) {
  expect_unsupported({.method = "fp8", .config = kBlockWise, .scales_repacked_ue8m0 = true},
                     "UE8M0");
  expect_unsupported({.method = "fp8", .config = kBlockWise, .fp4_experts = true}, "FP4");
  expect_unsupported(
      {.method = "fp8", .config = R"({"weight_block_size": [128, 128], "format_ue8m0": true})"},
      "UE8M0");
  expect_unsupported(
      {.method = "fp8", .config = R"({"weight_block_size": [128, 128], "is_fp4_experts": true})"},
      "FP4");
}

TEST(QuantizationTest, EveryOtherMethodIsRefused) {
  for (const char* method :
       {"awq", "gptq", "gptq_marlin", "fp4", "FP8", "fp8 ", "none", "bitsandbytes"})
    expect_unsupported({.method = method, .config = kBlockWise}, method);
}

TEST(QuantizationTest, TheMessageNamesMethodPlaceVerifiedMethodsAndWaysOut) {
  const auto at_publish = quantization_verdict({.method = "awq", .place = GatePlace::publish});
  const auto at_attach = quantization_verdict({.method = "awq", .place = GatePlace::attach});
  EXPECT_TRUE(at_publish.error().message.starts_with("publish: quantization method \"awq\""));
  EXPECT_TRUE(at_attach.error().message.starts_with("attach: quantization method \"awq\""));
  for (const VerifiedMethod& method : verified_methods()) {
    EXPECT_THAT(at_publish.error().message, HasSubstr(std::string(method.name)));
    EXPECT_THAT(at_publish.error().message, HasSubstr(std::string(method.condition)));
  }
  EXPECT_THAT(at_publish.error().message, HasSubstr("ways out: "));
}

TEST(QuantizationTest, AConfigurationIsAJsonObject) {
  for (const char* config : {"[]", "{", "null", "fp8"}) {
    const auto verdict = quantization_verdict({.method = "fp8", .config = config});
    ASSERT_FALSE(verdict);
    EXPECT_EQ(verdict.error().code, Code::invalid_argument) << config;
  }
}

}  // namespace
}  // namespace wc::manifest
