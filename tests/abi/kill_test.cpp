// A loader that dies at any point of a load costs nothing but that load.
#include <array>
#include <thread>

#include <spawn.h>
#include <sys/wait.h>

#include "tests/abi/abi_fixture.hpp"

namespace wc::abi {
namespace {

class LoaderKilledTest : public AbiTest, public ::testing::WithParamInterface<const char*> {
 protected:
  /// The loader's wait status; it dies at the kill point, where that is not empty.
  int run_loader(const std::string& checkpoint, const std::string& kill_at) const {
    const std::string program = ABI_LOADER;
    const std::string at = "WEIGHTCACHE_KILL_AT=" + kill_at;
    const std::string where = socket().string();
    std::array<char*, 4> arguments = {const_cast<char*>(program.c_str()),
                                      const_cast<char*>(where.c_str()),
                                      const_cast<char*>(checkpoint.c_str()), nullptr};
    std::array<char*, 2> environment = {const_cast<char*>(at.c_str()), nullptr};
    pid_t child = 0;
    if (::posix_spawn(&child, program.c_str(), nullptr, nullptr, arguments.data(),
                      environment.data()) != 0)
      ADD_FAILURE() << "posix_spawn " << program;
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    return status;
  }
};

TEST_P(LoaderKilledTest, NothingIsLeftAndTheNextLoaderLoads) {
  const std::string folder = make_checkpoint("tiny");
  const int status = run_loader(folder, GetParam());
  ASSERT_TRUE(WIFSIGNALED(status)) << "the loader never came to " << GetParam();
  EXPECT_EQ(WTERMSIG(status), SIGKILL);

  Connection connection = connect();
  EXPECT_TRUE(support::eventually([&] { return connection.list().empty(); }));
  EXPECT_TRUE(support::eventually([&] {
    const auto devices = connection.status().devices;
    return devices.empty() || (devices[0].bytes == 0 && devices[0].loading_bytes == 0 &&
                               devices[0].releasing_bytes == 0);
  }));
  EXPECT_EQ(code_of([&] { (void)connection.attach("tiny"); }), WC_NOT_FOUND);

  EXPECT_EQ(run_loader(folder, ""), 0);
  EXPECT_EQ(bytes_of(connection.attach("tiny").at("t2.4")), u8_tensor("t2.4", 5000).bytes);
}

INSTANTIATE_TEST_SUITE_P(AtEachPoint, LoaderKilledTest,
                         ::testing::Values("load.granted", "load.reserved", "load.filling",
                                           "load.filled", "load.manifest", "load.publishing"),
                         [](const auto& point) {
                           std::string name = point.param;
                           name.erase(0, name.find('.') + 1);
                           return name;
                         });

TEST_F(LoaderKilledTest, WhoWaitsForADeadLoaderLoadsInItsPlace) {
  const std::string folder = make_checkpoint("tiny");
  std::thread doomed([&] { EXPECT_TRUE(WIFSIGNALED(run_loader(folder, "load.publishing"))); });
  Connection connection = connect();
  support::eventually([&] { return !connection.list().empty(); }, std::chrono::seconds(2));
  EXPECT_EQ(connection.load(folder).outcome, WC_LOADED);
  doomed.join();
}

}  // namespace
}  // namespace wc::abi
