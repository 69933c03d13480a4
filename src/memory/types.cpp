#include "memory/types.hpp"

#include <array>
#include <utility>

namespace wc::memory {
namespace {

constexpr std::array<std::pair<std::string_view, Transport>, 3> kTransports = {{
    {"host_fd", Transport::host_fd},
    {"vmm_fd", Transport::vmm_fd},
    {"torch_ipc", Transport::torch_ipc},
}};

}  // namespace

std::string_view name_of(Transport transport) {
  for (const auto& [name, value] : kTransports) {
    if (value == transport) return name;
  }
  return "unknown";
}

Result<std::optional<Transport>> transport_named(std::string_view name) {
  if (name.empty()) return std::optional<Transport>();
  for (const auto& [known, value] : kTransports) {
    if (known == name) return std::optional<Transport>(value);
  }
  return fail(Code::unsupported,
              "no transport \"{}\": there are host_fd, vmm_fd and torch_ipc (of other "
              "libraries), and no name means the device's default",
              name);
}

}  // namespace wc::memory
