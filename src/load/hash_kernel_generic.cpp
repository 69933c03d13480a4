#include "load/hash_kernel.inc"

namespace wc::load {

const HashKernel kGenericHash = {"generic", hash_reset, hash_update, hash_finish};

}  // namespace wc::load
