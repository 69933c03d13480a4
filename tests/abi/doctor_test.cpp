// What the machine can do, as a program asks.
#include <algorithm>

#include "tests/abi/abi_fixture.hpp"

namespace wc::abi {
namespace {

using weightcache::Diagnosis;

class DoctorTest : public AbiTest {
 protected:
  [[nodiscard]] Diagnosis ask(const std::string& at) const {
    weightcache::ConnectOptions options;
    options.socket = at;
    return weightcache::doctor(options);
  }
  static const Diagnosis::Finding* find(const Diagnosis& diagnosis, const std::string& check) {
    const auto at = std::find_if(diagnosis.findings.begin(), diagnosis.findings.end(),
                                 [&](const auto& finding) { return finding.check == check; });
    return at == diagnosis.findings.end() ? nullptr : &*at;
  }
};

TEST_F(DoctorTest, EveryFindingIsWholeAndTheDaemonIsAmongThem) {
  const Diagnosis diagnosis = ask(socket().string());
  EXPECT_GT(diagnosis.findings.size(), 8U);
  for (const auto& finding : diagnosis.findings) {
    EXPECT_FALSE(finding.area.empty() || finding.check.empty() || finding.text.empty());
    EXPECT_EQ(finding.advice.empty(), finding.severity == WC_SEVERITY_OK) << finding.text;
  }
  const auto* daemon = find(diagnosis, "reachable");
  ASSERT_NE(daemon, nullptr);
  EXPECT_EQ(daemon->severity, WC_SEVERITY_OK);
  EXPECT_THAT(daemon->text, HasSubstr(socket().string()));
}

TEST_F(DoctorTest, AnAbsentDaemonIsAFindingAndNoError) {
  const Diagnosis diagnosis = ask("/nonexistent/socket");
  const auto* daemon = find(diagnosis, "reachable");
  ASSERT_NE(daemon, nullptr);
  EXPECT_EQ(daemon->severity, WC_SEVERITY_WARNING);
  EXPECT_THAT(daemon->advice, HasSubstr("weightcache serve"));
}

}  // namespace
}  // namespace wc::abi
