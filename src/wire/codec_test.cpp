#include "wire/codec.hpp"

#include <algorithm>
#include <cstring>
#include <random>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "wire/samples_test.hpp"

namespace wc::wire {
namespace {

using testing::HasSubstr;

Bytes packed(const fb::BodyUnion& body) {
  auto bytes = detail::encode(41, body);
  EXPECT_TRUE(bytes) << bytes.error().message;
  return *bytes;
}

// Reads everything that a decoded message holds, as a user of it would.
void read_all(std::span<const std::byte> packet) {
  const auto message = decode(packet);
  if (!message) {
    EXPECT_EQ(message.error().code, Code::corrupt);
    EXPECT_FALSE(message.error().message.empty());
    return;
  }
  const std::unique_ptr<fb::MessageT> copy((*message)->UnPack());
  EXPECT_EQ(copy->request, (*message)->request());
  if ((*message)->body_type() > fb::Body::MAX) return;
  const auto again = detail::encode(copy->request, copy->body);
  EXPECT_TRUE(again || again.error().code == Code::exhausted) << again.error().message;
}

TEST(CodecTest, SamplesHoldEveryMessageType) {
  std::set<fb::Body> types;
  for (const auto& body : samples::all()) types.insert(body.type);
  for (int type = 1; type <= static_cast<int>(fb::Body::MAX); ++type)
    EXPECT_TRUE(types.contains(static_cast<fb::Body>(type)))
        << name_of(static_cast<fb::Body>(type));
}

TEST(CodecTest, EveryMessageComesBackAsItWas) {
  for (const auto& body : samples::all()) {
    const Bytes bytes = packed(body);
    const auto message = decode(bytes);
    ASSERT_TRUE(message) << name_of(body.type) << ": " << message.error().message;
    EXPECT_EQ((*message)->request(), 41U);
    EXPECT_EQ((*message)->body_type(), body.type);
    const std::unique_ptr<fb::MessageT> copy((*message)->UnPack());
    EXPECT_EQ(copy->body, body) << name_of(body.type);
  }
}

TEST(CodecTest, BodyComesOutAsItsType) {
  fb::GrantedT granted;
  granted.load = 77;
  const auto bytes = encode(5, granted);
  ASSERT_TRUE(bytes);
  const auto body = body_as<fb::GrantedT>(**decode(*bytes));
  ASSERT_TRUE(body);
  EXPECT_EQ(body->load, 77U);
}

TEST(CodecTest, OtherBodyIsCorruptAndNamed) {
  const auto bytes = encode(5, fb::DoneT{});
  const auto body = body_as<fb::AttachedT>(**decode(*bytes));
  ASSERT_FALSE(body);
  EXPECT_EQ(body.error().code, Code::corrupt);
  EXPECT_THAT(body.error().message, HasSubstr("sent Done where Attached was due"));
}

TEST(CodecTest, FailureBecomesItsErrorWithEveryCode) {
  for (int number = -1; number >= static_cast<int>(Code::internal); --number) {
    const Error error{static_cast<Code>(number), "cannot do it", "ENOSPC"};
    const auto bytes = encode(5, to_failure(error));
    const auto body = body_as<fb::DoneT>(**decode(*bytes));
    ASSERT_FALSE(body);
    EXPECT_EQ(body.error().code, error.code);
    EXPECT_EQ(body.error().message, error.message);
    EXPECT_EQ(body.error().origin, error.origin);
  }
}

TEST(CodecTest, FailureWithoutAKnownCodeIsInternal) {
  for (const int number : {0, 1, -17, -2'000'000'000}) {
    fb::FailureT failure;
    failure.code = number;
    const auto bytes = encode(5, failure);
    const auto body = body_as<fb::DoneT>(**decode(*bytes));
    ASSERT_FALSE(body);
    EXPECT_EQ(body.error().code, Code::internal);
  }
}

TEST(CodecTest, LongErrorTextIsCutBetweenCharacters) {
  std::string text(kMaxTextBytes - 1, 'x');
  text += "\xc3\xa9 and more";
  const auto failure = to_failure({Code::io, text, {}});
  EXPECT_EQ(failure.message, std::string(kMaxTextBytes - 1, 'x'));
  EXPECT_TRUE(encode(1, failure));
  EXPECT_EQ(clipped("\xe2\x82\xac", 2), "");
  EXPECT_EQ(clipped("abc", 3), "abc");
}

TEST(CodecTest, PartBeyondItsLimitIsRefusedBeforeSendingAndNamed) {
  fb::HelloT hello;
  hello.label.assign(kMaxTextBytes + 1, 'x');
  const auto bytes = encode(1, hello);
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().code, Code::invalid_argument);
  EXPECT_EQ(bytes.error().message, "Hello: label has 4,097 bytes (4,096 at most)");
  hello.label.pop_back();
  EXPECT_TRUE(encode(1, hello));

  auto attach = samples::with_selector<fb::AttachT>();
  attach.selector->aliases.assign(kMaxAliases + 1, "a");
  EXPECT_EQ(encode(1, attach).error().message, "Attach: aliases has 65 elements (64 at most)");
  attach.selector->aliases.assign(kMaxAliases, "a");
  attach.selector->form.assign(kMaxFormBytes, ' ');
  EXPECT_TRUE(encode(1, attach));

  fb::ReserveT reserve;
  reserve.segments.assign(kMaxSegments + 1, 1);
  EXPECT_EQ(encode(1, reserve).error().message, "Reserve: segments has 241 elements (240 at most)");
}

// The texts in a packet: where a length stands that so many printable characters and a zero follow.
std::vector<std::size_t> texts_in(const Bytes& packet) {
  const auto printable = [](std::byte byte) {
    return byte >= std::byte{' '} && byte < std::byte{127};
  };
  std::vector<std::size_t> found;
  for (std::size_t at = 8; at + 4 < packet.size(); at += 4) {
    std::uint32_t length = 0;
    std::memcpy(&length, packet.data() + at, 4);
    if (length < 3 || length > 80 || at + 4 + length >= packet.size()) continue;
    const auto text = std::span(packet).subspan(at + 4, length);
    if (packet[at + 4 + length] == std::byte{} && std::ranges::all_of(text, printable))
      found.push_back(at);
  }
  return found;
}

// Whether decode() names a text that `from` is made to refer to, 20,000 bytes long at the end.
bool long_text_is_refused(const Bytes& packet, std::size_t from) {
  const std::uint32_t length = 20'000;
  Bytes longer = packet;
  longer.resize((packet.size() + 7) / 8 * 8);
  const auto offset = static_cast<std::uint32_t>(longer.size() - from);
  std::memcpy(longer.data() + from, &offset, 4);
  const std::size_t moved = longer.size();
  longer.resize(moved + 4 + length, std::byte{'x'});
  std::memcpy(longer.data() + moved, &length, 4);
  longer.resize(longer.size() + 4);
  const auto message = decode(longer);
  return !message && message.error().message.find("has 20,000 bytes") != std::string::npos;
}

TEST(CodecTest, EveryTextHasALimit) {
  // What would slip through is a field that the walk over the parts does not know.
  std::size_t tried = 0;
  for (const auto& body : samples::all()) {
    const Bytes packet = packed(body);
    for (const std::size_t at : texts_in(packet)) {
      bool refused = false;
      for (std::size_t from = 4; from < at && !refused; from += 4) {
        std::uint32_t offset = 0;
        std::memcpy(&offset, packet.data() + from, 4);
        refused = from + offset == at && long_text_is_refused(packet, from);
      }
      EXPECT_TRUE(refused) << name_of(body.type) << ", text at " << at << ": "
                           << reinterpret_cast<const char*>(packet.data()) + at + 4;
      ++tried;
    }
  }
  EXPECT_GT(tried, 100U);
}

TEST(CodecTest, MessageLargerThanAPacketIsExhausted) {
  fb::EntriesT entries;
  for (int n = 0; n < 400; ++n) entries.entries.push_back(samples::owned(samples::entry()));
  const auto bytes = encode(1, entries);
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().code, Code::exhausted);
  EXPECT_THAT(bytes.error().message, HasSubstr("a packet has 65,536"));
}

TEST(CodecTest, SharedPartsAreRefused) {
  // 2,000 entries that are all the same one would unpack to 2,000 times its size.
  flatbuffers::FlatBufferBuilder builder;
  const auto name = builder.CreateString(std::string(4000, 'n'));
  fb::EntryInfoBuilder one(builder);
  one.add_name(name);
  const auto entry = one.Finish();
  const auto list = builder.CreateVector(std::vector(2000, entry));
  const auto entries = fb::CreateEntries(builder, list);
  fb::FinishMessageBuffer(builder,
                          fb::CreateMessage(builder, 1, fb::Body::Entries, entries.Union()));
  const auto* start = reinterpret_cast<const std::byte*>(builder.GetBufferPointer());
  const Bytes bytes(start, start + builder.GetSize());
  ASSERT_LT(bytes.size(), kMaxPacketBytes);
  const auto message = decode(bytes);
  ASSERT_FALSE(message);
  EXPECT_EQ(message.error().code, Code::corrupt);
  EXPECT_THAT(message.error().message, HasSubstr("one is used more than once"));
}

TEST(CodecTest, ValuesOutsideAnEnumerationAreRefused) {
  auto entry = samples::entry();
  entry.state = static_cast<fb::State>(9);
  fb::EntryT found;
  found.entry = samples::owned(entry);
  EXPECT_EQ(encode(1, found).error().message, "Entry: state is 9, which means nothing");

  flatbuffers::FlatBufferBuilder builder;  // a handle that has a type and no value
  const auto segment = fb::CreateSegmentInfo(builder, 1, fb::Handle::IpcHandle, 0, 0);
  const auto supply = fb::CreateSupply(builder, 1, 1, segment);
  fb::FinishMessageBuffer(builder, fb::CreateMessage(builder, 1, fb::Body::Supply, supply.Union()));
  const auto* start = reinterpret_cast<const std::byte*>(builder.GetBufferPointer());
  const auto message = decode(Bytes(start, start + builder.GetSize()));
  ASSERT_FALSE(message);
  EXPECT_THAT(message.error().message, HasSubstr("Supply: handle is 2"));
}

TEST(CodecTest, TypeOfALaterVersionPassesWithItsRequestNumber) {
  flatbuffers::FlatBufferBuilder builder;
  const auto done = fb::CreateDone(builder);
  const auto type = static_cast<fb::Body>(static_cast<int>(fb::Body::MAX) + 1);
  fb::FinishMessageBuffer(builder, fb::CreateMessage(builder, 9, type, done.Union()));
  const auto* start = reinterpret_cast<const std::byte*>(builder.GetBufferPointer());
  const Bytes bytes(start, start + builder.GetSize());
  const auto message = decode(bytes);
  ASSERT_TRUE(message) << message.error().message;
  EXPECT_EQ((*message)->request(), 9U);
  EXPECT_EQ(name_of((*message)->body_type()), "a message of a later version");
}

TEST(CodecTest, MessageWithoutABodyIsRefused) {
  flatbuffers::FlatBufferBuilder builder;
  fb::FinishMessageBuffer(builder, fb::CreateMessage(builder, 9, fb::Body::Attach, 0));
  const auto* start = reinterpret_cast<const std::byte*>(builder.GetBufferPointer());
  EXPECT_FALSE(decode(Bytes(start, start + builder.GetSize())));
  EXPECT_EQ(encode(1, fb::DoneT{})->size() % 4, 0U);
}

TEST(CodecTest, EveryCutIsRefusedOrStillWhole) {
  for (const auto& body : samples::all()) {
    const Bytes bytes = packed(body);
    for (std::size_t length = 0; length < bytes.size(); ++length)
      read_all(Bytes(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length)));
  }
}

