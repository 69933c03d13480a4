/* loader SOCKET PATH: loads, in a process of its own, so that it can be killed at any point. */
#include <stdio.h>

#include "weightcache/weightcache.h"

int main(int argc, char** argv) {
  wc_connect_options options = WC_CONNECT_OPTIONS_INIT;
  wc_connection* connection = NULL;
  wc_load_result* result = NULL;
  int code;
  if (argc != 3) return 2;
  options.socket = argv[1];
  code = wc_connect(&options, &connection);
  if (code == WC_OK) code = wc_load(connection, argv[2], NULL, &result);
  if (code != WC_OK) fprintf(stderr, "loader: %s\n", wc_last_error_message());
  wc_load_result_free(result);
  wc_connection_free(connection);
  return code == WC_OK ? 0 : 1;
}
