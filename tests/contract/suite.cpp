#include "tests/contract/contract_test.hpp"

namespace wc::contract {

// A machine may have none of a program's devices.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DeviceContract);

INSTANTIATE_TEST_SUITE_P(All, DeviceContract, testing::ValuesIn(device_factories()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace wc::contract
