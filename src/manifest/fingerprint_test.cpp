#include "manifest/fingerprint.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace wc::manifest {
namespace {

using testing::HasSubstr;

const std::string kDigest = "xxh3t-4m:00112233445566778899aabbccddeeff";
const std::string kOther = "xxh3t-4m:ffeeddccbbaa99887766554433221100";

Fingerprint two_shards() {
  return raw_fingerprint({{"model-00001-of-00002.safetensors", 100, kDigest},
                          {"model-00002-of-00002.safetensors", 200, kOther}});
}

Fingerprint engine() {
  Fingerprint fingerprint = two_shards();
  fingerprint.form = {.engine = "vllm",
                      .engine_version = "0.11.0",
                      .quantization = "fp8",
                      .quantization_config = R"({"weight_block_size": [128, 128], "fmt": "e4m3"})",
                      .dtype = "bfloat16",
                      .device_capability = "9.0"};
  fingerprint.partition.tensor = {.size = 8, .rank = 3};
  return fingerprint;
}

std::string canonical(const Fingerprint& fingerprint) {
  const auto text = canonical_json(fingerprint);
  EXPECT_TRUE(text) << text.error().message;
  return text.value_or("");
}

void expect_invalid(const Fingerprint& fingerprint, const char* message) {
  const auto text = canonical_json(fingerprint);
  ASSERT_FALSE(text) << *text;
  EXPECT_EQ(text.error().code, Code::invalid_argument);
  EXPECT_THAT(text.error().message, HasSubstr(message));
}

TEST(FingerprintTest, TheDocumentOfARawCheckpointIsThis) {
  EXPECT_EQ(canonical(two_shards()),
            R"({"form":"raw","partition":{},"source":{"shards":[)"
            R"({"bytes":100,"digest":"xxh3t-4m:00112233445566778899aabbccddeeff",)"
            R"("name":"model-00001-of-00002.safetensors"},)"
            R"({"bytes":200,"digest":"xxh3t-4m:ffeeddccbbaa99887766554433221100",)"
            R"("name":"model-00002-of-00002.safetensors"}]}})");
}

TEST(FingerprintTest, TheDocumentOfAnEnginesFormIsThis) {
  Fingerprint fingerprint = engine();
  fingerprint.source = {.shards = {}, .selection = {}, .source_id = "hub:org/name@abc"};
  fingerprint.form.extra = R"({"moe": true})";
  EXPECT_EQ(canonical(fingerprint),
            R"({"form":{"device_capability":"9.0","dtype":"bfloat16","engine":"vllm",)"
            R"("engine_version":"0.11.0","extra":{"moe":true},"quantization":"fp8",)"
            R"("quantization_config":{"fmt":"e4m3","weight_block_size":[128,128]}},)"
            R"("partition":{"tensor":{"rank":3,"size":8}},)"
            R"("source":{"source_id":"hub:org/name@abc"}})");
}

// From `printf '%s' TEXT | xxhsum -H2`.
TEST(FingerprintTest, TheDigestIsXxh3In128Bits) {
  EXPECT_EQ(digest_of(std::string_view("")), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(digest_of(std::string_view("{}")).size(), 32U);
  EXPECT_EQ(*digest_of(two_shards()), digest_of(std::string_view(canonical(two_shards()))));
}

TEST(FingerprintTest, TheSameWeightsSpelledOtherwiseAreTheSame) {
  Fingerprint reversed = two_shards();
  std::swap(reversed.source.shards[0], reversed.source.shards[1]);
  EXPECT_EQ(canonical(reversed), canonical(two_shards()));

  Fingerprint spelled = engine();
  spelled.form.quantization_config =
      "{\"fmt\":\"\\u0065\\u0034m3\",\n\"weight_block_size\":[128,128]}";
  spelled.form.extra = " {} ";
  spelled.partition.data = {.size = 1, .rank = 0};
  EXPECT_EQ(canonical(spelled), canonical(engine()));
}

TEST(FingerprintTest, DefaultsWrittenOutAreParsedToTheSame) {
  const std::string shards =
      R"("source": {"shards": [{"name": "m", "digest": ")" + kDigest + R"(", "bytes": 5}]})";
  const std::string expected = canonical(raw_fingerprint({{"m", 5, kDigest}}));
  for (const std::string& rest : std::vector<std::string>{
           "", R"(, "form": "raw")", R"(, "form": null, "partition": null)", R"(, "form": {})",
           R"(, "form": {"engine": "", "quantization": "", "extra": {}})",
           R"(, "partition": {"tensor": {"size": 1, "rank": 0}, "data": {}, "expert": null})"}) {
    const auto parsed = parse_fingerprint("{" + shards + rest + "}");
    ASSERT_TRUE(parsed) << rest << ": " << parsed.error().message;
    EXPECT_EQ(canonical(*parsed), expected) << rest;
    EXPECT_EQ(*parsed, raw_fingerprint({{"m", 5, kDigest}})) << rest;
  }
}

TEST(FingerprintTest, WhatIsWrittenIsParsedBack) {
  for (Fingerprint fingerprint : {two_shards(), engine()}) {
    const auto parsed = parse_fingerprint(canonical(fingerprint));
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_EQ(canonical(*parsed), canonical(fingerprint));
  }
}

TEST(FingerprintTest, EveryFieldChangesTheFingerprint) {
  const std::vector<void (*)(Fingerprint&)> changes = {
      [](Fingerprint& f) { f.source.shards[0].name = "x"; },
      [](Fingerprint& f) { f.source.shards[0].bytes = 101; },
      [](Fingerprint& f) { f.source.shards[0].digest = kOther; },
      [](Fingerprint& f) { f.source.shards.pop_back(); },
      [](Fingerprint& f) { f.source.selection = kDigest; },
      [](Fingerprint& f) { f.source = {.shards = {}, .selection = {}, .source_id = "x"}; },
      [](Fingerprint& f) { f.form = {}; },
      [](Fingerprint& f) { f.form.engine = "sglang"; },
      [](Fingerprint& f) { f.form.engine_version = "0.11.1"; },
      [](Fingerprint& f) { f.form.quantization = "awq"; },
      [](Fingerprint& f) { f.form.quantization_config = "{}"; },
      [](Fingerprint& f) { f.form.dtype = "float16"; },
      [](Fingerprint& f) { f.form.device_capability = "10.0"; },
      [](Fingerprint& f) { f.form.extra = R"({"a":false})"; },
      [](Fingerprint& f) { f.partition.tensor.rank = 4; },
      [](Fingerprint& f) { f.partition.tensor.size = 4; },
      [](Fingerprint& f) { f.partition.pipeline = {.size = 2, .rank = 0}; },
      [](Fingerprint& f) { f.partition.expert = {.size = 2, .rank = 0}; },
      [](Fingerprint& f) { f.partition.data = {.size = 2, .rank = 0}; },
  };
  std::vector<std::string> digests = {*digest_of(engine())};
  for (const auto& change : changes) {
    Fingerprint changed = engine();
    change(changed);
    const auto digest = digest_of(changed);
    ASSERT_TRUE(digest) << digest.error().message;
    EXPECT_THAT(digests, testing::Not(testing::Contains(*digest)));
    EXPECT_FALSE(differences(engine(), changed)->empty());
    digests.push_back(*digest);
  }
}

TEST(FingerprintTest, RefusesWhatSaysTooLittleOrTooMuch) {
  const auto with = [](auto change) {
    Fingerprint fingerprint = engine();
    change(fingerprint);
    return fingerprint;
  };
  expect_invalid({}, "source: needs either shards or a source_id");
  expect_invalid(with([](auto& f) { f.source.source_id = "x"; }), "and not both");
  expect_invalid(with([](auto& f) { f.source.shards[1].name = f.source.shards[0].name; }),
                 "stands twice");
  expect_invalid(with([](auto& f) { f.source.shards[0].digest = "x"; }), "is no digest");
  expect_invalid(with([](auto& f) { f.source.shards[0].name = ""; }), "the name is empty");
  expect_invalid(with([](auto& f) { f.source.shards[0].name = "\xff"; }), "no UTF-8");
  expect_invalid(with([](auto& f) { f.source.shards[0].bytes = 1ULL << 53; }), "past 2^53 - 1");
  expect_invalid(with([](auto& f) { f.form.engine = ""; }), "without form.engine the form is raw");
  expect_invalid(with([](auto& f) { f.form.dtype = "a\nb"; }), "form.dtype");
  expect_invalid(with([](auto& f) { f.form.quantization_config = "[]"; }), "is no JSON object");
  expect_invalid(with([](auto& f) { f.form.quantization_config = R"({"damp": 0.01})"; }),
                 "form.quantization_config: field \"damp\": 0.01 is no integer");
  expect_invalid(with([](auto& f) { f.partition.data = {.size = 2, .rank = 2}; }),
                 "partition.data: rank 2 of size 2");
  expect_invalid(with([](auto& f) { f.partition.data = {.size = 0, .rank = 0}; }), "size 0");
  expect_invalid(with([](auto& f) { f.source.selection = "x"; }), "source.selection");
}

TEST(FingerprintTest, ParsingRefusesWhatItDoesNotKnow) {
  const auto refused = [](const char* text, const char* message) {
    const auto parsed = parse_fingerprint(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, Code::invalid_argument);
    EXPECT_THAT(parsed.error().message, HasSubstr(message)) << text;
  };
  refused("", "no valid JSON");
  refused("[]", "is no JSON object");
  refused(R"({"source":{"source_id":"x"},"more":1})", "field \"more\": is unknown");
  refused(R"({"source":{"source_id":"x","more":1}})", "field \"source.more\": is unknown");
  refused(R"({"source":{"source_id":1}})", "field \"source.source_id\": is no text");
  refused(R"({"source":{"shards":{}}})", "field \"source.shards\": is no array");
  refused(R"({"source":{"shards":[1]}})", "field \"source.shards[0]\": is no object");
  refused(R"({"source":{"shards":[{"bytes":-1}]}})", "is no number from 0 on");
  refused(R"({"source":{"shards":[{"bytes":1.5}]}})", "field \"source.shards[0].bytes\": 1.5");
  refused(R"({"source":{"source_id":"x"},"form":"RAW"})", "field \"form\": is no object");
  refused(R"({"source":{"source_id":"x"},"form":{"engine":"e","extra":[]}})", "form.extra");
  refused(R"({"source":{"source_id":"x"},"partition":{"tensor":{"size":4294967296}}})",
          "too large");
  refused(R"({"source":{"source_id":"x"},"partition":{"tensor":{"size":2,"rank":2}}})", "rank 2");
  refused(R"({"source":{"source_id":"x"},"source":{}})", "field \"source\": the key stands twice");
}

TEST(FingerprintTest, AMismatchNamesEachFieldWithBothValues) {
  Fingerprint actual = engine();
  actual.form.dtype = "float16";
  actual.form.quantization_config = R"({"fmt":"e4m3","weight_block_size":[64,128]})";
  actual.partition.tensor.rank = 2;
  actual.source.shards[1].digest = kDigest;
  const auto found = differences(engine(), actual);
  ASSERT_TRUE(found);
  EXPECT_EQ(describe(*found),
            "form.dtype is \"float16\", expected \"bfloat16\"; "
            "form.quantization_config.weight_block_size[0] is 64, expected 128; "
            "partition.tensor.rank is 2, expected 3; "
            "source.shards[\"model-00002-of-00002.safetensors\"].digest is \"" +
                kDigest + "\", expected \"" + kOther + "\"");
}

TEST(FingerprintTest, AMismatchNamesWhatIsAbsent) {
  const auto found = differences(two_shards(), engine());
  ASSERT_TRUE(found);
  EXPECT_THAT(describe(*found), HasSubstr("form is (absent), expected \"raw\""));
  EXPECT_THAT(describe(*found), HasSubstr("form.engine is \"vllm\", expected (absent)"));
  EXPECT_THAT(describe(*found), HasSubstr("partition.tensor.size is 8, expected (absent)"));
  EXPECT_TRUE(differences(engine(), engine())->empty());
}

TEST(FingerprintTest, ADescriptionIsBounded) {
  Fingerprint many = two_shards();
  for (int at = 0; at < 50; ++at)
    many.source.shards.push_back({"extra-" + std::to_string(at), 1, kDigest});
  const auto found = differences(two_shards(), many);
  ASSERT_EQ(found->size(), 100U);
  EXPECT_TRUE(describe(*found).ends_with("; and 84 more"));
}

TEST(FingerprintTest, FormsHaveDifferentLabels) {
  EXPECT_EQ(*form_label({}), "raw");
  const std::string label = *form_label(engine().form);
  EXPECT_TRUE(label.starts_with("vllm-0.11.0-"));
  EXPECT_EQ(label.size(), std::string("vllm-0.11.0-").size() + 8);
  Form other = engine().form;
  other.dtype = "float16";
  EXPECT_NE(*form_label(other), label);
}

TEST(FingerprintTest, ASelectionIsThatOfItsPairsInAnyOrder) {
  const std::vector<SelectedTensor> pairs = {{"a", "1"}, {"b", "2"}};
  const std::vector<SelectedTensor> reversed = {{"b", "2"}, {"a", "1"}};
  const std::vector<SelectedTensor> other = {{"a", "2"}, {"b", "1"}};
  EXPECT_EQ(selection_digest(pairs), selection_digest(reversed));
  EXPECT_NE(selection_digest(pairs), selection_digest(other));
  Fingerprint fingerprint = two_shards();
  fingerprint.source.selection = selection_digest(pairs);
  EXPECT_TRUE(digest_of(fingerprint));
}

}  // namespace
}  // namespace wc::manifest
