// Where a GPU's staging memory should lie: on the NUMA node that its PCIe root is on.
#pragma once

#include <string>

namespace wc::memory::cuda {

/// From sysfs; -1 where the machine has one node only, or does not say.
[[nodiscard]] int numa_node_of(const std::string& pci);

/// Memory that this thread takes while the object lives comes from a node, if there is room: a wish
/// and no demand, so failures are no errors. -1: does nothing.
class PreferredNode {
 public:
  explicit PreferredNode(int node);
  PreferredNode(const PreferredNode&) = delete;
  PreferredNode& operator=(const PreferredNode&) = delete;
  ~PreferredNode();

 private:
  bool set_ = false;
};

}  // namespace wc::memory::cuda
