#include "daemon/store.hpp"

#include <algorithm>
#include <utility>

namespace wc::daemon {

bool StoredEntry::complete() const {
  return manifest && !segments.empty() &&
         std::ranges::all_of(
             segments, [](const StoredSegment& segment) { return segment.handle.has_value(); });
}

std::vector<FdView> StoredEntry::descriptors() const {
  std::vector<FdView> views;
  views.reserve(segments.size() + 1);
  views.push_back(manifest);
  for (const StoredSegment& segment : segments) {
    if (!segment.handle) continue;
    if (const auto* descriptor = std::get_if<Fd>(&*segment.handle)) views.push_back(*descriptor);
  }
  return views;
}

StoredEntry& Store::add(catalog::EntryId entry, StoredEntry stored) {
  return entries_.insert_or_assign(entry, std::move(stored)).first->second;
}

StoredEntry* Store::find(catalog::EntryId entry) {
  const auto found = entries_.find(entry);
  return found != entries_.end() ? &found->second : nullptr;
}

std::vector<Fd> Store::take(catalog::EntryId entry) {
  std::vector<Fd> holders;
  const auto found = entries_.find(entry);
  if (found == entries_.end()) return holders;
  for (StoredSegment& segment : found->second.segments) {
    if (!segment.handle) continue;
    if (auto* descriptor = std::get_if<Fd>(&*segment.handle)) {
      holders.push_back(std::move(*descriptor));
    }
  }
  if (found->second.manifest) holders.push_back(std::move(found->second.manifest));
  entries_.erase(found);
  return holders;
}

std::size_t Store::descriptor_count() const {
  std::size_t count = 0;
  for (const auto& [id, entry] : entries_) {
    const bool crosses = entry.transport != memory::Transport::torch_ipc;
    const std::size_t own = (crosses ? entry.segments.size() : 0) + 1;
    count += entry.loading ? 2 * own : own;
  }
  return count;
}

}  // namespace wc::daemon