TEST(CodecTest, EverySingleBitFlipIsReadSafely) {
  for (const auto& body : samples::all()) {
    Bytes bytes = packed(body);
    for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
      const auto mask = std::byte(1U << (bit % 8));
      bytes[bit / 8] ^= mask;
      read_all(bytes);
      bytes[bit / 8] ^= mask;
    }
  }
}

TEST(CodecTest, GarbageIsRefused) {
  EXPECT_FALSE(decode({}));
  EXPECT_FALSE(decode(Bytes(kMaxPacketBytes + 1)));
  std::mt19937_64 random(1);
  for (int round = 0; round < 2000; ++round) {
    Bytes bytes(random() % 512);
    std::ranges::generate(bytes, [&] { return std::byte(random() & 0xffU); });
    if (bytes.size() >= 8) std::memcpy(bytes.data() + 4, "WCP1", 4);
    read_all(bytes);
  }
}

TEST(CodecTest, HighestCommonVersionIsSpoken) {
  EXPECT_EQ(common_version({1, 3}, {2, 9}), std::uint16_t{3});
  EXPECT_EQ(common_version({2, 4}, {1, 2}), std::uint16_t{2});
  const auto none = common_version({1, 2}, {3, 5});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::version);
  EXPECT_EQ(none.error().message,
            "no common version: this side speaks protocol 1 to 2, the other 3 to 5");
  EXPECT_FALSE(common_version({1, 3}, {3, 2}));  // a range that holds nothing
}

}  // namespace
}  // namespace wc::wire
