// The C header alone, as C++: nothing else is included before it.
#include "weightcache/weightcache.h"

static_assert(WC_OK == 0 && WC_INTERNAL == -16, "the codes are never renumbered");

namespace {
[[maybe_unused]] const wc_connect_options kConnect = WC_CONNECT_OPTIONS_INIT;
[[maybe_unused]] const wc_selector kSelector = WC_SELECTOR_INIT;
[[maybe_unused]] const wc_attach_options kAttach = WC_ATTACH_OPTIONS_INIT;
[[maybe_unused]] const wc_wait_options kWait = WC_WAIT_OPTIONS_INIT;
[[maybe_unused]] const wc_load_options kLoad = WC_LOAD_OPTIONS_INIT;
[[maybe_unused]] const wc_verify_options kVerify = WC_VERIFY_OPTIONS_INIT;
[[maybe_unused]] const wc_publish_options kPublish = WC_PUBLISH_OPTIONS_INIT;
[[maybe_unused]] const wc_checkpoint_options kCheckpoint = WC_CHECKPOINT_OPTIONS_INIT;
}  // namespace
