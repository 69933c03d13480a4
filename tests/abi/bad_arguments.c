/* Every function of the ABI with NULL, zero and nonsense: an error or a default, never a crash. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weightcache/weightcache.h"

static int failures = 0;

static void check(int holds, const char* text, int line) {
  if (holds) return;
  fprintf(stderr, "bad_arguments.c:%d: %s (last error: %s)\n", line, text, wc_last_error_message());
  failures++;
}
#define CHECK(condition) check((condition), #condition, __LINE__)

/* The call fails with WC_INVALID_ARGUMENT, and says why. */
#define INVALID(call)                                   \
  do {                                                  \
    CHECK((call) == WC_INVALID_ARGUMENT);               \
    CHECK(wc_last_error_code() == WC_INVALID_ARGUMENT); \
    CHECK(wc_last_error_message()[0] != '\0');          \
  } while (0)

static void on_log(int level, const char* line, void* user) {
  (void)level;
  (void)line;
  ++*(int*)user;
}

static void names(void) {
  int lines = 0;
  CHECK(wc_last_error_code() == WC_OK);
  CHECK(wc_last_error_message()[0] == '\0' && wc_last_error_origin()[0] == '\0');
  CHECK(strcmp(wc_error_name(WC_NOT_FOUND), "not_found") == 0);
  CHECK(strcmp(wc_error_name(WC_OK), "ok") == 0);
  CHECK(strcmp(wc_error_name(-17), "internal") == 0);
  CHECK(strcmp(wc_error_name(1), "internal") == 0);
  CHECK(strcmp(wc_state_name(WC_PUBLISHED), "published") == 0);
  CHECK(strcmp(wc_state_name(-1), "unknown") == 0 && strcmp(wc_state_name(5), "unknown") == 0);
  CHECK(strcmp(wc_transport_name(WC_HOST_FD), "host_fd") == 0);
  CHECK(strcmp(wc_transport_name(0), "unknown") == 0 &&
        strcmp(wc_transport_name(256 + 1), "unknown") == 0);
  CHECK(strcmp(wc_outcome_name(WC_PREPARED), "prepared") == 0);
  CHECK(strcmp(wc_outcome_name(3), "unknown") == 0);
  CHECK(strcmp(wc_dtype_name(WC_BF16), "BF16") == 0 && wc_dtype_bits(WC_BF16) == 16);
  CHECK(wc_dtype_name(0) == NULL && wc_dtype_name(23) == NULL && wc_dtype_name(256 + 15) == NULL);
  CHECK(wc_dtype_bits(0) == 0 && wc_dtype_bits(-1) == 0);
  CHECK(wc_dtype_named("BF16") == WC_BF16 && wc_dtype_named("bf16") == 0);
  CHECK(wc_dtype_named(NULL) == 0);
  wc_set_log(on_log, &lines);
  wc_set_log(NULL, NULL);
}

static void version(void) {
  char expected[32];
  snprintf(expected, sizeof expected, "%d.%d.%d", WC_VERSION_MAJOR, WC_VERSION_MINOR,
           WC_VERSION_PATCH);
  CHECK(strcmp(wc_version(), expected) == 0);
}

static void struct_sizes(void) {
  struct {
    wc_checkpoint_options known;
    char newer[16];
  } longer;
  wc_checkpoint_options options = WC_CHECKPOINT_OPTIONS_INIT;
  wc_checkpoint* checkpoint = NULL;
  options.struct_size = 0;
  INVALID(wc_checkpoint_open("/nonexistent", &options, &checkpoint));
  options.struct_size = (size_t)-1;
  INVALID(wc_checkpoint_open("/nonexistent", &options, &checkpoint));
  options.struct_size = sizeof(size_t); /* a caller that knows no option */
  CHECK(wc_checkpoint_open("/nonexistent", &options, &checkpoint) == WC_NOT_FOUND);
  memset(&longer, 0, sizeof longer);
  longer.known.struct_size = sizeof longer;
  CHECK(wc_checkpoint_open("/nonexistent", &longer.known, &checkpoint) == WC_NOT_FOUND);
  longer.newer[15] = 1; /* a newer caller's option, which this library can't honour */
  CHECK(wc_checkpoint_open("/nonexistent", &longer.known, &checkpoint) == WC_UNSUPPORTED);
}

