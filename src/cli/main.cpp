#include <clocale>
#include <exception>
#include <string>
#include <vector>

#include "cli/call.hpp"
#include "cli/program.hpp"

int main(int argc, char** argv) {
  // How wide characters are on a terminal; everything else stays as in the C locale.
  std::setlocale(LC_CTYPE, "C.UTF-8");
  try {
    wc::cli::Program program;
    return program.run(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc));
  } catch (const std::exception& error) {
    wc::cli::tell_failure(wc::Error{wc::Code::internal, error.what(), {}}, false);
    return wc::cli::exit_status(wc::Code::internal);
  }
}
