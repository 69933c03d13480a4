/* The header alone, as C99: nothing else is included before it. */
#include "weightcache/weightcache.h"

/* The INIT macros are constant expressions that name every member. */
static const wc_connect_options kConnect = WC_CONNECT_OPTIONS_INIT;
static const wc_selector kSelector = WC_SELECTOR_INIT;
static const wc_attach_options kAttach = WC_ATTACH_OPTIONS_INIT;
static const wc_wait_options kWait = WC_WAIT_OPTIONS_INIT;
static const wc_load_options kLoad = WC_LOAD_OPTIONS_INIT;
static const wc_verify_options kVerify = WC_VERIFY_OPTIONS_INIT;
static const wc_publish_options kPublish = WC_PUBLISH_OPTIONS_INIT;
static const wc_checkpoint_options kCheckpoint = WC_CHECKPOINT_OPTIONS_INIT;

size_t abi_sizes(void);
size_t abi_sizes(void) {
  return kConnect.struct_size + kSelector.struct_size + kAttach.struct_size + kWait.struct_size +
         kLoad.struct_size + kVerify.struct_size + kPublish.struct_size + kCheckpoint.struct_size;
}
