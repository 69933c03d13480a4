// Numbers of the ABI in words, and the library's own version and voice.
#include <array>
#include <string_view>

#include "weightcache/weightcache.h"

#include "api/guard.hpp"
#include "base/dtype.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "load/fill.hpp"
#include "memory/types.hpp"

namespace wc::api {
namespace {

constexpr std::array kStates = {"loading", "published", "draining", "gone", "failed"};
constexpr std::array kOutcomes = {"loaded", "already_resident", "prepared"};

template <std::size_t N>
const char* name_in(const std::array<const char*, N>& names, int number) {
  const auto at = static_cast<std::size_t>(number);
  return number >= 0 && at < names.size() ? names.at(at) : "unknown";
}

// The ABI's numbers are the inner ones.
static_assert(static_cast<int>(Code::internal) == WC_INTERNAL);
static_assert(static_cast<int>(Code::not_found) == WC_NOT_FOUND);
static_assert(static_cast<int>(Dtype::boolean) == WC_BOOL);
static_assert(static_cast<int>(Dtype::bf16) == WC_BF16);
static_assert(static_cast<int>(Dtype::u64) == WC_U64);
static_assert(static_cast<int>(Level::debug) == WC_LOG_DEBUG);
static_assert(static_cast<int>(Level::error) == WC_LOG_ERROR);
static_assert(static_cast<int>(memory::Transport::host_fd) == WC_HOST_FD);
static_assert(static_cast<int>(memory::Transport::vmm_fd) == WC_VMM_FD);
static_assert(static_cast<int>(memory::Transport::torch_ipc) == WC_TORCH_IPC);
static_assert(static_cast<int>(load::Tier::automatic) == WC_TIER_AUTO);
static_assert(static_cast<int>(load::Tier::buffered) == WC_TIER_BUFFERED);

}  // namespace
}  // namespace wc::api

using wc::api::guarded;

extern "C" {

// The names that name_of() returns are literals, hence terminated.

const char* wc_error_name(int code) { return wc::name_of(wc::code_of(code)).data(); }

const char* wc_version(void) { return WEIGHTCACHE_VERSION; }

void wc_set_log(wc_log_function function, void* user) {
  (void)guarded([&]() -> wc::Result<> {
    wc::LogFunction log;
    if (function != nullptr)
      log = [function, user](wc::Level level, std::string_view line) {
        function(static_cast<int>(level), std::string(line).c_str(), user);
      };
    wc::set_log(std::move(log));
    return {};
  });
}

const char* wc_state_name(int state) { return wc::api::name_in(wc::api::kStates, state); }

const char* wc_outcome_name(int outcome) { return wc::api::name_in(wc::api::kOutcomes, outcome); }

const char* wc_transport_name(int transport) {
  switch (transport) {
    case WC_HOST_FD:
    case WC_VMM_FD:
    case WC_TORCH_IPC:
      return wc::memory::name_of(static_cast<wc::memory::Transport>(transport)).data();
    default:
      return "unknown";
  }
}

const char* wc_dtype_name(int dtype) {
  const auto known = wc::dtype_numbered(static_cast<unsigned>(dtype));
  return known ? wc::name_of(*known).data() : nullptr;
}

uint32_t wc_dtype_bits(int dtype) {
  const auto known = wc::dtype_numbered(static_cast<unsigned>(dtype));
  return known ? wc::bits_of(*known) : 0;
}

int wc_dtype_named(const char* name) {
  const auto known = name != nullptr ? wc::dtype_named(name) : std::nullopt;
  return known ? static_cast<int>(*known) : 0;
}

}  // extern "C"
