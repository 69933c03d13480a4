// Each case is misuse of weightcache.hpp that must not compile; without any the file compiles.
#include "weightcache/weightcache.hpp"

namespace {

using namespace weightcache;  // NOLINT(google-build-using-namespace): shorter cases

[[maybe_unused]] void take(Connection connection) { (void)connection; }
[[maybe_unused]] void hold(Attachment attachment) { (void)attachment; }

[[maybe_unused]] void right(Connection& connection, Attachment& attachment) {
  Attachment moved = std::move(attachment);
  const Tensor tensor = moved[0];
  [[maybe_unused]] const std::byte first = tensor.host_bytes()[0];
  auto publication = connection.publish({});
  if (publication) publication->publish();
#ifdef CASE_COPY_CONNECTION  // error: (deleted|copy constructor)
  take(connection);
#endif
#ifdef CASE_COPY_ATTACHMENT  // error: (deleted|copy constructor)
  hold(moved);
#endif
#ifdef CASE_ASSIGN_ATTACHMENT  // error: deleted
  Attachment other = std::move(attachment);
  other = moved;
#endif
#ifdef CASE_COPY_PUBLICATION  // error: (deleted|copy constructor)
  auto again = publication;
#endif
#ifdef CASE_COPY_CANCELLATION  // error: (deleted|copy constructor)
  const Cancellation one;
  const Cancellation two = one;
#endif
#ifdef CASE_CONNECTION_FROM_TEXT  // error: (no matching|conver)
  take("/run/weightcache/socket");
#endif
#ifdef CASE_ATTACHMENT_FROM_POINTER  // error: (no viable|conver)
  hold(moved.get());
#endif
#ifdef CASE_WRITE_SHAPE  // error: (read-only|cannot assign)
  tensor.shape[0] = 1;
#endif
#ifdef CASE_WRITE_HOST_BYTES  // error: (read-only|cannot assign)
  tensor.host_bytes()[0] = std::byte{1};
#endif
#ifdef CASE_IGNORED_ATTACHMENT  // error: (nodiscard|ignoring)
#pragma GCC diagnostic error "-Wunused-result"
  connection.attach("x");
#endif
#ifdef CASE_ACCESS_FROM_NUMBER  // error: (cannot convert|incompatible|assigning)
  AttachOptions options;
  options.access = WC_ACCESS_SHARED;
#endif
#ifdef CASE_RESERVE_ON_CONST  // error: (discards|const)
  const Publication& constant = *publication;
  (void)constant.reserve(1);
#endif
}

}  // namespace
