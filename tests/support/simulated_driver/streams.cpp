// Copies, streams and events. A copy happens at once, or, where copies are late, when somebody
// waits for it: then a buffer that was used again too early shows.
#include <cstring>

#include "calls.hpp"
#include "state.hpp"

namespace sim {
namespace {

// Whether the GPU may do this to the whole range.
bool accessible(const State& s, CuDevicePtr address, std::size_t bytes, int access) {
  auto after = s.mappings.upper_bound(address);
  if (after == s.mappings.begin()) return false;
  const auto& [start, mapping] = *--after;
  return address - start <= mapping.bytes && bytes <= mapping.bytes - (address - start) &&
         (mapping.access & access) == access;
}

void run(StreamState& stream, std::uint64_t upto) {
  const std::uint64_t done = stream.enqueued - stream.pending.size();
  if (upto <= done) return;
  const auto count = static_cast<std::ptrdiff_t>(upto - done);
  for (auto at = stream.pending.begin(); at != stream.pending.begin() + count; ++at) {
    std::memcpy(at->to, at->from, at->bytes);
  }
  stream.pending.erase(stream.pending.begin(), stream.pending.begin() + count);
}

CuResult enqueue(State& s, CuStream stream, const Copy& copy) {
  const auto found = s.streams.find(stream);
  if (found == s.streams.end()) return CuResult::invalid_value;
  found->second.pending.push_back(copy);
  ++found->second.enqueued;
  if (!copies_are_late()) run(found->second, found->second.enqueued);
  return CuResult::success;
}

}  // namespace

CuResult cuMemcpyHtoDAsync(CuDevicePtr to, const void* from, std::size_t bytes, CuStream stream) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (const CuResult due = enter(s, "cuMemcpyHtoDAsync"); due != CuResult::success) return due;
  if (!accessible(s, to, bytes, kAccessReadWrite)) return CuResult::invalid_value;
  return enqueue(s, stream, Copy{reinterpret_cast<void*>(to), from, bytes});
}

CuResult cuMemcpyDtoHAsync(void* to, CuDevicePtr from, std::size_t bytes, CuStream stream) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (const CuResult due = enter(s, "cuMemcpyDtoHAsync"); due != CuResult::success) return due;
  if (!accessible(s, from, bytes, kAccessRead)) return CuResult::invalid_value;
  return enqueue(s, stream, Copy{to, reinterpret_cast<const void*>(from), bytes});
}

CuResult cuStreamCreate(CuStream* stream, unsigned /*flags*/) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (const CuResult due = enter(s, "cuStreamCreate"); due != CuResult::success) return due;
  *stream = reinterpret_cast<CuStream>(fresh_id(s));
  s.streams.emplace(*stream, StreamState{});
  return CuResult::success;
}

CuResult cuStreamDestroy(CuStream stream) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  const CuResult due = enter(s, "cuStreamDestroy");
  const auto found = s.streams.find(stream);
  if (found == s.streams.end()) refuse("cuStreamDestroy of no stream");
  run(found->second, found->second.enqueued);
  s.streams.erase(found);
  return due;
}

CuResult cuStreamSynchronize(CuStream stream) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (const CuResult due = enter(s, "cuStreamSynchronize"); due != CuResult::success) return due;
  const auto found = s.streams.find(stream);
  if (found == s.streams.end()) return CuResult::invalid_value;
  run(found->second, found->second.enqueued);
  return CuResult::success;
}

CuResult cuCtxSynchronize() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (const CuResult due = enter(s, "cuCtxSynchronize"); due != CuResult::success) return due;
  for (auto& [id, stream] : s.streams) run(stream, stream.enqueued);
  return CuResult::success;
}

CuResult cuEventCreate(CuEvent* event, unsigned /*flags*/) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (const CuResult due = enter(s, "cuEventCreate"); due != CuResult::success) return due;
  *event = reinterpret_cast<CuEvent>(fresh_id(s));
  s.events.emplace(*event, EventState{});
  return CuResult::success;
}

CuResult cuEventDestroy(CuEvent event) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  const CuResult due = enter(s, "cuEventDestroy");
  if (s.events.erase(event) == 0) refuse("cuEventDestroy of no event");
  return due;
}

CuResult cuEventRecord(CuEvent event, CuStream stream) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (const CuResult due = enter(s, "cuEventRecord"); due != CuResult::success) return due;
  const auto found = s.events.find(event);
  const auto recorded = s.streams.find(stream);
  if (found == s.events.end() || recorded == s.streams.end()) return CuResult::invalid_value;
  found->second = EventState{stream, recorded->second.enqueued};
  return CuResult::success;
}

CuResult cuEventSynchronize(CuEvent event) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (const CuResult due = enter(s, "cuEventSynchronize"); due != CuResult::success) return due;
  const auto found = s.events.find(event);
  if (found == s.events.end()) return CuResult::invalid_value;
  const auto stream = s.streams.find(found->second.stream);
  if (stream != s.streams.end()) run(stream->second, found->second.upto);
  return CuResult::success;
}

}  // namespace sim
