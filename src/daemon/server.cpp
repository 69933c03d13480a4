#include "daemon/server.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/units.hpp"
#include "daemon/core.hpp"
#include "daemon/helper_client.hpp"
#include "daemon/listener.hpp"
#include "daemon/log.hpp"
#include "daemon/notify.hpp"
#include "daemon/process.hpp"
#include "daemon/runtime_dir.hpp"
#include "daemon/signals.hpp"
#include "memory/host/headroom.hpp"

namespace wc::daemon {
namespace {

Result<std::string> new_epoch() {
  std::array<unsigned char, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != std::ssize(bytes)) {
    return fail_errno("getrandom");
  }
  std::string epoch;
  for (const unsigned byte : bytes) epoch += format("{:02x}", byte);
  return epoch;
}

Result<> set_budgets(catalog::Catalog& catalog, const std::vector<DeviceBudget>& budgets,
                     const catalog::Now& now) {
  const bool cpu_given = std::ranges::any_of(
      budgets, [](const DeviceBudget& budget) { return budget.device == "cpu"; });
  if (!cpu_given) {
    const auto allowed = TRY(memory::allowed_memory());
    const std::uint64_t bytes = allowed.bytes / 10 * 9;
    TRY(catalog.set_budget("cpu", bytes, now, format("nine tenths of {}", allowed.limit)));
    report(Level::info, "keeps {} of host memory at most: nine tenths of {} ({})",
           format_bytes(bytes), allowed.limit, format_bytes(allowed.bytes));
  }
  for (const DeviceBudget& budget : budgets) {
    TRY(catalog.set_budget(budget.device, budget.bytes, now));
  }
  return {};
}

bool lists_somebody(const ServeOptions& options) {
  return !options.access.read.empty() || !options.access.publish.empty();
}

// Whoever a group lets into the directory may read.
AccessPolicy policy_of(const ServeOptions& options) {
  AccessPolicy::Lists lists = options.access;
  if (options.group) lists.read.groups.push_back(*options.group);
  return {::geteuid(), std::move(lists)};
}

// Everything that lives as long as the loop turns, in the order in which it may come and must not
// go: sessions before the helper that closes for them, both before the loop.
class Server {
 public:
  Server(const ServeOptions& options, EventLoop loop, EndSignals signals)
      : options_(options), loop_(std::move(loop)), signals_(std::move(signals)) {}

  Result<> start(RuntimeDir& directory, HelperProcess helper, std::uint64_t descriptor_limit) {
    const AccessPolicy policy = policy_of(options_);
    helper_ = TRY(HelperClient::create(loop_, std::move(helper)));
    Core::Options core;
    core.policy = policy;
    core.limits = options_.limits;
    core.descriptor_limit = descriptor_limit;
    core.epoch = TRY(new_epoch());
    core.software = "weightcache " WEIGHTCACHE_VERSION;
    core_ = std::make_unique<Core>(loop_, *helper_, std::move(core));
    core_->catalog().set_protection(options_.keep_after_death);
    TRY(set_budgets(core_->catalog(), options_.budgets, core_->now()));
    signal_watch_ = TRY(loop_.watch(signals_.descriptor(), EPOLLIN, on_signal_));
    Listener::Options listener;
    listener.policy = policy;
    listener.max_connections =
        std::min<std::size_t>(options_.limits.connections, descriptor_limit / 2);
    listener.connections = [this] { return core_->connections(); };
    listener.admit = [this](Fd socket, const wire::Peer& peer) {
      return core_->admit(std::move(socket), peer);
    };
    Fd listening = TRY(directory.listen(kListenBacklog));
    listener_ = TRY(Listener::create(loop_, std::move(listening), std::move(listener)));
    return {};
  }

  Result<> run() { return loop_.run(); }
  [[nodiscard]] const std::string& epoch() const { return core_->options().epoch; }

 private:
  const ServeOptions& options_;
  EventLoop loop_;
  EndSignals signals_;
  std::unique_ptr<HelperClient> helper_;
  std::unique_ptr<Core> core_;
  CallHandler on_signal_{[this](std::uint32_t) {
    if (const auto name = signals_.next()) {
      report(Level::info, "ends: {}", *name);
      loop_.stop();
    }
  }};
  EventLoop::Watch signal_watch_;
  std::unique_ptr<Listener> listener_;
};

}  // namespace

Result<> serve(const ServeOptions& options) {
  TRY(open_standard_descriptors());
  const std::uint64_t descriptor_limit = raise_descriptor_limit();
  HelperProcess helper = TRY(fork_helper());
  start_log({FdView(2), options.log_level, stderr_is_journal()});
  const Notifier notifier = Notifier::from_environment();
  RuntimeDir directory =
      TRY(RuntimeDir::open({options.socket, options.group, lists_somebody(options)}));
  EndSignals signals = TRY(EndSignals::take());
  EventLoop loop = TRY(EventLoop::create());
  Server server(options, std::move(loop), std::move(signals));
  TRY(server.start(directory, std::move(helper), descriptor_limit));
  report(Level::info, "serves \"{}\" (pid {}, epoch {}, {} open files at most)",
         options.socket.native(), ::getpid(), server.epoch(), format_count(descriptor_limit));
  notifier.ready(format("serves {}", options.socket.native()));
  if (options.ready) options.ready({options.socket, server.epoch(), ::getpid()});
  const Result<> ended = server.run();
  notifier.stopping();
  directory.remove_socket();
  return ended;
}

}  // namespace wc::daemon
