// What the second process of a case can be asked to do. Each verb returns how it went as the
// process's exit status; kFaulted, or death by a signal, is a refused store.
#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <signal.h>
#include <unistd.h>

#include "tests/contract/child.hpp"
#include "tests/contract/device_contract.hpp"
#include "tests/contract/pattern.hpp"

namespace wc::contract {
namespace {

constexpr std::uint64_t kBlock = std::uint64_t{1} << 20;

using Numbers = std::span<const std::uint64_t>;

struct Context {
  const DeviceFactory& factory;
  memory::Device& device;
  FdView socket;
};

Result<bool> holds(memory::Device& device, memory::View& view, std::uint64_t bytes,
                   std::uint64_t seed) {
  memory::View* const views[] = {&view};
  const auto writer = TRY(device.writer(views, kBlock));
  std::vector<std::byte> seen(bytes);
  TRY(writer->copy_out(0, 0, seen));
  return seen == pattern(bytes, seed);
}

Result<std::unique_ptr<memory::View>> received(const Context& context, std::uint64_t bytes,
                                               memory::Access access) {
  memory::Handle handle = TRY(receive_handle(context.socket));
  return context.device.import(std::move(handle), {.bytes = bytes, .access = access});
}

// check BYTES SEED ADDRESS: imports what comes, and compares it.
Result<int> check(const Context& context, Numbers numbers) {
  memory::Handle handle = TRY(receive_handle(context.socket));
  const auto view =
      TRY(context.device.import(std::move(handle), {.bytes = numbers[0], .address = numbers[2]}));
  if (numbers[2] != 0 && view->address() != numbers[2]) return kFailed;
  if (view->access() != memory::Access::shared_read || view->bytes() != numbers[0]) return kFailed;
  const bool equal = TRY(holds(context.device, *view, numbers[0], numbers[1]));
  return equal ? kDone : kFailed;
}

// store BYTES: imports what comes, shared, and stores through it all the same.
Result<int> store_and_tell(const Context& context, Numbers numbers) {
  const auto view = TRY(received(context, numbers[0], memory::Access::shared_read));
  if (!context.factory.store(*view, 0, std::byte{0xEE})) return kFaulted;
  return kDone;
}

// store_own BYTES: stores into a segment of its own after make_read_only().
Result<int> store_own(const Context& context, Numbers numbers) {
  const auto segment = TRY(context.device.create(numbers[0]));
  const auto view = TRY(context.device.map(*segment));
  TRY(context.factory.store(*view, 0, std::byte{1}));
  TRY(view->make_read_only());
  if (!context.factory.store(*view, 0, std::byte{0xEE})) return kFaulted;
  return kDone;
}

// store_private BYTES SEED: stores into a private copy, and finds it there.
Result<int> store_private(const Context& context, Numbers numbers) {
  const auto view = TRY(received(context, numbers[0], memory::Access::private_copy));
  const bool equal = TRY(holds(context.device, *view, numbers[0], numbers[1]));
  if (!equal) return kFailed;
  const auto first = pattern(1, numbers[1]).front();
  TRY(context.factory.store(*view, 0, first ^ std::byte{0xFF}));
  const bool still = TRY(holds(context.device, *view, numbers[0], numbers[1]));
  return still ? kFailed : kDone;
}

// make BYTES SEED: makes a segment, sends it, and waits to be killed.
Result<int> make(const Context& context, Numbers numbers) {
  const auto segment = TRY(context.device.create(numbers[0]));
  {
    const auto view = TRY(context.device.map(*segment));
    memory::View* const views[] = {view.get()};
    const auto writer = TRY(context.device.writer(views, numbers[0]));
    const auto bytes = pattern(numbers[0], numbers[1]);
    const memory::Run run = {.bytes = bytes.size()};
    TRY(writer->copy_in(bytes, std::span(&run, 1)));
    TRY(writer->finish());
    TRY(view->make_read_only());
  }
  const memory::Handle handle = TRY(segment->export_handle());
  TRY(send_handle(context.socket, handle));
  ::pause();
  return kFailed;
}

using Verb = Result<int> (*)(const Context&, Numbers);

const std::map<std::string_view, Verb>& verbs() {
  static const std::map<std::string_view, Verb> table = {{"check", check},
                                                         {"store", store_and_tell},
                                                         {"store_own", store_own},
                                                         {"store_private", store_private},
                                                         {"make", make}};
  return table;
}

Result<int> run(const DeviceFactory& factory, std::string_view verb, FdView socket,
                Numbers numbers) {
  const auto found = verbs().find(verb);
  if (found == verbs().end()) return fail(Code::internal, "no verb \"{}\"", verb);
  const auto device = TRY(factory.open());
  return found->second(Context{factory, *device, socket}, numbers);
}

std::uint64_t number_in(std::string_view text) {
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

void tell(const std::string& line) {
  const auto wrote = ::write(STDERR_FILENO, line.data(), line.size());
  (void)wrote;
}

}  // namespace

std::optional<int> run_child(int argc, char** argv) {
  const std::vector<std::string_view> words(argv, argv + argc);
  if (words.size() < 5 || words[1] != "--child") return std::nullopt;
  // A refused store must end this process as it would any other, sanitizer's handlers or not.
  ::signal(SIGSEGV, SIG_DFL);
  ::signal(SIGBUS, SIG_DFL);
  const Fd socket(static_cast<int>(number_in(words[4])));
  std::vector<std::uint64_t> numbers;
  for (std::size_t n = 5; n < words.size(); ++n) numbers.push_back(number_in(words[n]));
  numbers.resize(std::max(numbers.size(), std::size_t{4}));
  for (const DeviceFactory& factory : device_factories()) {
    if (factory.name != words[2]) continue;
    const auto status = run(factory, words[3], socket, numbers);
    if (status) return *status;
    tell(format("child {}: {}\n", words[3], status.error().message));
    return kFailed;
  }
  return kFailed;
}

}  // namespace wc::contract
