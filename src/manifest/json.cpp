#include "manifest/json.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/units.hpp"
#include "manifest/limits.hpp"
#include "manifest/text.hpp"

namespace wc::manifest {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kMaxInteger = (std::int64_t{1} << 53) - 1;

// Receives the parser's events, builds the value, and stops at the first thing that an identity
// may not hold. The parser itself does not recurse.
class Handler {
 public:
  explicit Handler(const JsonOptions& options) : options_(options) {}

  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(Json::number_integer_t value) {
    if (!options_.floats && (value < -kMaxInteger || value > kMaxInteger))
      return refuse_integer(std::to_string(value));
    return add(value);
  }
  bool number_unsigned(Json::number_unsigned_t value) {
    if (!options_.floats && value > static_cast<Json::number_unsigned_t>(kMaxInteger))
      return refuse_integer(std::to_string(value));
    return add(value);
  }
  bool number_float(Json::number_float_t value, const std::string& token) {
    if (options_.floats) return add(value);
    return refuse(format("{} is no integer within +-(2^53 - 1); write it as text", shown(token)));
  }
  bool string(std::string& value) { return add(std::move(value)); }
  bool binary(Json::binary_t& /*value*/) { return refuse("binary data"); }

  bool start_object(std::size_t /*elements*/) { return open(Json::object()); }
  bool start_array(std::size_t /*elements*/) { return open(Json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(std::string& name) {
    if (stack_.back()->contains(name)) {
      keys_.back() = name;
      return refuse("the key stands twice");
    }
    keys_.back() = std::move(name);
    return true;
  }
  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const Json::exception& /*what*/) {
    if (problem_.empty()) problem_ = format("no valid JSON at byte {}", format_count(position));
    return false;
  }

  [[nodiscard]] const std::string& problem() const { return problem_; }
  Json take() { return std::move(root_); }

 private:
  Json* place(Json value) {
    if (stack_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json& parent = *stack_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    return &(parent[keys_.back()] = std::move(value));
  }
  template <typename T>
  bool add(T&& value) {
    if (++values_ > kMaxJsonValues)
      return refuse(format("more than {} values", format_count(kMaxJsonValues)));
    place(Json(std::forward<T>(value)));
    return true;
  }
  // A parent's address holds while its child is open: nothing is added to the parent meanwhile.
  bool open(Json container) {
    if (stack_.size() == kMaxJsonDepth) return refuse(format("more than {} levels", kMaxJsonDepth));
    stack_.push_back(place(std::move(container)));
    keys_.emplace_back();
    return true;
  }
  bool close() {
    stack_.pop_back();
    keys_.pop_back();
    return true;
  }
  bool refuse_integer(const std::string& number) {
    return refuse(number + " is past +-(2^53 - 1); write it as text");
  }
  bool refuse(const std::string& what) {
    problem_ = format("field \"{}\": {}", path(), what);
    return false;
  }
  [[nodiscard]] std::string path() const {
    std::string out;
    for (std::size_t at = 0; at < stack_.size(); ++at) {
      if (stack_[at]->is_array()) {
        const bool open = at + 1 < stack_.size();
        out += format("[{}]", stack_[at]->size() - (open ? 1 : 0));
      } else {
        out += (out.empty() ? "" : ".") + shown(keys_[at]);
      }
    }
    return out;
  }

  JsonOptions options_;
  Json root_;
  std::vector<Json*> stack_;       // open containers, outermost first
  std::vector<std::string> keys_;  // of each: the member that is being read
  std::size_t values_ = 0;
  std::string problem_;
};

// Code points from U+10000 on are written as surrogates in UTF-16 and sort before U+E000: the only
// place where its order is not that of UTF-8.
bool utf16_less(const std::string& left, const std::string& right) {
  const auto [at, other] = std::mismatch(left.begin(), left.end(), right.begin(), right.end());
  if (at == left.end() || other == right.end()) return other != right.end();
  const auto rank = [](char byte) {
    const auto value = static_cast<unsigned char>(byte);
    // A difference in a lead byte decides between planes; 0xee and 0xef lead U+E000 to U+FFFF.
    return value == 0xee || value == 0xef ? value + 0x100 : +value;
  };
  return rank(*at) < rank(*other);
}

void write_string(std::string& out, std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  out += '"';
  for (const char byte : text) {
    switch (byte) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\f':
        out += "\\f";
        break;
      case '\r':
        out += "\\r";
        break;
      default: {
        const auto value = static_cast<unsigned char>(byte);
        if (value < 0x20) {
          out += "\\u00";
          out += kDigits[value >> 4];
          out += kDigits[value & 15];
        } else {
          out += byte;
        }
      }
    }
  }
  out += '"';
}

// Recursion is bounded by the depth that parse_json() admits.
void write(std::string& out, const Json& value) {
  if (value.is_object()) {
    std::vector<const Json::object_t::value_type*> members;
    for (const auto& member : value.get_ref<const Json::object_t&>()) members.push_back(&member);
    std::sort(members.begin(), members.end(), [](const auto* left, const auto* right) {
      return utf16_less(left->first, right->first);
    });
    out += '{';
    for (const auto* member : members) {
      if (member != members.front()) out += ',';
      write_string(out, member->first);
      out += ':';
      write(out, member->second);
    }
    out += '}';
  } else if (value.is_array()) {
    out += '[';
    for (std::size_t at = 0; at < value.size(); ++at) {
      if (at != 0) out += ',';
      write(out, value[at]);
    }
    out += ']';
  } else if (value.is_string()) {
    write_string(out, value.get_ref<const std::string&>());
  } else if (value.is_number_unsigned()) {
    out += std::to_string(value.get<std::uint64_t>());
  } else if (value.is_number_integer()) {
    out += std::to_string(value.get<std::int64_t>());
  } else {
    out += value.is_null() ? "null" : value.get<bool>() ? "true" : "false";
  }
}

}  // namespace

Result<Json> parse_json(std::string_view text, const JsonOptions& options) {
  if (text.size() > kMaxFingerprintJsonBytes) {
    return fail(Code::invalid_argument, "JSON of {}, at most {}", format_bytes(text.size()),
                format_bytes(kMaxFingerprintJsonBytes));
  }
  // The parser takes a NUL for the end, and passes over a byte order mark.
  const std::size_t nul = text.find('\0');
  if (nul != std::string_view::npos || text.starts_with("\xef\xbb\xbf")) {
    return fail(Code::invalid_argument, "no valid JSON at byte {}",
                format_count(nul == std::string_view::npos ? 0 : nul));
  }
  Handler handler(options);
  if (!Json::sax_parse(text.begin(), text.end(), &handler))
    return fail(Code::invalid_argument, "{}", handler.problem());
  return handler.take();
}

std::string write_canonical(const Json& value) {
  std::string out;
  write(out, value);
  return out;
}

}  // namespace wc::manifest
