#include "client/introduction.hpp"

#include <algorithm>
#include <fstream>

#include <errno.h>
#include <unistd.h>

namespace wc::client {
namespace {

constexpr std::size_t kMaxLabelBytes = 256;
constexpr std::size_t kMaxCommandBytes = 1024;
constexpr std::size_t kIdentityDigits = 64;  // of a container, as every runtime makes them
constexpr std::size_t kShownDigits = 12;

// Of a file in /proc, which has no size to ask for.
std::string beginning_of(const char* path, std::size_t max_bytes) {
  std::string text(max_bytes, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, file.gcount())));
  return text;
}

// The length of the UTF-8 character at `at`; 0 where there is none.
std::size_t character_at(std::string_view text, std::size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  std::size_t length = 0;
  unsigned least = 0;
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead < 0xe0) length = 2, least = 0x80;
  if (lead >= 0xe0 && lead < 0xf0) length = 3, least = 0x800;
  if (lead >= 0xf0 && lead < 0xf5) length = 4, least = 0x10000;
  if (length == 0 || at + length > text.size()) return 0;
  unsigned value = lead & (0xffU >> (length + 1));
  for (std::size_t n = 1; n < length; ++n) {
    const auto byte = static_cast<unsigned char>(text[at + n]);
    if ((byte & 0xc0U) != 0x80U) return 0;
    value = value << 6U | (byte & 0x3fU);
  }
  const bool surrogate = value >= 0xd800 && value < 0xe000;
  return value < least || value > 0x10ffff || surrogate ? 0 : length;
}

bool is_identity(std::string_view text) {
  return text.size() == kIdentityDigits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// "docker-<64 hex>.scope" and "<64 hex>" of one part of a control group's path.
std::string container_of_part(std::string_view part) {
  part = part.substr(0, part.find('.'));
  const auto dash = part.rfind('-');
  const std::string_view digits = dash == std::string_view::npos ? part : part.substr(dash + 1);
  if (!is_identity(digits)) return {};
  const std::string_view runtime =
      dash == std::string_view::npos ? std::string_view() : part.substr(0, dash + 1);
  return std::string(runtime) + std::string(digits.substr(0, kShownDigits));
}

}  // namespace

std::string plain_text(std::string_view text, std::size_t max_bytes) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = character_at(text, at);
    if (out.size() + std::max<std::size_t>(length, 1) > max_bytes) break;
    const auto first = static_cast<unsigned char>(text[at]);
    if (length == 0) {
      out += '?';
    } else if (first < 0x20 || first == 0x7f) {
      out += ' ';
    } else {
      out += text.substr(at, length);
    }
    at += std::max<std::size_t>(length, 1);
  }
  return out;
}

std::string container_in(std::string_view control_groups) {
  for (std::size_t at = 0; at < control_groups.size();) {
    const std::size_t end =
        std::min(control_groups.find_first_of("/\n:", at), control_groups.size());
    std::string found = container_of_part(control_groups.substr(at, end - at));
    if (!found.empty()) return found;
    at = end + 1;
  }
  return {};
}

wire::fb::HelloT introduce(const std::string& label, const wire::VersionRange& versions) {
  wire::fb::HelloT hello;
  hello.min_version = versions.min;
  hello.max_version = versions.max;
  hello.label = plain_text(label.empty() ? program_invocation_short_name : label, kMaxLabelBytes);
  std::string command = beginning_of("/proc/self/cmdline", kMaxCommandBytes);
  while (!command.empty() && command.back() == '\0') command.pop_back();
  hello.command = plain_text(command, kMaxCommandBytes);
  hello.pid = ::getpid();
  hello.capabilities = wire::kResumes;
  hello.container = plain_text(container_in(beginning_of("/proc/self/cgroup", 4096)), 256);
  return hello;
}

}  // namespace wc::client
