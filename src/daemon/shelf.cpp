#include "daemon/shelf.hpp"

#include <cstring>

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace wc::daemon {
namespace {

struct LinkHead {
  std::uint64_t number = 0;
  std::uint32_t text_bytes = 0;
  std::uint32_t changes = 0;
  LinkWord word = LinkWord::change;
  bool last = false;
};
struct ChangeHead {
  ShelfKey key;
  std::uint32_t bytes = 0;
  std::uint16_t descriptors = 0;
  Change::Step step = Change::Step::put;
  bool spilled = false;
};
static_assert(std::is_trivially_copyable_v<LinkHead> && std::is_trivially_copyable_v<ChangeHead>);

template <typename T>
void put(std::string& to, const T& value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Reads what is there, in order; `short_` once something was not.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : left_(bytes) {}
  template <typename T>
  T value() {
    T out{};
    if (const auto from = take(sizeof out); !from.empty())
      std::memcpy(&out, from.data(), sizeof out);
    return out;
  }
  std::string text(std::size_t bytes) {
    const auto from = take(bytes);
    return {reinterpret_cast<const char*>(from.data()), from.size()};
  }
  [[nodiscard]] bool whole() const { return !short_; }
  [[nodiscard]] bool at_end() const { return !short_ && left_.empty(); }

 private:
  std::span<const std::byte> take(std::size_t bytes) {
    if (bytes > left_.size()) {
      short_ = true;
      return {};
    }
    const auto out = left_.first(bytes);
    left_ = left_.subspan(bytes);
    return out;
  }
  std::span<const std::byte> left_;
  bool short_ = false;
};

std::size_t descriptors_of(const Change& change) {
  return change.owned.size() + change.views.size();
}

Result<> spill(Change& change) {
  const bool state = change.key.kind == Shelved::state && change.step == Change::Step::put;
  if (!state && change.bytes.size() <= kMaxInlineBytes) return {};
  Fd file(::memfd_create("weightcache-state", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file) return fail_errno("memfd_create");
  for (std::size_t done = 0; done < change.bytes.size();) {
    const auto wrote = ::write(file.get(), change.bytes.data() + done, change.bytes.size() - done);
    if (wrote < 0) return fail_errno("write to a memfd");
    done += static_cast<std::size_t>(wrote);
  }
  change.owned.insert(change.owned.begin(), std::move(file));
  change.bytes.clear();
  change.spilled = true;
  return {};
}

}  // namespace

Result<std::string> bytes_of(ShelfItem& item) {
  if (!item.spilled) return item.bytes;
  if (item.descriptors.empty()) return fail(Code::corrupt, "a kept item without its bytes");
  const Fd file = std::move(item.descriptors.front());
  item.descriptors.erase(item.descriptors.begin());
  item.spilled = false;
  struct stat info{};
  if (::fstat(file.get(), &info) != 0) return fail_errno("fstat of a memfd");
  item.bytes.resize(static_cast<std::size_t>(info.st_size));
  for (std::size_t done = 0; done < item.bytes.size();) {
    const auto got = ::pread(file.get(), item.bytes.data() + done, item.bytes.size() - done,
                             static_cast<off_t>(done));
    if (got <= 0) return fail_errno("read of a memfd");
    done += static_cast<std::size_t>(got);
  }
  return item.bytes;
}

std::string encode_link(const LinkMessage& message) {
  std::string out;
  put(out,
      LinkHead{message.number, static_cast<std::uint32_t>(message.text.size()),
               static_cast<std::uint32_t>(message.changes.size()), message.word, message.last});
  out += message.text;
  for (const Change& change : message.changes) {
    put(out, ChangeHead{change.key, static_cast<std::uint32_t>(change.bytes.size()),
                        static_cast<std::uint16_t>(descriptors_of(change)), change.step,
                        change.spilled});
    out += change.bytes;
  }
  return out;
}

Result<LinkMessage> decode_link(std::span<const std::byte> bytes, std::vector<Fd> descriptors) {
  Reader reader(bytes);
  const auto head = reader.value<LinkHead>();
  LinkMessage out;
  out.word = head.word;
  out.last = head.last;
  out.number = head.number;
  out.text = reader.text(head.text_bytes);
  auto next = descriptors.begin();
  for (std::uint32_t at = 0; at < head.changes && reader.whole(); ++at) {
    const auto each = reader.value<ChangeHead>();
    Change change;
    change.step = each.step;
    change.key = each.key;
    change.spilled = each.spilled;
    change.bytes = reader.text(each.bytes);
    if (descriptors.end() - next < each.descriptors)
      return fail(Code::corrupt, "descriptors of \"{}\" are missing", each.key.id);
    change.descriptors.assign(std::make_move_iterator(next),
                              std::make_move_iterator(next + each.descriptors));
    next += each.descriptors;
    out.changes.push_back(std::move(change));
  }
  if (!reader.at_end() || next != descriptors.end())
    return fail(Code::corrupt, "a packet of {} bytes that is none of the link's", bytes.size());
  return out;
}

Result<std::vector<LinkMessage>> pack_batch(std::uint64_t number, std::vector<Change> changes) {
  constexpr std::size_t kRoom = wire::kMaxPacketBytes - 4096;
  std::vector<LinkMessage> out(1);
  std::size_t bytes = 0;
  std::size_t descriptors = 0;
  for (Change& change : changes) {
    TRY(spill(change));
    bytes += sizeof(ChangeHead) + change.bytes.size();
    descriptors += descriptors_of(change);
    if (bytes > kRoom || descriptors > wire::kMaxDescriptors) {
      out.emplace_back();
      bytes = sizeof(ChangeHead) + change.bytes.size();
      descriptors = descriptors_of(change);
    }
    out.back().changes.push_back(std::move(change));
  }
  for (LinkMessage& message : out) message.number = number;
  out.back().last = true;
  return out;
}

std::vector<Fd> apply(Shelf& shelf, Change change) {
  std::vector<Fd> former;
  const auto take = [&](Shelf::iterator item) {
    for (Fd& descriptor : item->second.descriptors) former.push_back(std::move(descriptor));
    return shelf.erase(item);
  };
  if (change.step == Change::Step::drop_group) {
    for (auto at = shelf.lower_bound({change.key.kind, change.key.group, 0});
         at != shelf.end() && at->first.kind == change.key.kind &&
         at->first.group == change.key.group;)
      at = take(at);
    return former;
  }
  if (const auto known = shelf.find(change.key); known != shelf.end()) take(known);
  if (change.step == Change::Step::put) {
    shelf[change.key] = {std::move(change.bytes), change.spilled, std::move(change.descriptors)};
  }
  return former;
}

}  // namespace wc::daemon
