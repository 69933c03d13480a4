// The machine that the simulated driver runs on: its GPUs and their memory, shared by all processes
// through a folder. A GPU's memory is a file with a shared lock on it. The lock belongs to the open
// file description, which dies with the last descriptor or mapping in any process, however that
// process ends; so a file whose lock can be taken is memory that nobody holds.
#include <array>
#include <cstdlib>
#include <memory>
#include <ranges>

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/units.hpp"
#include "state.hpp"

namespace sim {
namespace {

std::string text_of(const char* name, std::string fallback) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : std::move(fallback);
}

std::string gpu_folder(int gpu) { return wc::format("{}/gpu-{}", folder(), gpu); }

// Held while memory is counted and taken, so that two processes can't take the same room.
wc::Fd lock_machine() {
  wc::Fd lock(::open((folder() + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock || ::flock(lock.get(), LOCK_EX) != 0) refuse("cannot lock WEIGHTCACHE_SIM_DIR");
  return lock;
}

std::size_t count_used(int gpu) {
  const std::string path = gpu_folder(gpu);
  ::mkdir(path.c_str(), 0700);
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(path.c_str()), ::closedir);
  if (!dir) refuse("cannot read WEIGHTCACHE_SIM_DIR");
  std::size_t used = 0;
  while (const dirent* entry = ::readdir(dir.get())) {
    if (entry->d_name[0] == '.') continue;
    const std::string name = path + "/" + entry->d_name;
    const wc::Fd file(::open(name.c_str(), O_RDWR | O_CLOEXEC));
    struct stat info{};
    if (!file || ::fstat(file.get(), &info) != 0) continue;
    if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) {
      ::unlink(name.c_str());
    } else {
      used += static_cast<std::size_t>(info.st_size);
    }
  }
  return used;
}

// As the driver reads CUDA_VISIBLE_DEVICES: the first name that is none ends the list.
std::vector<int> visible_from(const char* filter) {
  std::vector<int> gpus;
  if (filter == nullptr) {
    for (int gpu = 0; gpu < gpu_count(); ++gpu) gpus.push_back(gpu);
    return gpus;
  }
  for (const auto part : std::views::split(std::string_view(filter), ',')) {
    const std::string_view name(part.begin(), part.end());
    int found = -1;
    for (int gpu = 0; gpu < gpu_count(); ++gpu) {
      if (name == std::to_string(gpu) ||
          (name.starts_with("GPU-") && hex(gpu_uuid(gpu)).starts_with(name))) {
        found = gpu;
      }
    }
    if (found < 0) break;
    gpus.push_back(found);
  }
  return gpus;
}

}  // namespace

const std::string& folder() {
  static const std::string only = text_of("WEIGHTCACHE_SIM_DIR", "");
  if (only.empty()) refuse("WEIGHTCACHE_SIM_DIR names no folder");
  return only;
}

bool copies_are_late() {
  static const bool late = std::getenv("WEIGHTCACHE_SIM_LATE") != nullptr;
  return late;
}

bool is_missing(std::string_view function) {
  const std::string list = text_of("WEIGHTCACHE_SIM_MISSING", "");
  for (const auto part : std::views::split(list, ',')) {
    if (std::string_view(part.begin(), part.end()) == function) return true;
  }
  return false;
}

int gpu_count() {
  static const int count = std::atoi(text_of("WEIGHTCACHE_SIM_GPUS", "1").c_str());
  return count;
}

std::size_t gpu_bytes() {
  static const auto bytes = wc::parse_bytes(text_of("WEIGHTCACHE_SIM_MEMORY", "1GiB"));
  if (!bytes) refuse("WEIGHTCACHE_SIM_MEMORY is no size");
  return *bytes;
}

CuUuid gpu_uuid(int gpu) {
  CuUuid uuid{};
  uuid.bytes[0] = 0x5;
  uuid.bytes[1] = 0x1a;
  uuid.bytes[15] = static_cast<char>(gpu);
  return uuid;
}

std::string hex(const CuUuid& uuid) {
  std::string text = "GPU-";
  for (std::size_t at = 0; at < sizeof(uuid.bytes); ++at) {
    if (at == 4 || at == 6 || at == 8 || at == 10) text += '-';
    text += wc::format("{:02x}", static_cast<unsigned char>(uuid.bytes[at]));
  }
  return text;
}

const std::vector<int>& visible_gpus() {
  static const std::vector<int> gpus = visible_from(std::getenv("CUDA_VISIBLE_DEVICES"));
  return gpus;
}

bool vmm_supported() { return std::getenv("WEIGHTCACHE_SIM_NO_VMM") == nullptr; }

std::size_t used_bytes(int gpu) {
  const wc::Fd lock = lock_machine();
  return count_used(gpu);
}

wc::Fd new_memory(int gpu, std::size_t bytes) {
  const wc::Fd lock = lock_machine();
  const std::size_t used = count_used(gpu);
  if (bytes > gpu_bytes() || used > gpu_bytes() - bytes) return {};
  std::string name = gpu_folder(gpu) + "/memory-XXXXXX";
  wc::Fd file(::mkostemp(name.data(), O_CLOEXEC));
  if (!file || ::flock(file.get(), LOCK_SH) != 0 ||
      ::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) {
    refuse("cannot make a file in WEIGHTCACHE_SIM_DIR");
  }
  return file;
}

bool memory_of(int fd, int& gpu, std::size_t& bytes) {
  std::array<char, 4096> target{};
  const auto link = wc::format("/proc/self/fd/{}", fd);
  const ssize_t length = ::readlink(link.c_str(), target.data(), target.size() - 1);
  struct stat info{};
  if (length <= 0 || ::fstat(fd, &info) != 0) return false;
  const std::string_view path(target.data(), static_cast<std::size_t>(length));
  const std::string prefix = folder() + "/gpu-";
  if (!path.starts_with(prefix)) return false;
  gpu = std::atoi(path.substr(prefix.size()).data());
  bytes = static_cast<std::size_t>(info.st_size);
  return true;
}

}  // namespace sim