static void cancellation(void) {
  wc_cancellation* made = NULL;
  INVALID(wc_cancellation_new(NULL));
  CHECK(wc_cancellation_new(&made) == WC_OK);
  CHECK(!wc_is_cancelled(made) && !wc_is_cancelled(NULL));
  wc_cancel(NULL);
  wc_cancel(made);
  wc_cancel(made);
  CHECK(wc_is_cancelled(made));
  wc_cancellation_free(made);
  wc_cancellation_free(NULL);
}

static void connection(void) {
  char too_long[300];
  wc_connect_options options = WC_CONNECT_OPTIONS_INIT;
  wc_connection* made = (wc_connection*)&options;
  wc_daemon_info daemon = {sizeof daemon, NULL, NULL, NULL, 0, 0};
  INVALID(wc_connect(NULL, NULL));
  options.socket = "/nonexistent/weightcache/socket";
  CHECK(wc_connect(&options, &made) == WC_DISCONNECTED);
  CHECK(made == NULL);
  CHECK(strstr(wc_last_error_message(), options.socket) != NULL);
  CHECK(strcmp(wc_last_error_origin(), "ENOENT") == 0);
  memset(too_long, 'x', sizeof too_long - 1);
  too_long[0] = '/';
  too_long[sizeof too_long - 1] = '\0';
  options.socket = too_long;
  CHECK(wc_connect(&options, &made) != WC_OK && made == NULL);
  options.socket = NULL;
  options.trusted_uid_count = 1; /* without the array */
  INVALID(wc_connect(&options, &made));
  INVALID(wc_connection_daemon(NULL, &daemon));
  INVALID(wc_connection_daemon(NULL, NULL));
  wc_connection_free(NULL);
}

static void entries(void) {
  wc_selector selector = WC_SELECTOR_INIT;
  wc_wait_options waiting = WC_WAIT_OPTIONS_INIT;
  wc_entry_info info = {0};
  wc_entry_list* list = NULL;
  INVALID(wc_list(NULL, NULL, &list));
  INVALID(wc_list(NULL, &selector, NULL));
  INVALID(wc_wait(NULL, NULL, &waiting, &list));
  INVALID(wc_wait(NULL, &selector, NULL, NULL));
  CHECK(wc_entry_list_count(NULL) == 0);
  INVALID(wc_entry_list_at(NULL, 0, &info));
  wc_entry_list_free(NULL);
}

static void attachment(void) {
  wc_selector selector = WC_SELECTOR_INIT;
  wc_attach_options options = WC_ATTACH_OPTIONS_INIT;
  wc_attachment* made = NULL;
  wc_entry_info entry = {0};
  wc_tensor tensor = {0};
  wc_segment segment = {0};
  wc_attribute attribute = {0};
  wc_provenance provenance = {0};
  selector.text = "";
  INVALID(wc_attach(NULL, &selector, &options, &made));
  INVALID(wc_attach(NULL, NULL, NULL, &made));
  INVALID(wc_attach(NULL, NULL, NULL, NULL));
  wc_detach(NULL);
  INVALID(wc_attachment_entry(NULL, &entry));
  CHECK(wc_attachment_attach_ns(NULL) == 0);
  CHECK(strcmp(wc_attachment_epoch(NULL), "") == 0);
  CHECK(wc_attachment_tensor_count(NULL) == 0);
  INVALID(wc_attachment_tensor_at(NULL, 0, &tensor));
  INVALID(wc_attachment_tensors(NULL, 0, 1, &tensor));
  INVALID(wc_attachment_tensors(NULL, 0, 0, NULL));
  INVALID(wc_attachment_tensor(NULL, "x", &tensor));
  INVALID(wc_attachment_tensor(NULL, NULL, NULL));
  size_t index = 0;
  void* managed = NULL;
  INVALID(wc_attachment_find(NULL, "x", &index));
  INVALID(wc_attachment_names(NULL, NULL, 0, &index));
  INVALID(wc_attachment_dlpack(NULL, NULL, 0, 1, &managed));
  INVALID(wc_attachment_dlpack_list(NULL, NULL, NULL, 0, 1, &managed));
  CHECK(wc_attachment_living(NULL) == 0);
  wc_dlpack_delete(NULL, 0);
  wc_dlpack_delete(NULL, 1);
  wc_dlpack_capsule_destructor(NULL);
  CHECK(wc_attachment_segment_count(NULL) == 0);
  INVALID(wc_attachment_segment_at(NULL, 0, &segment));
  CHECK(wc_attachment_attribute_count(NULL) == 0);
  INVALID(wc_attachment_attribute_at(NULL, 0, &attribute));
  INVALID(wc_attachment_provenance(NULL, &provenance));
}

