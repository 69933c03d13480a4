#include <cstring>
#include <thread>

#include "tests/abi/abi_fixture.hpp"

namespace wc::abi {
namespace {

using weightcache::Attribute;
using weightcache::Publication;
using weightcache::PublishOptions;
using weightcache::TensorDescription;

class PublishTest : public AbiTest {
 protected:
  static PublishOptions options(const std::string& name, const std::string& source_id = "s") {
    PublishOptions out;
    out.name = name;
    out.fingerprint = R"({"source": {"source_id": ")" + source_id + R"("}})";
    return out;
  }
  static TensorDescription floats(const std::string& name, std::vector<std::int64_t> shape) {
    TensorDescription out;
    out.name = name;
    out.dtype = WC_F32;
    out.shape = std::move(shape);
    return out;
  }
};

TEST_F(PublishTest, AttributesOfEveryTypeCross) {
  Connection connection = connect();
  const std::vector<Attribute> written = {
      {"", "version", false, std::int64_t{-7}},
      {"layer", "bytes", false, weightcache::Bytes{std::byte{0}, std::byte{255}}},
      {"layer", "flag", false, true},
      {"layer", "nothing", false, std::string()},
      {"layer", "scale", false, 0.125},
      {"x", "text", true, std::string("a\0b", 3)},
  };
  auto publication = connection.publish(options("p"));
  ASSERT_TRUE(publication);
  const auto segment = publication->reserve(4096);
  publication->attribute(written.back());  // before its tensor is there
  publication->tensor(floats("x", {2, 3}));
  for (std::size_t i = 0; i + 1 < written.size(); ++i) publication->attribute(written[i]);
  EXPECT_EQ(segment.segment, 0U);
  EXPECT_EQ(publication->publish().outcome, WC_LOADED);

  const auto read = connection.attach("p").attributes();
  ASSERT_EQ(read.size(), written.size());
  for (std::size_t i = 0; i < read.size(); ++i) {
    EXPECT_EQ(read[i].path, written[i].path);
    EXPECT_EQ(read[i].name, written[i].name);
    EXPECT_EQ(read[i].of_tensor, written[i].of_tensor);
    EXPECT_EQ(read[i].value, written[i].value) << read[i].name;
  }
}

TEST_F(PublishTest, StridesFlagsAndSharedBytesCross) {
  Connection connection = connect();
  auto publication = connection.publish(options("p"));
  ASSERT_TRUE(publication);
  const auto segment = publication->reserve(4096);
  const std::vector<float> values = {0, 1, 2, 3, 4, 5};
  publication->write(segment, 512,
                     {reinterpret_cast<const std::byte*>(values.data()), sizeof(float) * 6});
  TensorDescription rows = floats("rows", {2, 3});
  rows.offset = 512;
  rows.requires_grad = true;
  publication->tensor(rows);
  TensorDescription transposed = floats("transposed", {3, 2});  // the same bytes, seen otherwise
  transposed.offset = 512;
  transposed.strides = {1, 3};
  transposed.kind = WC_BUFFER;
  transposed.persistent = false;
  publication->tensor(transposed);
  TensorDescription second_row = floats("second_row", {3});  // inside another tensor
  second_row.offset = 512 + 3 * sizeof(float);
  publication->tensor(second_row);
  publication->publish();

  const Attachment weights = connection.attach("p");
  const Tensor a = weights.at("rows");
  const Tensor b = weights.at("transposed");
  EXPECT_EQ(a.data, b.data);
  EXPECT_TRUE(a.strides.empty());
  ASSERT_EQ(b.strides.size(), 2U);
  EXPECT_EQ(b.strides[0], 1);
  EXPECT_EQ(b.strides[1], 3);
  EXPECT_EQ(a.kind, WC_PARAMETER);
  EXPECT_EQ(b.kind, WC_BUFFER);
  EXPECT_TRUE(a.persistent && a.requires_grad);
  EXPECT_FALSE(b.persistent || b.requires_grad);
  EXPECT_EQ(*static_cast<const float*>(weights.at("second_row").data), 3.0F);
}

TEST_F(PublishTest, SeveralSegmentsAreFilledByThreadsTogether) {
  Connection connection = connect();
  auto publication = connection.publish(options("p"));
  ASSERT_TRUE(publication);
  std::vector<Publication::Reserved> segments;
  for (int i = 0; i < 3; ++i) {
    segments.push_back(publication->reserve(1 << 20));
    TensorDescription tensor = floats("t" + std::to_string(i), {1 << 18});
    tensor.segment = segments.back().segment;
    publication->tensor(tensor);
  }
  std::vector<std::thread> threads;
  for (int part = 0; part < 4; ++part) {
    threads.emplace_back([&, part] {
      const std::vector<std::byte> bytes(1 << 18, static_cast<std::byte>(part + 1));
      for (const auto& segment : segments)
        publication->write(segment, static_cast<std::uint64_t>(part) << 18,
                           {bytes.data(), bytes.size()});
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(publication->publish().entry.segments, 3U);
  const Attachment weights = connection.attach("p");
  EXPECT_EQ(weights.segments().size(), 3U);
  for (const Tensor& tensor : weights) {
    const auto bytes = tensor.host_bytes();
    for (std::size_t at = 0; at < bytes.size(); at += 4096)
      ASSERT_EQ(bytes[at], static_cast<std::byte>((at >> 18) + 1));
  }
}

TEST_F(PublishTest, WhatNoReaderWouldAcceptIsRefusedAtOnce) {
  Connection connection = connect();
  auto publication = connection.publish(options("p"));
  ASSERT_TRUE(publication);
  EXPECT_EQ(code_of([&] { publication->tensor(floats("early", {1})); }), WC_INVALID_ARGUMENT);
  EXPECT_EQ(code_of([&] { (void)publication->reserve(0); }), WC_INVALID_ARGUMENT);
  const auto segment = publication->reserve(4096);
  publication->tensor(floats("x", {4}));
  std::string message;
  const auto refused = [&](auto change) {
    TensorDescription tensor = floats("y", {4});
    change(tensor);
    return code_of([&] { publication->tensor(tensor); }, &message);
  };
  EXPECT_EQ(refused([](auto& t) { t.name = "x"; }), WC_INVALID_ARGUMENT);
  EXPECT_THAT(message, HasSubstr("\"x\""));
  EXPECT_EQ(refused([](auto& t) { t.offset = 1U << 20; }), WC_INVALID_ARGUMENT);
  EXPECT_EQ(refused([](auto& t) { t.segment = 1; }), WC_INVALID_ARGUMENT);
  EXPECT_EQ(refused([](auto& t) { t.segment = 1U << 20; }), WC_INVALID_ARGUMENT);
  EXPECT_EQ(refused([](auto& t) { t.dtype = 99; }), WC_INVALID_ARGUMENT);
  EXPECT_EQ(refused([](auto& t) { t.kind = 2; }), WC_INVALID_ARGUMENT);
  EXPECT_EQ(refused([](auto& t) { t.shape = {-1}; }), WC_INVALID_ARGUMENT);
  EXPECT_EQ(refused([](auto& t) { t.shape.assign(65, 1); }), WC_INVALID_ARGUMENT);
  const std::byte byte{1};
  EXPECT_EQ(code_of([&] { publication->write(segment, 4096, {&byte, 1}); }), WC_INVALID_ARGUMENT);
  EXPECT_EQ(code_of([&] { publication->write(segment, UINT64_MAX, {&byte, 1}); }),
            WC_INVALID_ARGUMENT);
  EXPECT_EQ(code_of([&] { publication->write({7, nullptr}, 0, {&byte, 1}); }), WC_INVALID_ARGUMENT);
  EXPECT_EQ(code_of([&] { publication->attribute({"x", "", true, true}); }), WC_INVALID_ARGUMENT);
  EXPECT_EQ(publication->publish().entry.tensors, 1U);
}

TEST_F(PublishTest, AnUnalignedTensorThatNobodyHoldsIsRefusedAtPublication) {
  Connection connection = connect();
  auto publication = connection.publish(options("p"));
  ASSERT_TRUE(publication);
  (void)publication->reserve(4096);
  TensorDescription tensor = floats("x", {4});
  tensor.offset = 4;
  std::string message;
  EXPECT_EQ(code_of(
                [&] {
                  publication->tensor(tensor);
                  publication->publish();
                },
                &message),
            WC_INVALID_ARGUMENT);
  EXPECT_THAT(message, HasSubstr("512"));
  EXPECT_TRUE(connection.list().empty());
}

TEST_F(PublishTest, WhatWasWrittenCanBeReadInPlaceUntilThePublicationIsFreed) {
  Connection connection = connect();
  for (const bool good : {true, false}) {
    auto publication = connection.publish(options(good ? "good" : "bad", good ? "1" : "2"));
    ASSERT_TRUE(publication);
    const auto segment = publication->reserve(4096);
    std::memset(segment.address, 7, 4096);
    publication->tensor(floats("x", {2, 3}));
    if (!good) publication->attribute(Attribute{"not there", "a", true, true});
    EXPECT_EQ(code_of([&] { publication->publish(); }), good ? WC_OK : WC_INVALID_ARGUMENT);
    EXPECT_EQ(static_cast<const char*>(segment.address)[4095], 7);
  }
  EXPECT_TRUE(support::eventually([&] { return connection.list().size() == 1; }));
}

TEST_F(PublishTest, AnAbandonedPublicationGivesItsMemoryBack) {
  Connection connection = connect();
  {
    auto publication = connection.publish(options("p"));
    ASSERT_TRUE(publication);
    (void)publication->reserve(8 << 20);
    EXPECT_GE(loading_bytes(connection), 8U << 20);
    EXPECT_EQ(connection.list().at(0).state, WC_LOADING);
  }
  EXPECT_TRUE(support::eventually([&] { return loading_bytes(connection) == 0; }));
  EXPECT_TRUE(connection.list().empty());
}

TEST_F(PublishTest, ContentThatIsResidentNeedsNoPublisher) {
  Connection connection = connect();
  publish_bytes(connection, "a", "s", "original");
  EXPECT_FALSE(connection.publish(options("b")).has_value());
  EXPECT_EQ(bytes_of(connection.attach("b")[0]), "original");
  EXPECT_EQ(connection.list().size(), 2U);
}

TEST_F(PublishTest, AnotherContentNeedsReplaceAndGetsANewGeneration) {
  Connection connection = connect();
  publish_bytes(connection, "a", "one", "original");
  EXPECT_EQ(code_of([&] { publish_bytes(connection, "a", "two", "replaced"); }), WC_ALREADY_EXISTS);
  const Attachment old = connection.attach("a");
  EXPECT_EQ(publish_bytes(connection, "a", "two", "replaced", true).entry.generation, 2U);
  EXPECT_EQ(bytes_of(connection.attach("a")[0]), "replaced");
  EXPECT_EQ(bytes_of(connection.attach("a@1")[0]), "original");
  EXPECT_EQ(bytes_of(old[0]), "original");
}

TEST_F(PublishTest, ASetIsThereWhenItsLastRankIs) {
  Connection connection = connect();
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    PublishOptions of_rank = options("p");
    of_rank.rank = rank;
    of_rank.world = 2;
    of_rank.fingerprint = R"({"source": {"source_id": "s"}, "partition": {"tensor":
                              {"size": 2, "rank": )" +
                          std::to_string(rank) + "}}}";
    auto publication = connection.publish(of_rank);
    ASSERT_TRUE(publication);
    (void)publication->reserve(4096);
    publication->tensor(floats("x", {4}));
    const Loaded loaded = publication->publish();
    EXPECT_EQ(loaded.outcome, rank == 0 ? WC_PREPARED : WC_LOADED);
    weightcache::Selector selector("p");
    selector.world = 2;
    EXPECT_EQ(code_of([&] { (void)connection.attach(selector); }) == WC_OK, rank == 1);
  }
}

TEST_F(PublishTest, AnotherPublisherWaitsOrIsTold) {
  Connection first = connect();
  auto publication = first.publish(options("p"));
  ASSERT_TRUE(publication);
  const auto segment = publication->reserve(4096);
  EXPECT_EQ(segment.segment, 0U);
  publication->tensor(floats("x", {4}));
  publication->progress(1, 2);

  PublishOptions impatient = options("p");
  impatient.no_wait = true;
  EXPECT_EQ(code_of([&] { (void)first.publish(impatient); }), WC_BUSY);
  PublishOptions brief = options("p");
  brief.wait = std::chrono::milliseconds(50);
  EXPECT_EQ(code_of([&] { (void)connect().publish(brief); }), WC_TIMED_OUT);
  std::thread waiter([&] {
    Connection second = connect();
    EXPECT_FALSE(second.publish(options("p")).has_value());
  });
  EXPECT_TRUE(support::eventually([&] { return first.status().connections >= 2; }));
  publication->publish();
  waiter.join();
}

}  // namespace
}  // namespace wc::abi
