#include "daemon/gpu_node.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string_view>
#include <system_error>

#include <fcntl.h>

namespace wc::daemon {
namespace {

struct Node {
  std::string uuid;
  std::string minor;
};

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  const auto last = text.find_last_not_of(" \t\r");
  return first == text.npos ? std::string_view() : text.substr(first, last - first + 1);
}

// One GPU's `information` file: lines of "Name: value".
Node read_node(const std::filesystem::path& file) {
  Node node;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const auto colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string_view name = trimmed(std::string_view(line).substr(0, colon));
    const std::string_view value = trimmed(std::string_view(line).substr(colon + 1));
    if (name == "GPU UUID") node.uuid = value;
    if (name == "Device Minor") node.minor = value;
  }
  return node;
}

std::vector<Node> list_nodes(const std::string& proc) {
  std::vector<Node> nodes;
  std::error_code none;
  for (const auto& gpu : std::filesystem::directory_iterator(proc, none)) {
    Node node = read_node(gpu.path() / "information");
    if (!node.minor.empty()) nodes.push_back(std::move(node));
  }
  return nodes;
}

}  // namespace

std::vector<Fd> hold_gpu(const std::string& uuid, const GpuNodeRoots& roots) {
  if (uuid == "cpu") return {};
  std::vector<Node> nodes = list_nodes(roots.proc);
  const auto is_it = [&uuid](const Node& node) { return node.uuid == uuid; };
  if (std::ranges::any_of(nodes, is_it)) std::erase_if(nodes, std::not_fn(is_it));
  std::vector<Fd> held;
  for (const Node& node : nodes) {
    const std::string path = roots.dev + "/nvidia" + node.minor;
    Fd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
    if (fd) held.push_back(std::move(fd));
  }
  return held;
}

}  // namespace wc::daemon
