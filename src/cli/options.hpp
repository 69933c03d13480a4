// What a verb accepts, described once: the parser, --help, the manual pages and the shells'
// completion all read this description. Each option carries the function that takes its value; the
// values land in whatever the verb bound. No thread rule: built and used by main's thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace wc::cli {

/// The limit of a wait that has none: longer than any machine runs, short enough to be added to.
inline constexpr std::chrono::nanoseconds kNoLimit = std::chrono::hours(24 * 365);

/// What a shell may offer for a value.
enum class Completes { nothing, entry, path, entry_or_path, choice };

struct Option {
  std::string names;  // "--timeout", "-h,--help"; of a positional argument "NAME"
  std::string value;  // "DURATION"; empty: a flag
  std::string help;   // a sentence without a full stop
  std::vector<std::string> choices = {};
  Completes completes = Completes::nothing;
  bool positional = false;
  bool required = false;
  bool repeated = false;
  /// Called once for each time it is given; a flag gets an empty text. Errors: invalid_argument.
  std::function<Result<>(const std::string&)> take = {};
};

class Options {
 public:
  // The bound variable must outlive the parse. Each returns the description, to refine it.
  Option& argument(const std::string& name, std::string& out, std::string help);
  Option& text(std::string names, std::string value, std::string& out, std::string help);
  Option& texts(std::string names, std::string value, std::vector<std::string>& out,
                std::string help);
  Option& flag(std::string names, bool& out, std::string help);
  Option& choice(std::string names, std::vector<std::string> choices, std::string& out,
                 std::string help);
  Option& number(std::string names, std::uint32_t& out, std::string help);
  /// A virtual address: "0x200000000000", or decimal.
  Option& address(std::string names, std::uint64_t& out, std::string help);
  /// "30s", "250ms", "2h"; a number alone is seconds.
  Option& duration(std::string names, std::chrono::nanoseconds& out, std::string help);

  [[nodiscard]] const std::deque<Option>& all() const { return all_; }

 private:
  std::deque<Option> all_;  // references stay good
};

/// "--help" of "-h,--help": the name that messages and documents use.
[[nodiscard]] std::string long_name(const Option& option);

}  // namespace wc::cli
