// Host memory for the tests of rooms that may not name an implementation of memory::Device.
#pragma once

#include <memory>

#include <gtest/gtest.h>

#include "memory/host/host_device.hpp"

namespace wc::support {

[[nodiscard]] inline std::unique_ptr<memory::Device> open_host() {
  auto device = memory::open_host_device();
  EXPECT_TRUE(device) << device.error().message;
  return std::move(*device);
}

}  // namespace wc::support
