// The calls of the simulated driver, as the product's table declares them.
#pragma once

#include <cstddef>

#include "memory/cuda/api.hpp"

namespace sim {

using namespace wc::memory::cuda;  // NOLINT(google-build-using-namespace): this is that API

#define WC_CU(kind, name, version, prototype) CuResult name prototype;
#include "memory/cuda/functions.inc"
#undef WC_CU

}  // namespace sim
