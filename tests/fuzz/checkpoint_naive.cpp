#include "checkpoint_naive.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <set>

#include <nlohmann/json.hpp>

namespace wc::fuzz {
namespace {

__extension__ typedef unsigned __int128 Wide;

// A value as it was written: an object keeps its members in order, and each that stands twice.
struct Node {
  enum class Kind { object, array, text, natural, other };
  Kind kind = Kind::other;
  std::string text;
  std::uint64_t natural = 0;
  std::vector<std::pair<std::string, std::unique_ptr<Node>>> members;
  std::vector<std::unique_ptr<Node>> elements;

  [[nodiscard]] const Node* member(std::string_view name) const {
    for (const auto& [key, value] : members) {
      if (key == name) return value.get();
    }
    return nullptr;
  }
};

class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  std::unique_ptr<Node> root;

  bool null() override { return add(Node::Kind::other) != nullptr; }
  bool boolean(bool) override { return add(Node::Kind::other) != nullptr; }
  // With a sign, be it that of -0.
  bool number_integer(number_integer_t) override { return add(Node::Kind::other) != nullptr; }
  bool number_unsigned(number_unsigned_t value) override {
    add(Node::Kind::natural)->natural = value;
    return true;
  }
  // Too large a number is an error of the parser's; too small a one becomes zero unnoticed.
  bool number_float(number_float_t, const string_t& token) override {
    double number = 0;
    const auto parsed = std::from_chars(token.data(), token.data() + token.size(), number);
    return parsed.ec == std::errc() && add(Node::Kind::other) != nullptr;
  }
  bool string(string_t& value) override {
    add(Node::Kind::text)->text = value;
    return true;
  }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override {
    open_.push_back(add(Node::Kind::object));
    return true;
  }
  bool key(string_t& value) override {
    open_.back()->members.emplace_back(value, nullptr);
    return true;
  }
  bool end_object() override {
    open_.pop_back();
    return true;
  }
  bool start_array(std::size_t) override {
    open_.push_back(add(Node::Kind::array));
    return true;
  }
  bool end_array() override { return end_object(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  Node* add(Node::Kind kind) {
    auto node = std::make_unique<Node>();
    node->kind = kind;
    Node* raw = node.get();
    if (open_.empty()) {
      root = std::move(node);
    } else if (open_.back()->kind == Node::Kind::object) {
      open_.back()->members.back().second = std::move(node);
    } else {
      open_.back()->elements.push_back(std::move(node));
    }
    return raw;
  }

  std::vector<Node*> open_;
};

// A tree of many levels is taken apart level by level: its destructor would recurse.
bool within_levels(std::unique_ptr<Node>& root, unsigned most) {
  std::vector<std::unique_ptr<Node>> level;
  unsigned depth = 0;
  std::vector<const Node*> nodes = {root.get()};
  while (!nodes.empty()) {
    std::vector<const Node*> next;
    bool has_container = false;
    for (const Node* node : nodes) {
      has_container =
          has_container || node->kind == Node::Kind::object || node->kind == Node::Kind::array;
      for (const auto& [name, value] : node->members) next.push_back(value.get());
      for (const auto& value : node->elements) next.push_back(value.get());
    }
    if (has_container) ++depth;
    if (depth > most) break;
    nodes = std::move(next);
  }
  if (depth <= most) return true;
  level.push_back(std::move(root));
  while (!level.empty()) {
    const std::unique_ptr<Node> node = std::move(level.back());
    level.pop_back();
    for (auto& [name, value] : node->members) level.push_back(std::move(value));
    for (auto& value : node->elements) level.push_back(std::move(value));
  }
  return false;
}

bool no_name_twice(const Node& node) {
  std::set<std::string> names;
  for (const auto& [name, value] : node.members) {
    if (!names.insert(name).second || !no_name_twice(*value)) return false;
  }
  return std::all_of(node.elements.begin(), node.elements.end(),
                     [](const auto& value) { return no_name_twice(*value); });
}

bool is_space(char byte) { return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r'; }

// Rules 4 to 9.
std::unique_ptr<Node> parse_header(std::string_view text, bool compat) {
  if (text.find('\0') != std::string_view::npos) return nullptr;  // nlohmann takes it for the end
  while (compat && !text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && (compat ? is_space(text.back()) : text.back() == ' ')) {
    text.remove_suffix(1);
  }
  if (text.empty() || text.front() != '{' || text.back() != '}') return nullptr;
  Builder builder;
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &builder)) return nullptr;
  if (!within_levels(builder.root, 3) || !no_name_twice(*builder.root)) return nullptr;
  return std::move(builder.root);
}

const std::map<std::string, unsigned>& bits() {
  static const std::map<std::string, unsigned> kBits = {
      {"BOOL", 8},        {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"U8", 8},
      {"I8", 8},          {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8},
      {"F8_E5M2FNUZ", 8}, {"I16", 16},    {"U16", 16},    {"F16", 16},    {"BF16", 16},
      {"I32", 32},        {"U32", 32},    {"F32", 32},    {"C64", 64},    {"F64", 64},
      {"I64", 64},        {"U64", 64}};
  return kBits;
}

bool name_allowed(const std::string& name) {
  if (name.empty() || name.size() > 1024) return false;
  for (std::size_t at = 0; at < name.size(); ++at) {
    const auto byte = static_cast<unsigned char>(name[at]);
    if (byte < 0x20 || byte == 0x7F) return false;
    // U+0080 to U+009F
    if (byte == 0xC2 && static_cast<unsigned char>(name[at + 1]) < 0xA0) return false;
  }
  return true;
}

bool naturals(const Node* node, std::vector<std::uint64_t>& values) {
  if (node == nullptr || node->kind != Node::Kind::array) return false;
  for (const auto& element : node->elements) {
    if (element->kind != Node::Kind::natural) return false;
    values.push_back(element->natural);
  }
  return true;
}

// Rules 16 and 17: the bytes, or nothing.
std::optional<std::uint64_t> size_of(const NaiveTensor& tensor) {
  Wide product = 1;
  bool zero = false;
  for (const std::uint64_t dimension : tensor.shape) {
    zero = zero || dimension == 0;
    if (dimension != 0) product *= dimension;
    if (product >= Wide{1} << 63) return std::nullopt;
  }
  const Wide total = (zero ? 0 : product) * bits().at(tensor.dtype);
  if (total >= Wide{1} << 64 || total % 8 != 0) return std::nullopt;
  return static_cast<std::uint64_t>(total / 8);
}

// Rules 11 to 19.
std::optional<NaiveTensor> tensor_of(const std::string& name, const Node& node,
                                     std::uint64_t data_bytes, bool compat) {
  if (!name_allowed(name) || node.kind != Node::Kind::object) return std::nullopt;
  if (!compat && node.members.size() != 3) return std::nullopt;
  const Node* dtype = node.member("dtype");
  if (dtype == nullptr || dtype->kind != Node::Kind::text || !bits().contains(dtype->text)) {
    return std::nullopt;
  }
  NaiveTensor tensor;
  tensor.name = name;
  tensor.dtype = dtype->text;
  std::vector<std::uint64_t> offsets;
  if (!naturals(node.member("shape"), tensor.shape) || tensor.shape.size() > 64)
    return std::nullopt;
  if (!naturals(node.member("data_offsets"), offsets) || offsets.size() != 2) return std::nullopt;
  for (const std::uint64_t dimension : tensor.shape) {
    if (dimension >> 63 != 0) return std::nullopt;
  }
  tensor.begin = offsets[0];
  tensor.end = offsets[1];
  const auto size = size_of(tensor);
  if (!size || tensor.begin > tensor.end || tensor.end > data_bytes) return std::nullopt;
  if (tensor.end - tensor.begin != *size) return std::nullopt;
  return tensor;
}

bool overlap(const NaiveTensor& one, const NaiveTensor& other) {
  if (one.begin == one.end) return other.begin < one.begin && one.begin < other.end;
  return one.begin < other.end && other.begin < one.end && other.begin != other.end;
}

// Rules 20 to 23, pair by pair. Gives the bytes that are covered.
std::optional<std::uint64_t> covered(const std::vector<NaiveTensor>& tensors) {
  std::uint64_t last = 0;
  for (const NaiveTensor& one : tensors) {
    bool joined = one.begin == 0;
    for (const NaiveTensor& other : tensors) {
      if (&one == &other) continue;
      if (overlap(one, other)) return std::nullopt;
      joined = joined || (other.begin != other.end && other.end == one.begin);
    }
    if (!joined) return std::nullopt;
    last = std::max(last, one.end);
  }
  return last;
}

bool add_metadata(const Node& node, NaiveTable& table) {
  if (node.kind != Node::Kind::object) return false;
  for (const auto& [name, value] : node.members) {
    if (value->kind != Node::Kind::text) return false;
    table.metadata.emplace_back(name, value->text);
  }
  return true;
}

}  // namespace

std::optional<NaiveTable> read_naively(std::string_view file, std::uint64_t file_bytes,
                                       const NaiveRules& rules) {
  if (file.size() < 8) return std::nullopt;
  std::uint64_t length = 0;
  for (std::size_t at = 0; at < 8; ++at) {
    length |= std::uint64_t{static_cast<unsigned char>(file[at])} << (8 * at);
  }
  if (length > 100'000'000 || length < 2 || length > file_bytes - 8) return std::nullopt;
  const auto root = parse_header(file.substr(8, length), rules.compat);
  if (root == nullptr || root->members.size() > 1'000'001) return std::nullopt;
  const std::uint64_t data_bytes = file_bytes - 8 - length;
  NaiveTable table;
  for (const auto& [name, value] : root->members) {
    if (name == "__metadata__") {
      if (!add_metadata(*value, table)) return std::nullopt;
      continue;
    }
    const auto tensor = tensor_of(name, *value, data_bytes, rules.compat);
    if (!tensor) return std::nullopt;
    table.tensors.push_back(*tensor);
  }
  const auto end = covered(table.tensors);
  if (!end || (*end != data_bytes && !rules.allow_trailing)) return std::nullopt;
  table.trailing_bytes = data_bytes - *end;
  std::sort(table.tensors.begin(), table.tensors.end());
  return table;
}

std::uint64_t data_wanted(std::string_view header) {
  const auto root = parse_header(header, true);
  std::uint64_t wanted = 0;
  if (root == nullptr) return wanted;
  for (const auto& [name, value] : root->members) {
    std::vector<std::uint64_t> offsets;
    if (!naturals(value->member("data_offsets"), offsets) || offsets.empty()) continue;
    wanted = std::max(wanted, offsets.back());
  }
  // What an address space could hold, with the header.
  return std::min(wanted, std::uint64_t{1} << 62);
}

}  // namespace wc::fuzz
