// Any bytes as a packet: what decode() lets through can be read whole, unpacks within a bound that
// the packet's size gives, and says the same after it has been packed again.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

#include "wire/codec.hpp"

namespace {

// Never returns where a property does not hold; the fuzzer keeps the input.
void require(bool held) {
  if (!held) __builtin_trap();
}

void check(std::span<const std::byte> packet) {
  const auto message = wc::wire::decode(packet);
  if (!message) {
    require(message.error().code == wc::Code::corrupt && !message.error().message.empty());
    return;
  }
  const std::unique_ptr<wc::wire::fb::MessageT> copy((*message)->UnPack());
  require(!wc::wire::name_of((*message)->body_type()).empty());
  if ((*message)->body_type() > wc::wire::fb::Body::MAX) return;
  if (const auto* failure = (*message)->body_as_Failure())
    require(wc::wire::to_error(*failure).code != wc::Code::ok);
  const auto again = wc::wire::detail::encode(copy->request, copy->body);
  if (!again) {  // the encoder pads and repeats what the packet had shared in its layout
    require(again.error().code == wc::Code::exhausted);
    return;
  }
  const auto second = wc::wire::decode(*again);
  require(second.has_value());
  const std::unique_ptr<wc::wire::fb::MessageT> repeated((*second)->UnPack());
  require(*repeated == *copy);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const wc::wire::Bytes packet(reinterpret_cast<const std::byte*>(data),
                               reinterpret_cast<const std::byte*>(data) + size);
  check(packet);
  return 0;
}
