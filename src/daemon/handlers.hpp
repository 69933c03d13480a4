// One function for each message that a client may send. It answers through the session, at once or
// later; an Error that it returns is answered by the dispatcher, as a Failure to the same request.
// What it may rely on: the session has said hello, its peer may send this message.
#pragma once

#include <vector>

#include "base/fd.hpp"
#include "base/result.hpp"
#include "daemon/core.hpp"
#include "messages_generated.h"

namespace wc::daemon {

namespace fb = wire::fb;

struct Call {
  Core& core;
  Session& session;
  std::uint64_t request;
  std::vector<Fd>& descriptors;  // what is taken out of it is the handler's
};

/// The answer `Entry`.
void send_entry(Call& call, const catalog::EntryInfo& entry);

/// A Reserve that waited for room has it (handle_load.cpp).
void room_made(Core& core, Session& session, std::uint64_t request,
               catalog::Reservation reservation);

// readers (handle_readers.cpp)
Result<> handle(Call& call, const fb::AttachT& message);
Result<> handle(Call& call, const fb::DetachT& message);
Result<> handle(Call& call, const fb::LookupT& message);
Result<> handle(Call& call, const fb::WaitT& message);
Result<> handle(Call& call, const fb::CancelT& message);

// publishers (handle_load.cpp, handle_publish.cpp)
Result<> handle(Call& call, const fb::BeginT& message);
Result<> handle(Call& call, const fb::ReserveT& message);
Result<> handle(Call& call, const fb::SupplyT& message);
Result<> handle(Call& call, const fb::ReportProgressT& message);
Result<> handle(Call& call, const fb::AbandonT& message);
Result<> handle(Call& call, const fb::PublishT& message);

// operators (handle_lists.cpp, handle_operators.cpp)
Result<> handle(Call& call, const fb::ListT& message);
Result<> handle(Call& call, const fb::LeasesT& message);
Result<> handle(Call& call, const fb::StatusT& message);
Result<> handle(Call& call, const fb::EvictT& message);
Result<> handle(Call& call, const fb::PinT& message);
Result<> handle(Call& call, const fb::DrainT& message);
Result<> handle(Call& call, const fb::StopT& message);

}  // namespace wc::daemon
