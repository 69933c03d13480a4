#include "load/pipeline.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/units.hpp"

namespace wc::load {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

class Pipeline {
 public:
  Pipeline(const ReadPlan& plan, const MakeWorker& make_worker, const FillOptions& options)
      : plan_(plan), make_worker_(make_worker), options_(options) {}

  Result<> run() {
    const auto wanted = std::min<std::size_t>(options_.threads, plan_.blocks().size());
    {
      std::vector<std::jthread> threads;
      for (std::size_t n = 0; n < wanted; ++n) {
        if (!start(threads)) break;
      }
    }
    if (error_) return Failure(std::move(*error_));
    report(true);
    return {};
  }

 private:
  // A machine that has no room for one more thread does with those there are.
  bool start(std::vector<std::jthread>& threads) {
    try {
      threads.emplace_back([this] {
        auto done = work();
        if (!done) fail_with(std::move(done).error());
      });
      return true;
    } catch (const std::system_error& error) {
      if (threads.empty()) {
        fail_with({Code::exhausted, format("no thread to read with: {}", error.what()), ""});
      }
      return false;
    }
  }

  Result<> work() {
    const auto worker = TRY(make_worker_());
    const auto& blocks = plan_.blocks();
    while (!stop_.load(std::memory_order_relaxed)) {
      if (options_.cancel != nullptr && options_.cancel->load(std::memory_order_relaxed)) {
        return fail(Code::cancelled, "cancelled with {} of {} read",
                    format_bytes(done_bytes_.load()), format_bytes(plan_.bytes()));
      }
      const std::size_t next = next_.fetch_add(1, std::memory_order_relaxed);
      if (next >= blocks.size()) return worker->finish();
      TRY(worker->take(blocks[next]));
      done_bytes_.fetch_add(blocks[next].bytes, std::memory_order_relaxed);
      report(false);
    }
    return {};
  }

  void fail_with(Error error) {
    const std::scoped_lock lock(mutex_);
    if (!error_) error_ = std::move(error);
    stop_.store(true, std::memory_order_relaxed);
  }

  // Whichever thread finds that it is time tells the caller; the others go on.
  void report(bool last) {
    if (!options_.progress) return;
    std::unique_lock lock(report_mutex_, std::defer_lock);
    if (last) {
      lock.lock();
    } else if (!lock.try_lock()) {
      return;
    }
    const auto now = Clock::now();
    if (!last && now < next_report_) return;
    next_report_ = now + milliseconds(100);
    options_.progress({.done_bytes = done_bytes_.load(std::memory_order_relaxed),
                       .total_bytes = plan_.bytes(),
                       .elapsed = now - begin_});
  }

  const ReadPlan& plan_;
  const MakeWorker& make_worker_;
  const FillOptions& options_;
  const Clock::time_point begin_ = Clock::now();
  std::atomic<std::size_t> next_ = 0;
  std::atomic<std::uint64_t> done_bytes_ = 0;
  std::atomic<bool> stop_ = false;
  std::mutex mutex_;
  std::optional<Error> error_;
  std::mutex report_mutex_;
  Clock::time_point next_report_ = begin_;
};

}  // namespace

Result<> run_pipeline(const ReadPlan& plan, const MakeWorker& make_worker,
                      const FillOptions& options) {
  return Pipeline(plan, make_worker, options).run();
}

}  // namespace wc::load
