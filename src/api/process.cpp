#include "api/process.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <iterator>

#include <errno.h>
#include <unistd.h>

namespace wc::api {

std::string software_name() { return "weightcache " WEIGHTCACHE_VERSION; }

std::string program_name() { return program_invocation_short_name; }

std::string command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  while (!text.empty() && text.back() == '\0') text.pop_back();
  std::ranges::replace(text, '\0', ' ');
  return text;
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data())
                                                          : std::string();
}

std::int64_t unix_now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace wc::api
