// The quantization gate where bytes are shared: at publication and at attach. Pure.
#pragma once

#include <string_view>

#include "base/result.hpp"
#include "manifest/quantization.hpp"

namespace wc::api {

/// Whether sharing the bytes of this fingerprint's form is known to be right. The raw form always
/// is: no engine has touched it. Errors: unsupported (with the verified methods and the ways out).
[[nodiscard]] Result<> check_gate(std::string_view fingerprint_json, manifest::GatePlace place);

}  // namespace wc::api
