// Tensors for frameworks: what a DLPack consumer sees, and how long the memory lives.
#include <cstdint>
#include <string>
#include <vector>

#include "tests/abi/abi_fixture.hpp"

namespace wc::abi {
namespace {

using ::testing::ElementsAre;

// As the standard lays them out, told once more: the library's own declarations are under test.
struct Dl {
  void* data;
  std::int32_t device_type;
  std::int32_t device_id;
  std::int32_t ndim;
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
  std::int64_t* shape;
  std::int64_t* strides;
  std::uint64_t byte_offset;
};
struct Plain {
  Dl tensor;
  void* context;
  void (*deleter)(Plain*);
};
struct Versioned {
  std::uint32_t major;
  std::uint32_t minor;
  void* context;
  void (*deleter)(Versioned*);
  std::uint64_t flags;
  Dl tensor;
};

std::vector<std::int64_t> shape(const Dl& tensor) {
  return {tensor.shape, tensor.shape + tensor.ndim};
}
std::vector<std::int64_t> strides(const Dl& tensor) {
  return {tensor.strides, tensor.strides + tensor.ndim};
}

class DlpackTest : public AbiTest {
 protected:
  void SetUp() override {
    AbiTest::SetUp();
    const std::string folder = files() / "model";
    std::filesystem::create_directories(folder);
    write_file(folder + "/model.safetensors",
               safetensors({{"a", "F32", {2, 3}, std::string(24, 'a')},
                            {"b", "BF16", {4}, std::string(8, 'b')},
                            {"c", "F4", {2, 4}, std::string(4, 'c')},
                            {"d", "F8_E4M3", {}, "d"}}));
    connection_.emplace(connect());
    connection_->load(folder);
  }
  void TearDown() override {
    connection_.reset();
    AbiTest::TearDown();
  }

  [[nodiscard]] wc_attachment* attach(int access = WC_ACCESS_DEFAULT) {
    wc_selector selector = WC_SELECTOR_INIT;
    selector.text = "model";
    wc_attach_options options = WC_ATTACH_OPTIONS_INIT;
    options.access = access;
    wc_attachment* made = nullptr;
    EXPECT_EQ(wc_attach(connection_->get(), &selector, &options, &made), WC_OK);
    return made;
  }
  template <typename T>
  static T* one(const wc_attachment* weights, const char* name, std::uint32_t as_bytes = 0) {
    std::size_t index = 0;
    EXPECT_EQ(wc_attachment_find(weights, name, &index), WC_OK);
    wc_dlpack_options options = WC_DLPACK_OPTIONS_INIT;
    options.versioned = std::is_same_v<T, Versioned> ? 1 : 0;
    options.as_bytes = as_bytes;
    void* out = nullptr;
    EXPECT_EQ(wc_attachment_dlpack(weights, &options, index, 1, &out), WC_OK)
        << wc_last_error_message();
    return static_cast<T*>(out);
  }

