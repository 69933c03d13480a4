// The simulated driver's state in this process: what was made and not yet given back, which call is
// due to fail, and the folder that it shares with other processes. One mutex guards all of it.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.hpp"
#include "memory/cuda/api.hpp"

namespace sim {

using namespace wc::memory::cuda;  // NOLINT(google-build-using-namespace): this is that API

inline constexpr std::size_t kGranularity = std::size_t{2} << 20;

struct Physical {
  wc::Fd file;
  std::size_t bytes = 0;
  int gpu = 0;           // the machine's number, not this process's ordinal
  bool created = false;  // here, and not imported: only a creator can export
};

struct Mapped {
  std::size_t bytes = 0;
  int gpu = 0;
  int access = 0;  // kAccessRead, kAccessReadWrite; 0: none yet
};

struct Reserved {
  std::size_t bytes = 0;
};

struct Copy {
  void* to = nullptr;
  const void* from = nullptr;
  std::size_t bytes = 0;
};

struct StreamState {
  std::vector<Copy> pending;   // in order; empty unless copies are late
  std::uint64_t enqueued = 0;  // copies, ever
};

struct EventState {
  CuStream stream = nullptr;
  std::uint64_t upto = 0;  // copies of the stream that it waits for
};

struct Failure {
  std::string call;  // "*": any
  std::uint64_t nth = 0;
  CuResult result = CuResult::unknown;
};

struct State {
  std::mutex mutex;
  bool initialised = false;
  std::map<CuMemHandle, Physical> memory;
  std::map<CuDevicePtr, Reserved> ranges;
  std::map<CuDevicePtr, Mapped> mappings;
  std::map<void*, std::size_t> pinned;
  std::map<CuStream, StreamState> streams;
  std::map<CuEvent, EventState> events;
  std::map<CuDevice, int> contexts;  // retained how often
  std::uint64_t next_id = 1;

  std::vector<Failure> failures;
  std::map<std::string, std::uint64_t, std::less<>> uses;
  std::uint64_t calls = 0;
  std::uint64_t failed = 0;
};

State& state();

/// A fresh number for a handle; never 0, never used again.
std::uint64_t fresh_id(State& s);

/// Counts a call, and says whether it is due to fail. Ends the process for a call before cuInit.
CuResult enter(State& s, std::string_view call);

/// What was made and not given back, in words; empty where nothing was.
std::string leaks(State& s);

/// Ends the process: the caller did what the real driver's documentation leaves undefined.
[[noreturn]] void refuse(std::string_view why);

// ---- the machine (machine.cpp) -----------------------------------------------------------------

const std::string& folder();
bool copies_are_late();
bool is_missing(std::string_view function);
int gpu_count();
std::size_t gpu_bytes();
CuUuid gpu_uuid(int gpu);
/// "GPU-051a0000-...".
std::string hex(const CuUuid& uuid);
/// The machine's GPUs in this process's order (CUDA_VISIBLE_DEVICES).
const std::vector<int>& visible_gpus();
bool vmm_supported();

/// Bytes of a GPU that some process holds.
std::size_t used_bytes(int gpu);
/// A new locked file of a GPU's memory; empty where the GPU has no room.
wc::Fd new_memory(int gpu, std::size_t bytes);
/// Which GPU's memory a descriptor is, and how large; false where it is none.
bool memory_of(int fd, int& gpu, std::size_t& bytes);

}  // namespace sim
