#include "memory/cuda/numa.hpp"

#include <fstream>

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace wc::memory::cuda {

int numa_node_of(const std::string& pci) {
  std::ifstream file("/sys/bus/pci/devices/" + pci + "/numa_node");
  int node = -1;
  file >> node;
  return file ? node : -1;
}

PreferredNode::PreferredNode(int node) {
  constexpr int kMaskBits = 64;
  if (node < 0 || node >= kMaskBits) return;
  const unsigned long mask = 1UL << node;
  // glibc has no wrapper; libnuma would be a dependency for two system calls.
  set_ = ::syscall(SYS_set_mempolicy, MPOL_PREFERRED, &mask, kMaskBits + 1) == 0;
}

PreferredNode::~PreferredNode() {
  if (set_) ::syscall(SYS_set_mempolicy, MPOL_DEFAULT, nullptr, 0);
}

}  // namespace wc::memory::cuda
