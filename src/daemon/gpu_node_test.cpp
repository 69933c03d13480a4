#include "daemon/gpu_node.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/support/temp_folder.hpp"

namespace wc::daemon {
namespace {

class GpuNodeTest : public testing::Test {
 protected:
  void add_gpu(const std::string& bus, const std::string& uuid, const std::string& minor) {
    folder_.write("proc/" + bus + "/information", "Model: \t\t NVIDIA H200\nGPU UUID: \t " + uuid +
                                                      "\nDevice Minor: \t " + minor + "\n");
    folder_.write("dev/nvidia" + minor, "");
  }
  [[nodiscard]] std::vector<ino_t> held(const std::string& uuid) const {
    std::vector<ino_t> inodes;
    for (const Fd& fd : hold_gpu(uuid, roots())) {
      struct stat info{};
      EXPECT_EQ(::fstat(fd.get(), &info), 0);
      inodes.push_back(info.st_ino);
    }
    return inodes;
  }
  [[nodiscard]] ino_t inode(const std::string& name) const {
    struct stat info{};
    EXPECT_EQ(::stat((folder_ / name).c_str(), &info), 0);
    return info.st_ino;
  }
  [[nodiscard]] GpuNodeRoots roots() const { return {folder_ / "proc", folder_ / "dev"}; }

  support::TempFolder folder_;
};

TEST_F(GpuNodeTest, HoldsTheGpuWithTheUuid) {
  add_gpu("0000:18:00.0", "GPU-aaaa", "0");
  add_gpu("0000:2a:00.0", "GPU-bbbb", "3");
  EXPECT_EQ(held("GPU-bbbb"), std::vector<ino_t>{inode("dev/nvidia3")});
}

TEST_F(GpuNodeTest, HoldsEveryGpuForAnInstanceOfOne) {
  add_gpu("0000:18:00.0", "GPU-aaaa", "0");
  add_gpu("0000:2a:00.0", "GPU-bbbb", "3");
  EXPECT_EQ(held("MIG-cccc").size(), 2U);
}

TEST_F(GpuNodeTest, HoldsNothingForHostMemoryOrWithoutADriver) {
  EXPECT_TRUE(held("GPU-aaaa").empty());
  add_gpu("0000:18:00.0", "GPU-aaaa", "0");
  EXPECT_TRUE(held("cpu").empty());
}

}  // namespace
}  // namespace wc::daemon
