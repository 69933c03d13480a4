#include "client/connection.hpp"

#include <algorithm>

#include "client/dial.hpp"
#include "client/introduction.hpp"

namespace wc::client {
namespace {

Result<DaemonInfo> greet(Channel& channel, const ConnectOptions& options,
                         const Patience& patience) {
  const auto hello = introduce(options.label, options.versions);
  CallOptions call;
  // What is left of the time; a nanosecond at least, since zero would mean the channel's own.
  call.timeout = std::max(std::chrono::nanoseconds(1), patience.left());
  call.cancellation = options.cancellation;
  auto welcome = TRY(channel.call<wire::fb::WelcomeT>(hello, call));
  const wire::VersionRange chosen = {welcome.version, welcome.version};
  DaemonInfo daemon;
  daemon.protocol = TRY(wire::common_version(options.versions, chosen));
  daemon.epoch = std::move(welcome.epoch);
  daemon.software = std::move(welcome.software);
  daemon.pid = welcome.pid;
  daemon.capabilities = welcome.capabilities;
  return daemon;
}

}  // namespace

Result<std::shared_ptr<Connection>> Connection::connect(const ConnectOptions& options) {
  DialOptions dialing;
  dialing.socket = options.socket;
  dialing.trusted_uids = options.trusted_uids;
  const auto more = TRY(uids_in(options.environment.trust));
  dialing.trusted_uids.insert(dialing.trusted_uids.end(), more.begin(), more.end());
  dialing.patience = Patience::of(options.timeout, options.cancellation);
  dialing.limit = options.timeout;
  dialing.environment = options.environment;
  auto dialed = TRY(dial(dialing));
  auto channel = TRY(Channel::create(std::move(dialed.socket), options.timeout));
  auto daemon = greet(*channel, options, dialing.patience);
  if (!daemon) {
    // What was left of the time says nothing to the caller, who gave all of it.
    if (daemon.error().code == Code::timed_out)
      daemon.error() = impatience(Wake::timed_out, "Hello", options.timeout);
    return Failure(
        std::move(daemon).error().within(format("cannot connect to \"{}\": ", dialed.path)));
  }
  daemon->socket = std::move(dialed.path);
  Connection::Trust trust{options.environment.uid, std::move(dialing.trusted_uids)};
  trust.others.push_back(dialed.uid);
  return std::make_shared<Connection>(std::move(channel), *std::move(daemon), std::move(trust));
}

}  // namespace wc::client
