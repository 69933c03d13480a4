// Feeds files, and the files of folders, to a fuzz target: its corpus as an ordinary test, for
// builds without libFuzzer. Fails on an empty corpus, which would prove nothing.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

void collect(const std::filesystem::path& path, std::vector<std::filesystem::path>& files) {
  if (!std::filesystem::is_directory(path)) {
    files.push_back(path);
    return;
  }
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
}

bool feed(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file) {
    std::cerr << "cannot read \"" << path.string() << "\"\n";
    return false;
  }
  // Told before it is fed, so that a crash names its input.
  std::cout << path.string() << " (" << bytes.size() << " B)" << std::endl;
  // A vector of exactly this size lets the address sanitizer see a read past the end.
  const std::vector<std::uint8_t> input(bytes.begin(), bytes.end());
  return LLVMFuzzerTestOneInput(input.data(), input.size()) == 0;
}

}  // namespace

int main(int count, char** arguments) {
  std::vector<std::filesystem::path> files;
  for (int at = 1; at < count; ++at) collect(arguments[at], files);
  std::sort(files.begin(), files.end());
  if (files.empty()) {
    std::cerr << "no input: name files or folders\n";
    return 1;
  }
  return std::all_of(files.begin(), files.end(), feed) ? 0 : 1;
}
