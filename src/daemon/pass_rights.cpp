#include "daemon/pass_rights.hpp"

#include <sys/socket.h>

namespace wc::daemon {
namespace {

#ifdef SO_PASSRIGHTS
constexpr int kPassRights = SO_PASSRIGHTS;
#else
constexpr int kPassRights = 83;
#endif

}  // namespace

bool let_descriptors_in(FdView socket, bool in) {
  const int value = in ? 1 : 0;
  return ::setsockopt(socket.get(), SOL_SOCKET, kPassRights, &value, sizeof value) == 0;
}

}  // namespace wc::daemon
