// What a manifest of 36,000 tensors costs its readers and its writer.
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "manifest/builder.hpp"
#include "manifest/manifest.hpp"

namespace wc::manifest {
namespace {

constexpr std::uint64_t kTensorBytes = std::uint64_t{2} << 20;
constexpr std::uint32_t kExperts = 128;

// Named and shaped as the experts of a large model are; the names in the order of the layers.
std::vector<std::string> names(std::uint32_t count) {
  const std::string kinds[] = {"gate_proj", "up_proj", "down_proj"};
  std::vector<std::string> result;
  for (std::uint32_t at = 0; at < count; ++at) {
    const std::uint32_t expert = at / 3;
    result.push_back("model.layers." + std::to_string(expert / kExperts) + ".mlp.experts." +
                     std::to_string(expert % kExperts) + "." + kinds[at % 3] + ".weight");
  }
  return result;
}

Builder filled(const std::vector<std::string>& tensors) {
  const std::int64_t shape[] = {1024, 1024};
  Builder builder;
  const std::uint64_t bytes = tensors.size() * kTensorBytes;
  bool good = builder.add_segment({.bytes = bytes, .used_bytes = bytes}).has_value();
  good &= builder
              .set_fingerprint(raw_fingerprint(
                  {{"model.safetensors", bytes, "xxh3t-4m:00112233445566778899aabbccddeeff"}}))
              .has_value();
  builder.reserve(static_cast<std::uint32_t>(tensors.size()));
  std::uint64_t offset = 0;
  for (const std::string& name : tensors) {
    good &=
        builder.add_tensor({.name = name, .dtype = Dtype::bf16, .shape = shape, .offset = offset})
            .has_value();
    offset += kTensorBytes;
  }
  return good ? std::move(builder) : Builder();
}

std::vector<std::byte> built(std::uint32_t count) {
  auto bytes = filled(names(count)).finish();
  return bytes ? std::move(*bytes) : std::vector<std::byte>();
}

void count_tensors(benchmark::State& state) {
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * state.range(0));
}

void check(benchmark::State& state, bool full) {
  const auto bytes = built(static_cast<std::uint32_t>(state.range(0)));
  for (auto unused : state) {
    auto manifest = Manifest::check(bytes, {.full = full});
    if (!manifest) return state.SkipWithError(manifest.error().message.c_str());
    benchmark::DoNotOptimize(manifest);
  }
  state.counters["bytes"] = static_cast<double>(bytes.size());
  count_tensors(state);
}

void reader_check(benchmark::State& state) { check(state, false); }
void full_check(benchmark::State& state) { check(state, true); }

// Every tensor's name and address, as an attach hands them out.
void walk(benchmark::State& state) {
  const auto bytes = built(static_cast<std::uint32_t>(state.range(0)));
  const auto manifest = Manifest::check(bytes, {.full = false});
  if (!manifest) return state.SkipWithError("no manifest");
  for (auto unused : state) {
    std::uint64_t sum = 0;
    for (std::uint32_t at = 0; at < manifest->tensor_count(); ++at) {
      const TensorView tensor = manifest->tensor(at);
      sum += tensor.offset + tensor.name.size();
    }
    benchmark::DoNotOptimize(sum);
  }
  count_tensors(state);
}

void find(benchmark::State& state) {
  const auto all = names(static_cast<std::uint32_t>(state.range(0)));
  const auto bytes = built(static_cast<std::uint32_t>(state.range(0)));
  const auto manifest = Manifest::check(bytes, {.full = false});
  if (!manifest) return state.SkipWithError("no manifest");
  std::size_t at = 0;
  for (auto unused : state) {
    benchmark::DoNotOptimize(manifest->find(all[at]));
    at = (at + 7919) % all.size();
  }
}

void finish(benchmark::State& state) {
  const Builder builder = filled(names(static_cast<std::uint32_t>(state.range(0))));
  for (auto unused : state) {
    auto bytes = builder.finish();
    if (!bytes) return state.SkipWithError(bytes.error().message.c_str());
    benchmark::DoNotOptimize(bytes);
  }
  count_tensors(state);
}

// Adding and finishing.
void build(benchmark::State& state) {
  const auto all = names(static_cast<std::uint32_t>(state.range(0)));
  for (auto unused : state) {
    auto bytes = filled(all).finish();
    if (!bytes) return state.SkipWithError(bytes.error().message.c_str());
    benchmark::DoNotOptimize(bytes);
  }
  count_tensors(state);
}

BENCHMARK(reader_check)->Name("manifest/reader_check")->Arg(400)->Arg(36000);
BENCHMARK(full_check)->Name("manifest/full_check")->Arg(36000);
BENCHMARK(walk)->Name("manifest/walk")->Arg(36000);
BENCHMARK(find)->Name("manifest/find")->Arg(36000);
BENCHMARK(finish)->Name("manifest/finish")->Arg(36000)->Unit(benchmark::kMillisecond);
BENCHMARK(build)->Name("manifest/build")->Arg(36000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace wc::manifest

BENCHMARK_MAIN();
