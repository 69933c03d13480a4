// Opens, reads and fully checks the checkpoint in the folder given, several times; prints the time
// of each, in nanoseconds, one a line, after a line with the number of tensors. bench/headers.py
// makes the folder and compares.
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <span>
#include <string>

#include "checkpoint/checkpoint.hpp"

int main(int count, char** values) {
  const std::span arguments(values, static_cast<std::size_t>(count));
  if (arguments.size() != 3) {
    std::cerr << "call: headers FOLDER TIMES\n";
    return 2;
  }
  const std::string folder = arguments[1];
  const long times = std::strtol(arguments[2], nullptr, 10);
  for (long at = 0; at < times; ++at) {
    const auto start = std::chrono::steady_clock::now();
    const auto checkpoint = wc::checkpoint::Checkpoint::open(folder);
    const auto took = std::chrono::steady_clock::now() - start;
    if (!checkpoint) {
      std::cerr << checkpoint.error().message << "\n";
      return 1;
    }
    if (at == 0) std::cout << checkpoint->tensors().size() << "\n";
    std::cout << std::chrono::nanoseconds(took).count() << "\n";
  }
  return 0;
}
