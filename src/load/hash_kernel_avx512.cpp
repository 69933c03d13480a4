#if defined(__x86_64__)

#include "load/hash_kernel.inc"

namespace wc::load {

const HashKernel kAvx512Hash = {"avx512", hash_reset, hash_update, hash_finish};

}  // namespace wc::load

#endif
