// The simulated driver inside a test's own process: a machine of its own in a temporary folder, the
// driver opened by path, and the levers of tests/support/simulated_driver/exports.hpp.
#pragma once

#include <array>
#include <cstdlib>
#include <memory>
#include <string>

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "memory/cuda/driver.hpp"
#include "tests/support/temp_folder.hpp"

namespace wc::support {

/// One for the process: the simulation reads its environment once, when it is first called.
class Simulation {
 public:
  static Simulation& only() {
    static Simulation simulation;
    return simulation;
  }

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string folder() const { return folder_.path().string(); }

  [[nodiscard]] std::shared_ptr<const memory::cuda::Driver> open() const {
    auto driver = memory::cuda::open_driver(path_);
    EXPECT_TRUE(driver) << driver.error().message;
    return driver ? std::make_shared<const memory::cuda::Driver>(std::move(*driver)) : nullptr;
  }

  /// From now on the n-th call answers `result`; 0: none fails.
  void fail_nth(std::uint64_t nth, memory::cuda::CuResult result) const {
    lever<void (*)(std::uint64_t, int)>("wcsim_fail_nth")(nth, static_cast<int>(result));
  }
  [[nodiscard]] std::uint64_t failed() const {
    return lever<std::uint64_t (*)()>("wcsim_failed")();
  }
  [[nodiscard]] std::uint64_t used_bytes(int gpu = 0) const {
    return lever<std::uint64_t (*)(int)>("wcsim_used")(gpu);
  }
  /// Empty where everything was given back.
  [[nodiscard]] std::string leaks() const {
    std::array<char, 512> text{};
    (void)lever<std::size_t (*)(char*, std::size_t)>("wcsim_leaks")(text.data(), text.size());
    return text.data();
  }

 private:
  Simulation() {
    ::setenv("WEIGHTCACHE_SIM_DIR", folder_.path().c_str(), 1);
    ::setenv("WEIGHTCACHE_SIM_GPUS", "2", 0);
    library_ = ::dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(library_, nullptr) << ::dlerror();
  }

  template <typename Function>
  Function lever(const char* name) const {
    return reinterpret_cast<Function>(::dlsym(library_, name));
  }

  std::string path_ = WC_SIMULATED_DRIVER;
  TempFolder folder_;
  void* library_ = nullptr;
};

}  // namespace wc::support
