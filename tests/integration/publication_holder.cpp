// A publisher that waits for orders on stdin, so that a test decides how long something is being
// loaded: publication_holder NAME BYTES. Says "granted", then obeys: "progress N" reports N bytes,
// "publish" publishes one tensor of BYTES bytes and says "published"; the end of stdin abandons.
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>

#include "weightcache/weightcache.h"

namespace {

int failed(const char* call) {
  std::cerr << call << ": " << wc_error_name(wc_last_error_code()) << ": "
            << wc_last_error_message() << '\n';
  return 1;
}

struct ConnectionCloser {
  void operator()(wc_connection* connection) const { wc_connection_free(connection); }
};
struct PublicationFreer {
  void operator()(wc_publication* publication) const { wc_publication_free(publication); }
};
using Publication = std::unique_ptr<wc_publication, PublicationFreer>;

// One tensor, as large as the segment.
int publish(const Publication& publication, std::uint32_t segment, std::int64_t bytes) {
  wc_tensor_description tensor{};
  tensor.struct_size = sizeof tensor;
  tensor.name = "held";
  tensor.shape = &bytes;
  tensor.rank = 1;
  tensor.dtype = WC_U8;
  tensor.segment = segment;
  if (wc_publication_tensor(publication.get(), &tensor) != WC_OK) return failed("tensor");
  wc_load_result* result = nullptr;
  if (wc_publication_publish(publication.get(), &result) != WC_OK) return failed("publish");
  wc_load_result_free(result);
  std::cout << "published" << std::endl;
  return 0;
}

int obey(const Publication& publication, std::uint32_t segment, std::int64_t bytes) {
  for (std::string order; std::getline(std::cin, order);) {
    if (order == "publish") return publish(publication, segment, bytes);
    if (order.starts_with("progress ")) {
      const auto done = std::strtoull(order.c_str() + sizeof("progress"), nullptr, 10);
      const auto total = static_cast<std::uint64_t>(bytes);
      if (wc_publication_progress(publication.get(), done, total) != WC_OK)
        return failed("progress");
    }
  }
  return 0;
}

int hold(const std::string& name, std::int64_t bytes) {
  wc_connection* raw = nullptr;
  if (wc_connect(nullptr, &raw) != WC_OK) return failed("connect");
  const std::unique_ptr<wc_connection, ConnectionCloser> connection(raw);
  const std::string fingerprint =
      R"({"source":{"source_id":"held )" + name + R"("},"form":"raw","partition":{}})";
  wc_publish_options options = WC_PUBLISH_OPTIONS_INIT;
  options.name = name.c_str();
  options.fingerprint = fingerprint.c_str();
  options.total_bytes = static_cast<std::uint64_t>(bytes);
  wc_publication* begun = nullptr;
  if (wc_publication_begin(connection.get(), &options, &begun) != WC_OK) return failed("begin");
  const Publication publication(begun);
  if (publication == nullptr) {
    std::cerr << "it is resident already\n";
    return 1;
  }
  std::uint32_t segment = 0;
  void* address = nullptr;
  if (wc_publication_reserve(publication.get(), options.total_bytes, &segment, &address) != WC_OK) {
    return failed("reserve");
  }
  std::cout << "granted" << std::endl;
  return obey(publication, segment, bytes);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: publication_holder NAME BYTES\n";
    return 2;
  }
  return hold(argv[1], std::strtoll(argv[2], nullptr, 10));
}
