/* attach NAME: maps a resident entry and prints its tensors with their first bytes.
 *
 * NAME is what `weightcache ls` shows, NAME@GENERATION, @FINGERPRINT, or a checkpoint's path.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <weightcache/weightcache.h>

static int fail(const char* what) {
  fprintf(stderr, "attach: %s: %s: %s\n", what, wc_error_name(wc_last_error_code()),
          wc_last_error_message());
  return EXIT_FAILURE;
}

static void print_tensor(const wc_tensor* tensor, int on_host) {
  uint64_t shown = tensor->bytes < 8 ? tensor->bytes : 8;
  uint64_t i;
  uint32_t d;
  printf("%-40.*s %-5s [", (int)tensor->name_bytes, tensor->name, wc_dtype_name(tensor->dtype));
  for (d = 0; d < tensor->rank; d++) printf(d == 0 ? "%" PRId64 : ", %" PRId64, tensor->shape[d]);
  printf("] %" PRIu64 " bytes:", tensor->bytes);
  for (i = 0; on_host && i < shown; i++) printf(" %02x", ((const unsigned char*)tensor->data)[i]);
  printf(on_host ? "\n" : " on the device\n");
}

static int print_attachment(const wc_attachment* attachment) {
  wc_entry_info entry = {.struct_size = sizeof entry};
  wc_tensor tensor = {.struct_size = sizeof tensor};
  size_t i;
  if (wc_attachment_entry(attachment, &entry) != WC_OK) return fail("entry");
  printf("%s@%" PRIu64 ": %" PRIu64 " tensors, %" PRIu64 " bytes on %s, attached in %" PRIu64
         " us\n",
         entry.name, entry.generation, entry.tensors, entry.bytes, entry.device,
         wc_attachment_attach_ns(attachment) / 1000);
  for (i = 0; i < wc_attachment_tensor_count(attachment); i++) {
    if (wc_attachment_tensor_at(attachment, i, &tensor) != WC_OK) return fail("tensor");
    print_tensor(&tensor, entry.transport == WC_HOST_FD);
  }
  return EXIT_SUCCESS;
}

int main(int argc, char** argv) {
  wc_connection* connection = NULL;
  wc_attachment* attachment = NULL;
  wc_selector selector = WC_SELECTOR_INIT;
  int status;
  if (argc != 2) {
    fprintf(stderr, "usage: attach NAME\n");
    return 2;
  }
  if (wc_connect(NULL, &connection) != WC_OK) return fail("connect");
  selector.text = argv[1];
  status = wc_attach(connection, &selector, NULL, &attachment) == WC_OK
               ? print_attachment(attachment)
               : fail(argv[1]);
  wc_detach(attachment); /* unmaps, and ends the lease */
  wc_connection_free(connection);
  return status;
}
