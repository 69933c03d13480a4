#include "cli/options.hpp"

#include <charconv>
#include <utility>

#include "base/units.hpp"

namespace wc::cli {
namespace {

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) {
    if (!text.empty()) text += '|';
    text += word;
  }
  return text;
}

std::function<Result<>(const std::string&)> stores(std::string& out) {
  return [&out](const std::string& given) -> Result<> {
    out = given;
    return {};
  };
}

}  // namespace

Option& Options::argument(const std::string& name, std::string& out, std::string help) {
  return all_.emplace_back(Option{.names = name,
                                  .value = name,
                                  .help = std::move(help),
                                  .positional = true,
                                  .required = true,
                                  .take = stores(out)});
}

Option& Options::text(std::string names, std::string value, std::string& out, std::string help) {
  return all_.emplace_back(Option{.names = std::move(names),
                                  .value = std::move(value),
                                  .help = std::move(help),
                                  .take = stores(out)});
}

Option& Options::texts(std::string names, std::string value, std::vector<std::string>& out,
                       std::string help) {
  auto take = [&out](const std::string& given) -> Result<> {
    out.push_back(given);
    return {};
  };
  return all_.emplace_back(Option{.names = std::move(names),
                                  .value = std::move(value),
                                  .help = std::move(help),
                                  .repeated = true,
                                  .take = std::move(take)});
}

Option& Options::flag(std::string names, bool& out, std::string help) {
  auto take = [&out](const std::string&) -> Result<> {
    out = true;
    return {};
  };
  return all_.emplace_back(Option{
      .names = std::move(names), .value = {}, .help = std::move(help), .take = std::move(take)});
}

Option& Options::choice(std::string names, std::vector<std::string> choices, std::string& out,
                        std::string help) {
  auto take = [choices, &out](const std::string& given) -> Result<> {
    for (const auto& known : choices) {
      if (known == given) {
        out = given;
        return {};
      }
    }
    return fail(Code::invalid_argument, "\"{}\" is none of {}", given, joined(choices));
  };
  return all_.emplace_back(Option{.names = std::move(names),
                                  .value = joined(choices),
                                  .help = std::move(help),
                                  .choices = std::move(choices),
                                  .completes = Completes::choice,
                                  .take = std::move(take)});
}

Option& Options::number(std::string names, std::uint32_t& out, std::string help) {
  auto take = [&out](const std::string& given) -> Result<> {
    const char* end = given.data() + given.size();
    const auto [rest, code] = std::from_chars(given.data(), end, out);
    if (code == std::errc{} && rest == end) return {};
    return fail(Code::invalid_argument, "\"{}\" is not a number from 0 to 4,294,967,295", given);
  };
  return all_.emplace_back(Option{
      .names = std::move(names), .value = "N", .help = std::move(help), .take = std::move(take)});
}

Option& Options::address(std::string names, std::uint64_t& out, std::string help) {
  auto take = [&out](const std::string& given) -> Result<> {
    const bool hex = given.starts_with("0x") || given.starts_with("0X");
    const char* const begin = given.data() + (hex ? 2 : 0);
    const char* const end = given.data() + given.size();
    const auto [rest, code] = std::from_chars(begin, end, out, hex ? 16 : 10);
    if (code == std::errc{} && rest == end && out != 0) return {};
    return fail(Code::invalid_argument, "\"{}\" is no address like 0x200000000000", given);
  };
  return all_.emplace_back(Option{.names = std::move(names),
                                  .value = "ADDRESS",
                                  .help = std::move(help),
                                  .take = std::move(take)});
}

Option& Options::duration(std::string names, std::chrono::nanoseconds& out, std::string help) {
  auto take = [&out](const std::string& given) -> Result<> {
    out = TRY(parse_duration(given));
    return {};
  };
  return all_.emplace_back(Option{.names = std::move(names),
                                  .value = "DURATION",
                                  .help = std::move(help),
                                  .take = std::move(take)});
}

std::string long_name(const Option& option) {
  return option.names.substr(option.names.rfind(',') + 1);
}

}  // namespace wc::cli
