// publish [NAME]: fills an entry with two tensors, publishes it, attaches to it, and reads it back.
#include <cstring>
#include <iostream>
#include <numeric>
#include <vector>

#include <weightcache/weightcache.hpp>

namespace {

constexpr std::uint64_t kAlignment = 512;  // where a tensor starts in its segment

template <typename T>
weightcache::View<const std::byte> bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const std::byte*>(values.data()), values.size() * sizeof(T)};
}

void publish(weightcache::Connection& connection, const std::string& name) {
  std::vector<float> matrix(6);
  std::iota(matrix.begin(), matrix.end(), 1.0F);
  const std::vector<std::int64_t> counts = {7, 8, 9};

  weightcache::PublishOptions options;
  options.name = name;
  options.fingerprint = R"({"source": {"source_id": "example/two-tensors/1"}})";
  options.source = "examples/publish.cpp";
  auto publication = connection.publish(options);
  if (!publication) {
    std::cout << name << " is resident already\n";
    return;
  }
  const auto segment = publication->reserve(2 * kAlignment);
  // Either through the address, while it lasts, or by write().
  std::memcpy(segment.address, matrix.data(), bytes_of(matrix).size());
  publication->write(segment, kAlignment, bytes_of(counts));

  weightcache::TensorDescription first;
  first.name = "layer.weight";
  first.dtype = WC_F32;
  first.shape = {2, 3};
  first.segment = segment.segment;
  publication->tensor(first);

  weightcache::TensorDescription second;
  second.name = "layer.counts";
  second.dtype = WC_I64;
  second.shape = {3};
  second.segment = segment.segment;
  second.offset = kAlignment;
  second.kind = WC_BUFFER;
  publication->tensor(second);

  publication->attribute({"layer", "scale", false, 0.5});
  const weightcache::Loaded loaded = publication->publish();
  std::cout << loaded.entry.name << '@' << loaded.entry.generation << ' ' << loaded.outcome_name()
            << ", fingerprint " << loaded.entry.fingerprint << '\n';
}

void read_back(weightcache::Connection& connection, const std::string& name) {
  const weightcache::Attachment weights = connection.attach(name);
  for (const weightcache::Tensor& tensor : weights)
    std::cout << tensor.name << ' ' << wc_dtype_name(tensor.dtype) << ' ' << tensor.bytes
              << " bytes\n";
  const weightcache::Tensor matrix = weights.at("layer.weight");
  const auto* values = static_cast<const float*>(matrix.data);
  std::cout << "layer.weight:";
  for (std::size_t i = 0; i < matrix.bytes / sizeof(float); ++i) std::cout << ' ' << values[i];
  std::cout << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "example";
  try {
    weightcache::Connection connection;
    publish(connection, name);
    read_back(connection, name);
    return 0;
  } catch (const weightcache::error& failure) {
    std::cerr << "publish: " << failure.code_name() << ": " << failure.what() << '\n';
    return 1;
  }
}
