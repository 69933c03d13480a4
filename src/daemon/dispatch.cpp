#include "daemon/dispatch.hpp"

#include <unistd.h>

#include "daemon/handlers.hpp"
#include "daemon/log.hpp"

namespace wc::daemon {
namespace {

using wire::name_of;

template <typename BodyT>
void answer(Call call, const fb::Message& message) {
  const auto body = wire::body_as<BodyT>(message);
  if (!body) return call.session.part(call.request, body.error());
  const auto done = handle(call, *body);
  if (done) return;
  if (done.error().code == Code::internal) report(Level::error, "{}", done.error().message);
  call.session.send_failure(call.request, done.error());
}

Result<> greet(Call& call, const fb::HelloT& hello) {
  if (const auto& why = call.core.options().unreadable)
    return fail(Code::version,
                "the daemon keeps memory whose state it can't read, and gives none "
                "of it out: {}",
                why->message);
  const auto version = TRY(wire::common_version({}, {hello.min_version, hello.max_version}));
  TRY(call.core.catalog().session_opened(call.session.id()));
  const auto kept = [](const std::string& text) {
    return std::string(wire::clipped(text, kMaxPeerTextBytes));
  };
  call.session.greet(
      {kept(hello.label), kept(hello.command), kept(hello.container), hello.capabilities});
  fb::WelcomeT welcome;
  welcome.version = version;
  welcome.epoch = call.core.options().epoch;
  welcome.pid = ::getpid();
  welcome.software = call.core.options().software;
  call.session.send(call.request, welcome);
  return {};
}

void first_message(Call call, const fb::Message& message) {
  const auto hello = wire::body_as<fb::HelloT>(message);
  if (!hello) return call.session.part(call.request, hello.error());
  const auto greeted = greet(call, *hello);
  if (!greeted) call.session.part(call.request, greeted.error());
}

enum class Right : std::uint8_t { none, read, publish, operate };

Right right_for(fb::Body type) {
  switch (type) {
    case fb::Body::Attach:
    case fb::Body::Detach:
    case fb::Body::Lookup:
    case fb::Body::Wait:
    case fb::Body::Cancel:
    case fb::Body::List:
    case fb::Body::Leases:
    case fb::Body::Status:
      return Right::read;
    case fb::Body::Begin:
    case fb::Body::Reserve:
    case fb::Body::Supply:
    case fb::Body::ReportProgress:
    case fb::Body::Publish:
    case fb::Body::Abandon:
      return Right::publish;
    case fb::Body::Evict:
    case fb::Body::Pin:
    case fb::Body::Drain:
    case fb::Body::Stop:
      return Right::operate;
    default:
      return Right::none;
  }
}

bool has(Right right, const AccessPolicy& policy, const wire::Peer& peer) {
  switch (right) {
    case Right::none:
      return false;
    case Right::read:
      return policy.may_connect(peer);
    case Right::publish:
      return policy.may_publish(peer);
    case Right::operate:
      return policy.may_operate(peer);
  }
  return false;
}

void route(Call call, const fb::Message& message) {
  switch (message.body_type()) {
    case fb::Body::Attach:
      return answer<fb::AttachT>(call, message);
    case fb::Body::Detach:
      return answer<fb::DetachT>(call, message);
    case fb::Body::Lookup:
      return answer<fb::LookupT>(call, message);
    case fb::Body::Wait:
      return answer<fb::WaitT>(call, message);
    case fb::Body::Cancel:
      return answer<fb::CancelT>(call, message);
    case fb::Body::List:
      return answer<fb::ListT>(call, message);
    case fb::Body::Leases:
      return answer<fb::LeasesT>(call, message);
    case fb::Body::Status:
      return answer<fb::StatusT>(call, message);
    case fb::Body::Begin:
      return answer<fb::BeginT>(call, message);
    case fb::Body::Reserve:
      return answer<fb::ReserveT>(call, message);
    case fb::Body::Supply:
      return answer<fb::SupplyT>(call, message);
    case fb::Body::ReportProgress:
      return answer<fb::ReportProgressT>(call, message);
    case fb::Body::Publish:
      return answer<fb::PublishT>(call, message);
    case fb::Body::Abandon:
      return answer<fb::AbandonT>(call, message);
    case fb::Body::Evict:
      return answer<fb::EvictT>(call, message);
    case fb::Body::Pin:
      return answer<fb::PinT>(call, message);
    case fb::Body::Drain:
      return answer<fb::DrainT>(call, message);
    case fb::Body::Stop:
      return answer<fb::StopT>(call, message);
    default:
      return;
  }
}

}  // namespace

void dispatch(Core& core, Session& session, const fb::Message& message,
              std::vector<Fd>& descriptors) {
  const Call call{core, session, message.request(), descriptors};
  const fb::Body type = message.body_type();
  const auto refuse = [&](Code code, std::string why) {
    session.part(call.request, Error{code, std::move(why), {}});
  };
  if (call.request == 0) return refuse(Code::corrupt, "a request with the number 0");
  if (!descriptors.empty() && type != fb::Body::Supply) {
    return refuse(Code::corrupt, format("descriptors came with {}", name_of(type)));
  }
  if (!session.greeted()) return first_message(call, message);
  if (type > fb::Body::MAX) {
    return session.send_failure(
        call.request, Error{Code::unsupported, "a message of a later version of the protocol", {}});
  }
  const Right right = right_for(type);
  if (right == Right::none) {
    return refuse(Code::corrupt,
                  format("{} is no request that a client makes here", name_of(type)));
  }
  if (!has(right, core.options().policy, session.peer())) {
    return session.send_failure(
        call.request, Error{Code::denied,
                            format("user {} may not send {}", session.peer().uid, name_of(type)),
                            {}});
  }
  route(call, message);
}

}  // namespace wc::daemon