  std::optional<Connection> connection_;
};

TEST_F(DlpackTest, ATensorIsToldAsTheStandardHasIt) {
  wc_attachment* weights = attach();
  auto* a = one<Plain>(weights, "a");
  EXPECT_EQ(a->tensor.device_type, 1);
  EXPECT_EQ(a->tensor.code, 2);
  EXPECT_EQ(a->tensor.bits, 32);
  EXPECT_EQ(a->tensor.lanes, 1);
  EXPECT_THAT(shape(a->tensor), ElementsAre(2, 3));
  EXPECT_THAT(strides(a->tensor), ElementsAre(3, 1));
  EXPECT_EQ(std::string(static_cast<char*>(a->tensor.data), 24), std::string(24, 'a'));
  a->deleter(a);
  auto* d = one<Versioned>(weights, "d");
  EXPECT_EQ(d->major, 1U);
  EXPECT_EQ(d->tensor.ndim, 0);
  EXPECT_EQ(d->tensor.code, 10);
  EXPECT_EQ(d->flags, 0U);  // private: may be written
  d->deleter(d);
  wc_detach(weights);
}

TEST_F(DlpackTest, ReadOnlyMemoryIsToldToThoseWhoUnderstandIt) {
  wc_attachment* weights = attach(WC_ACCESS_SHARED);
  auto* a = one<Versioned>(weights, "a");
  EXPECT_EQ(a->flags, 1U);
  wc_dlpack_delete(a, 1);
  wc_detach(weights);
}

TEST_F(DlpackTest, TypesThatAFrameworkLacksAreBytes) {
  wc_attachment* weights = attach();
  const std::uint32_t as_bytes = 1U << WC_BF16 | 1U << WC_F4 | 1U << WC_F8_E4M3;
  auto* b = one<Plain>(weights, "b", as_bytes);
  EXPECT_EQ(b->tensor.code, 1);
  EXPECT_EQ(b->tensor.bits, 8);
  EXPECT_THAT(shape(b->tensor), ElementsAre(8));
  auto* c = one<Plain>(weights, "c", as_bytes);
  EXPECT_THAT(shape(c->tensor), ElementsAre(2, 2));
  EXPECT_THAT(strides(c->tensor), ElementsAre(2, 1));
  auto* d = one<Plain>(weights, "d", as_bytes);
  EXPECT_EQ(d->tensor.ndim, 0);
  for (Plain* tensor : {b, c, d}) wc_dlpack_delete(tensor, 0);
  wc_detach(weights);
}

TEST_F(DlpackTest, TheLastTensorEndsMappingAndLease) {
  wc_attachment* weights = attach();
  auto* a = one<Plain>(weights, "a");
  auto* b = one<Versioned>(weights, "b");
  EXPECT_EQ(wc_attachment_living(weights), 2U);
  wc_detach(weights);
  EXPECT_EQ(connection_->leases().size(), 1U);
  b->deleter(b);
  EXPECT_EQ(static_cast<char*>(a->tensor.data)[23], 'a');
  EXPECT_EQ(connection_->leases().size(), 1U);
  a->deleter(a);
  while (!connection_->leases().empty()) {
  }
}

TEST_F(DlpackTest, WithoutPythonThereIsNoListOfIts) {
  wc_attachment* weights = attach();
  void* list = nullptr;
  EXPECT_EQ(wc_attachment_dlpack_list(weights, nullptr, nullptr, 0, 4, &list), WC_UNSUPPORTED);
  EXPECT_EQ(list, nullptr);
  EXPECT_EQ(wc_attachment_living(weights), 0U);
  wc_detach(weights);
}

TEST_F(DlpackTest, NothingIsGivenWhereOneCannotBe) {
  wc_attachment* weights = attach();
  std::vector<void*> out(5, nullptr);
  EXPECT_EQ(wc_attachment_dlpack(weights, nullptr, 0, 5, out.data()), WC_INVALID_ARGUMENT);
  EXPECT_EQ(wc_attachment_dlpack(weights, nullptr, SIZE_MAX, 2, out.data()), WC_INVALID_ARGUMENT);
  EXPECT_EQ(wc_attachment_dlpack(weights, nullptr, 4, 0, out.data()), WC_OK);
  EXPECT_EQ(out, std::vector<void*>(5, nullptr));
  EXPECT_EQ(wc_attachment_living(weights), 0U);
  wc_detach(weights);
}

TEST_F(DlpackTest, NamesComeTogetherAndPlacesByName) {
  wc_attachment* weights = attach();
  std::size_t bytes = 0;
  ASSERT_EQ(wc_attachment_names(weights, nullptr, 0, &bytes), WC_OK);
  std::string names(bytes, '\0');
  ASSERT_EQ(wc_attachment_names(weights, names.data(), names.size(), &bytes), WC_OK);
  EXPECT_EQ(names, "a\nb\nc\nd\n");
  EXPECT_EQ(wc_attachment_names(weights, names.data(), bytes - 1, &bytes), WC_INVALID_ARGUMENT);
  EXPECT_EQ(bytes, names.size());
  std::size_t index = 9;
  EXPECT_EQ(wc_attachment_find(weights, "c", &index), WC_OK);
  EXPECT_EQ(index, 2U);
  EXPECT_EQ(wc_attachment_find(weights, "e", &index), WC_NOT_FOUND);
  wc_detach(weights);
}

}  // namespace
}  // namespace wc::abi