static void quantization(void) {
  const char* name = NULL;
  const char* condition = NULL;
  INVALID(wc_quantization_check(NULL, NULL, WC_AT_ATTACH));
  INVALID(wc_quantization_check("", NULL, 2));
  INVALID(wc_quantization_check("fp8", "[", WC_AT_PUBLISH));
  CHECK(wc_quantization_check("", NULL, WC_AT_PUBLISH) == WC_OK);
  CHECK(wc_quantization_check("gptq", NULL, WC_AT_PUBLISH) == WC_UNSUPPORTED);
  CHECK(wc_quantization_method_count() > 0);
  CHECK(wc_quantization_method_at(0, &name, &condition) == WC_OK && name[0] == '\0');
  INVALID(wc_quantization_method_at(wc_quantization_method_count(), &name, &condition));
  CHECK(wc_quantization_method_at(0, NULL, NULL) == WC_OK);
}

static void loading(void) {
  wc_selector selector = WC_SELECTOR_INIT;
  wc_load_options options = WC_LOAD_OPTIONS_INIT;
  wc_load_result* result = NULL;
  wc_load_info load = {0};
  wc_entry_info entry = {0};
  wc_verify_options verifying = WC_VERIFY_OPTIONS_INIT;
  wc_verification* verification = NULL;
  const char* tensor = NULL;
  uint64_t offset = 0;
  INVALID(wc_load(NULL, "x", &options, &result));
  INVALID(wc_load(NULL, NULL, NULL, &result));
  INVALID(wc_load(NULL, NULL, NULL, NULL));
  INVALID(wc_load_result_info(NULL, &load));
  INVALID(wc_load_result_entry(NULL, &entry));
  wc_load_result_free(NULL);
  INVALID(wc_verify(NULL, &selector, &verifying, &verification));
  INVALID(wc_verify(NULL, NULL, NULL, NULL));
  INVALID(wc_verification_entry(NULL, &entry));
  CHECK(wc_verification_bytes(NULL) == 0 && wc_verification_mismatch_count(NULL) == 0);
  INVALID(wc_verification_mismatch_at(NULL, 0, &tensor, &offset));
  wc_verification_free(NULL);
}

