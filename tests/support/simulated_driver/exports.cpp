// What dlsym finds: cuGetProcAddress, in both of its forms, and the test's own levers.
#include "exports.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <string_view>

#include "calls.hpp"
#include "state.hpp"

namespace {

void* find(std::string_view name) {
  static const std::map<std::string_view, void*> table = {
#define WC_CU(kind, function, version, prototype) \
  {#function, reinterpret_cast<void*>(&sim::function)},
#include "memory/cuda/functions.inc"
#undef WC_CU
  };
  const auto found = table.find(name);
  if (found == table.end()) sim::refuse(wc::format("knows no {}", name));
  return sim::is_missing(name) ? nullptr : found->second;
}

}  // namespace

extern "C" {

sim::CuResult cuGetProcAddress(const char* symbol, void** function, int /*version*/,
                               std::uint64_t /*flags*/) {
  *function = find(symbol);
  return *function != nullptr ? sim::CuResult::success : sim::CuResult::not_found;
}

sim::CuResult cuGetProcAddress_v2(const char* symbol, void** function, int version,
                                  std::uint64_t flags, int* status) {
  const sim::CuResult result = cuGetProcAddress(symbol, function, version, flags);
  *status = result == sim::CuResult::success ? 0 : 1;  // CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND
  return result;
}

void wcsim_fail_nth(std::uint64_t nth, int result) {
  sim::State& s = sim::state();
  const std::lock_guard lock(s.mutex);
  s.failures.clear();
  s.failed = 0;
  s.calls = 0;
  s.uses.clear();
  if (nth > 0) s.failures.push_back({"*", nth, static_cast<sim::CuResult>(result)});
}

std::uint64_t wcsim_failed() {
  sim::State& s = sim::state();
  const std::lock_guard lock(s.mutex);
  return s.failed;
}

std::uint64_t wcsim_calls() {
  sim::State& s = sim::state();
  const std::lock_guard lock(s.mutex);
  return s.calls;
}

std::size_t wcsim_leaks(char* text, std::size_t size) {
  sim::State& s = sim::state();
  const std::lock_guard lock(s.mutex);
  const std::string found = sim::leaks(s);
  const std::size_t count = std::min(found.size(), size - 1);
  std::memcpy(text, found.data(), count);
  text[count] = '\0';
  return found.size();
}

std::uint64_t wcsim_used(int gpu) { return sim::used_bytes(gpu); }

}  // extern "C"
