#include "rig/clock_shim.h"

#include <gtest/gtest.h>
#include <time.h>

#include "kit/text/number.h"
#include "rig/output_of.h"

namespace leasehold::rig {
namespace {

using namespace std::chrono_literals;

TEST(ClockShimTest, ClockOfAProgramFollows) {
  ClockShim clock(LEASEHOLD_CLOCK_SHIM);
  for (const std::chrono::seconds by : {0s, 3600s, -3600s}) {
    clock.move(by);
    std::vector<std::string> argv = {"env"};
    for (const auto& [name, value] : clock.environment()) argv.push_back(name + "=" + *value);
    argv.insert(argv.end(), {"date", "+%s"});
    const auto seen = kit::number_in<std::int64_t>(output_of(argv));
    ASSERT_TRUE(seen);
    EXPECT_NEAR(static_cast<double>(*seen - time(nullptr)), static_cast<double>(by.count()), 20);
  }
}

}  // namespace
}  // namespace leasehold::rig
