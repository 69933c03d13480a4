// The reader's verdict on files: reads paths, one a line, and answers each with one line: `ok`, a
// tab and what it read as JSON, or the error's code, a tab and the message. compare_reference.py
// asks.
#include <iostream>
#include <string>

#include <nlohmann/json.hpp>

#include "checkpoint/checkpoint.hpp"

namespace {

nlohmann::json described(const wc::checkpoint::Checkpoint& checkpoint) {
  auto tensors = nlohmann::json::object();
  for (const auto& tensor : checkpoint.tensors()) {
    tensors[std::string(tensor.name)] = {{"dtype", wc::name_of(tensor.dtype)},
                                         {"shape", tensor.shape},
                                         {"offset", tensor.offset},
                                         {"bytes", tensor.bytes}};
  }
  auto metadata = nlohmann::json::object();
  for (const auto& [key, value] : checkpoint.shards().front().metadata) {
    metadata[std::string(key)] = value;
  }
  return {{"tensors", tensors}, {"metadata", metadata}};
}

}  // namespace

int main() {
  std::string path;
  while (std::getline(std::cin, path)) {
    const auto checkpoint = wc::checkpoint::Checkpoint::open(path);
    if (checkpoint) {
      std::cout << "ok\t" << described(*checkpoint).dump() << std::endl;
    } else {
      const auto& error = checkpoint.error();
      std::cout << wc::name_of(error.code) << "\t" << error.message << std::endl;
    }
  }
  return 0;
}
