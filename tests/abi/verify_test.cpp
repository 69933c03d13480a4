#include "tests/abi/abi_fixture.hpp"

namespace wc::abi {
namespace {

class VerifyTest : public AbiTest {};

TEST_F(VerifyTest, WhatIsOnDiskAndWhatIsResidentAreEqual) {
  const std::string folder = make_checkpoint("tiny");
  Connection connection = connect();
  const Entry entry = connection.load(folder).entry;
  for (const std::string& text : {std::string("tiny"), folder}) {
    const auto verified = connection.verify(text);
    EXPECT_TRUE(verified.mismatches.empty());
    EXPECT_EQ(verified.bytes, 15U * 5000);
    EXPECT_EQ(verified.entry.fingerprint, entry.fingerprint);
  }
  EXPECT_TRUE(connection.leases().empty());
}

TEST_F(VerifyTest, AFlippedByteIsFoundInItsTensorAtItsOffset) {
  const std::string folder = make_checkpoint("tiny");
  Connection connection = connect();
  connection.load(folder);
  // The last tensor of a shard ends with the file.
  const std::string file = folder + "/model-1.safetensors";
  const std::uint64_t size = std::filesystem::file_size(file);
  flip_byte(file, size - 1);
  flip_byte(file, size - 5000 - 3000);
  flip_byte(file, size - 5000 - 2000);  // of the same tensor: one mismatch
  const auto verified = connection.verify("tiny");
  ASSERT_EQ(verified.mismatches.size(), 2U);
  EXPECT_EQ(verified.mismatches[0].tensor, "t1.3");
  EXPECT_EQ(verified.mismatches[0].offset, 2000U);
  EXPECT_EQ(verified.mismatches[1].tensor, "t1.4");
  EXPECT_EQ(verified.mismatches[1].offset, 4999U);

  weightcache::VerifyOptions options;
  options.limit = 1;
  EXPECT_EQ(connection.verify("tiny", options).mismatches.size(), 1U);
}

TEST_F(VerifyTest, OtherTensorsAreAMismatchThatNamesThem) {
  Connection connection = connect();
  connection.load(make_checkpoint("tiny"));
  weightcache::VerifyOptions options;
  options.source = files() / "other.safetensors";
  write_file(options.source, safetensors({u8_tensor("t0.0", 4999), u8_tensor("new", 1)}));
  std::string message;
  EXPECT_EQ(code_of([&] { (void)connection.verify("tiny", options); }, &message), WC_MISMATCH);
  EXPECT_THAT(message, HasSubstr("\"t0.0\": shape [5000] is [4999] on disk"));
  EXPECT_THAT(message, HasSubstr("\"new\": is on disk alone"));
  EXPECT_THAT(message, HasSubstr("is not on disk"));
  EXPECT_THAT(message, HasSubstr("more"));
  EXPECT_TRUE(connection.leases().empty());
}

TEST_F(VerifyTest, AnEntryThatCameFromNoFileNeedsAPath) {
  Connection connection = connect();
  publish_bytes(connection, "x", "s", "original");
  std::string message;
  EXPECT_EQ(code_of([&] { (void)connection.verify("x"); }, &message), WC_INVALID_ARGUMENT);
  EXPECT_THAT(message, HasSubstr("source"));
  EXPECT_EQ(code_of([&] { (void)connection.verify("nothing"); }), WC_NOT_FOUND);
}

TEST_F(VerifyTest, ACheckpointReplacedOnDiskIsSeen) {
  const std::string folder = make_checkpoint("tiny");
  Connection connection = connect();
  connection.load(folder);
  write_sharded(folder, 3, 5, 5000, 1);
  EXPECT_EQ(connection.verify("tiny").mismatches.size(), 15U);
  EXPECT_EQ(code_of([&] { (void)connection.attach(folder); }), WC_NOT_FOUND);
}

}  // namespace
}  // namespace wc::abi
