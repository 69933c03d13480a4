#include "daemon/server.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/units.hpp"
#include "daemon/core.hpp"
#include "daemon/helper_client.hpp"
#include "daemon/keeper.hpp"
#include "daemon/listener.hpp"
#include "daemon/log.hpp"
#include "daemon/notify.hpp"
#include "daemon/process.hpp"
#include "daemon/runtime_dir.hpp"
#include "daemon/signals.hpp"
#include "daemon/supervisor.hpp"
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

  /// `link` is empty where nobody supervises.
  struct Means {
    HelperProcess helper;
    Fd link;
    const Supervisor::Options* family = nullptr;
    Fd listening;
    std::uint64_t descriptor_limit = 0;
  };

  Result<> start(Means means, Shelf& shelf) {
    const AccessPolicy policy = policy_of(options_);
    helper_ = TRY(HelperClient::create(loop_, std::move(means.helper)));
    if (means.link) keeper_ = TRY(Keeper::create(loop_, std::move(means.link), *means.family));
    Core::Options core;
    core.policy = policy;
    core.limits = options_.limits;
    core.descriptor_limit = means.descriptor_limit;
    core.epoch = TRY(new_epoch());
    core.software = "weightcache " WEIGHTCACHE_VERSION;
    core.keeper = keeper_.get();
    core_ = std::make_unique<Core>(loop_, *helper_, core);
    core_->catalog().set_protection(options_.keep_after_death);
    const bool fresh = shelf.empty();
    if (auto restored = core_->restore(shelf); !restored) {
      report(Level::error, "cannot read what is kept; it stays kept, and nobody is served: {}",
             restored.error().message);
      core.unreadable = std::move(restored).error();
      core_ = std::make_unique<Core>(loop_, *helper_, std::move(core));
    }
    if (fresh) TRY(set_budgets(core_->catalog(), options_.budgets, core_->now()));
    signal_watch_ = TRY(loop_.watch(signals_.descriptor(), EPOLLIN, on_signal_));
    Listener::Options listener;
    listener.policy = policy;
    listener.max_connections =
        std::min<std::size_t>(options_.limits.connections, means.descriptor_limit / 2);
    listener.connections = [this] { return core_->connections(); };
    listener.admit = [this](Fd socket, const wire::Peer& peer) {
      return core_->admit(std::move(socket), peer);
    };
    listener_ = TRY(Listener::create(loop_, std::move(means.listening), std::move(listener)));
    return {};
  }

  Result<> run() { return loop_.run(); }
  [[nodiscard]] const std::string& epoch() const { return core_->options().epoch; }
  [[nodiscard]] Keeper* keeper() { return keeper_.get(); }

 private:
  const ServeOptions& options_;
  EventLoop loop_;
  EndSignals signals_;
  std::unique_ptr<HelperClient> helper_;
  std::unique_ptr<Keeper> keeper_;
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

// One daemon, in this process, from its start to its end.
struct Place {
  const ServeOptions& options;
  RuntimeDir& directory;
  FdView listening;
  std::uint64_t descriptor_limit = 0;
};

Result<> serve_here(const Place& place, Fd link, const Supervisor::Options* family, Shelf& shelf,
                    const std::function<void(const std::string& epoch)>& ready) {
  Server::Means means;
  means.helper = TRY(fork_helper());
  Fd settled = std::move(means.helper.settled);
  means.link = std::move(link);
  means.family = family;
  means.listening = TRY(duplicate(place.listening));
  means.descriptor_limit = place.descriptor_limit;
  EndSignals signals = TRY(EndSignals::take());
  EventLoop loop = TRY(EventLoop::create());
  Server server(place.options, std::move(loop), std::move(signals));
  TRY(server.start(std::move(means), shelf));
  wait_until_settled(std::move(settled));
  place.directory.tell_pid(::getpid());
  report(Level::info, "serves \"{}\" (pid {}, epoch {}, {} open files at most)",
         place.options.socket.native(), ::getpid(), server.epoch(),
         format_count(place.descriptor_limit));
  if (server.keeper() != nullptr) server.keeper()->say(LinkWord::ready, server.epoch());
  if (ready) ready(server.epoch());
  const Result<> ended = server.run();
  if (!ended) return ended;
  place.directory.remove_socket();
  if (server.keeper() != nullptr) server.keeper()->say(LinkWord::ended);
  return {};
}

// In a process of its own: what prevents it from starting goes to the supervisor.
int be_daemon(const Place& place, Fd& link, const Supervisor::Options& family, Shelf& shelf) {
  set_process_title("weightcache: daemon");
  ::prctl(PR_SET_NAME, "weightcache");
  Fd own;
  if (auto copy = duplicate(link)) own = std::move(*copy);
  const Result<> served = serve_here(place, std::move(link), &family, shelf, {});
  if (served) return 0;
  report(Level::error, "the daemon ends: {}", served.error().message);
  LinkMessage message;
  message.word = LinkWord::failed;
  message.number = static_cast<std::uint64_t>(-static_cast<int>(served.error().code));
  message.text = served.error().message;
  const std::string bytes = encode_link(message);
  static_cast<void>(wire::send_packet(own, std::as_bytes(std::span(bytes))));
  return 1;
}

}  // namespace

Result<> serve(const ServeOptions& options) {
  TRY(open_standard_descriptors());
  const std::uint64_t descriptor_limit = raise_descriptor_limit();
  start_log({FdView(2), options.log_level, stderr_is_journal()});
  const Notifier notifier = Notifier::from_environment();
  RuntimeDir directory =
      TRY(RuntimeDir::open({options.socket, options.group, lists_somebody(options)}));
  const Fd listening = TRY(directory.listen(kListenBacklog));
  const Place place{options, directory, listening, descriptor_limit};
  const auto ready = [&](pid_t pid, const std::string& epoch) {
    notifier.ready(format("serves {}", options.socket.native()));
    if (options.ready) options.ready({options.socket, epoch, pid});
  };
  Result<> ended;
  if (!options.supervised) {
    Shelf empty;
    ended = serve_here(place, {}, nullptr, empty,
                       [&](const std::string& epoch) { ready(::getpid(), epoch); });
  } else {
    Supervisor::Options family;
    family.shared = directory.descriptors();
    family.shared.push_back(listening);
    family.ready = ready;
    family.daemon = [&](Fd& link, Shelf& shelf) { return be_daemon(place, link, family, shelf); };
    EndSignals signals = TRY(EndSignals::take());
    ended = Supervisor(family).run(signals.descriptor());
  }
  notifier.stopping();
  if (!ended) directory.remove_socket();
  return ended;
}

}  // namespace wc::daemon
