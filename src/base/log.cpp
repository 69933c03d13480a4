#include "base/log.hpp"

#include <memory>
#include <mutex>
#include <utility>

namespace wc {
namespace {

struct Sink {
  std::mutex mutex;
  std::shared_ptr<const LogFunction> function;
};

Sink& sink() {
  static Sink only;
  return only;
}

}  // namespace

void set_log(LogFunction function) {
  auto next = function ? std::make_shared<const LogFunction>(std::move(function)) : nullptr;
  const std::lock_guard lock(sink().mutex);
  sink().function = std::move(next);
}

void log_line(Level level, std::string_view line) {
  std::shared_ptr<const LogFunction> function;
  {
    const std::lock_guard lock(sink().mutex);
    function = sink().function;
  }
  if (function) (*function)(level, line);
}

}  // namespace wc