static void publishing(void) {
  wc_publish_options options = WC_PUBLISH_OPTIONS_INIT;
  wc_publication* publication = NULL;
  wc_tensor_description tensor = {0};
  wc_attribute attribute = {0};
  wc_load_result* result = NULL;
  uint32_t segment = 0;
  void* address = NULL;
  char digest[33];
  INVALID(wc_publication_begin(NULL, &options, &publication));
  INVALID(wc_publication_begin(NULL, NULL, &publication));
  INVALID(wc_publication_begin(NULL, NULL, NULL));
  INVALID(wc_publication_reserve(NULL, 1, &segment, &address));
  INVALID(wc_publication_write(NULL, 0, 0, "x", 1));
  INVALID(wc_publication_tensor(NULL, &tensor));
  INVALID(wc_publication_attribute(NULL, &attribute));
  INVALID(wc_publication_progress(NULL, 0, 0));
  INVALID(wc_publication_publish(NULL, &result));
  wc_publication_free(NULL);
  INVALID(wc_fingerprint(NULL, digest));
  INVALID(wc_fingerprint("{}", NULL));
  INVALID(wc_fingerprint("", digest));
  INVALID(wc_fingerprint("{\"source\": 1.5}", digest));
  CHECK(wc_fingerprint("{\"source\": {\"source_id\": \"x\"}}", digest) == WC_OK);
  CHECK(strlen(digest) == 32);
}

static void operating(void) {
  wc_selector selector = WC_SELECTOR_INIT;
  wc_lease_list* leases = NULL;
  wc_lease_info lease = {0};
  wc_status* status = NULL;
  wc_status_info status_info = {0};
  wc_device_status device = {0};
  wc_evicted evicted = {0};
  uint64_t kept = 0;
  uint64_t dropped = 0;
  INVALID(wc_leases(NULL, NULL, &leases));
  CHECK(wc_lease_list_count(NULL) == 0);
  INVALID(wc_lease_list_at(NULL, 0, &lease));
  wc_lease_list_free(NULL);
  INVALID(wc_status_get(NULL, &status));
  INVALID(wc_status_read(NULL, &status_info));
  INVALID(wc_status_device_at(NULL, 0, &device));
  wc_status_free(NULL);
  INVALID(wc_evict(NULL, &selector, 0, &evicted));
  INVALID(wc_pin(NULL, &selector, 1));
  INVALID(wc_drain(NULL, &selector, 0, NULL));
  INVALID(wc_stop(NULL, 0, &kept, &dropped));
}

static void doctor(void) {
  wc_connect_options options = WC_CONNECT_OPTIONS_INIT;
  wc_diagnosis* diagnosis = NULL;
  wc_finding finding = {0};
  wc_gpu_info gpu = {0};
  CHECK(strcmp(wc_severity_name(WC_SEVERITY_PROBLEM), "problem") == 0);
  CHECK(strcmp(wc_severity_name(3), "unknown") == 0);
  CHECK(strcmp(wc_severity_name(-1), "unknown") == 0);
  INVALID(wc_doctor(NULL, NULL));
  options.trusted_uid_count = 1; /* without the array */
  INVALID(wc_doctor(&options, &diagnosis));
  CHECK(wc_diagnosis_count(NULL) == 0 && wc_diagnosis_gpu_count(NULL) == 0);
  INVALID(wc_diagnosis_at(NULL, 0, &finding));
  INVALID(wc_diagnosis_gpu_at(NULL, 0, &gpu));
  wc_diagnosis_free(NULL);
}

static void checkpoints(void) {
  wc_checkpoint* checkpoint = (wc_checkpoint*)&failures;
  wc_checkpoint_info info = {0};
  wc_file_tensor tensor = {0};
  const char* name = NULL;
  uint64_t bytes = 0;
  INVALID(wc_checkpoint_open(NULL, NULL, &checkpoint));
  CHECK(checkpoint == NULL);
  INVALID(wc_checkpoint_open("/nonexistent", NULL, NULL));
  CHECK(wc_checkpoint_open("/nonexistent", NULL, &checkpoint) == WC_NOT_FOUND);
  CHECK(checkpoint == NULL);
  INVALID(wc_checkpoint_read(NULL, &info));
  INVALID(wc_checkpoint_tensor_at(NULL, 0, &tensor));
  INVALID(wc_checkpoint_file_at(NULL, 0, &name, &bytes));
  wc_checkpoint_free(NULL);
}

int main(void) {
  names();
  version();
  struct_sizes();
  cancellation();
  connection();
  entries();
  attachment();
  loading();
  quantization();
  publishing();
  operating();
  doctor();
  checkpoints();
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
