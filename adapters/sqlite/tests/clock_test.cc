// Processes whose clocks are moved still agree on when a lease ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "leasehold/client.h"
#include "leasehold/sqlite/adapter.h"
#include "rig/clock_shim.h"
#include "rig/temp_folder.h"
#include "testing/in_child.h"
#include "testing/worker.h"

namespace leasehold::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::StartsWith;

class ClockTest : public ::testing::Test {
 protected:
  Client client() {
    return Client(sqlite::adapters().front().open_store(Url::parse(url).value(), {}).value());
  }
  rig::TempFolder folder;
  std::string url = "sqlite:" + folder.file("locks.db");
};

TEST_F(ClockTest, MovedWallClockChangesNothing) {
  rig::ClockShim clock(LEASEHOLD_CLOCK_SHIM);
  // AddressSanitizer wants to be the first library of a program; this one may be before it.
  std::vector<std::string> moved = {"env", "ASAN_OPTIONS=verify_asan_link_order=0"};
  for (const auto& [name, value] : clock.environment()) moved.push_back(name + "=" + *value);
  for (const auto offset : {1h, -1h}) {
    clock.move(offset);
    Client here = client();
    auto lease = here.acquire("job", {.ttl = 60s});
    ASSERT_TRUE(lease);
    Worker other = Worker::hold(url, "job", 60s, 0s, moved);
    EXPECT_EQ(other.line(), "asking");
    EXPECT_THAT(other.line(), StartsWith("error busy")) << offset.count() << " h off";
    ASSERT_TRUE(lease->release());
    Worker holder = Worker::hold(url, "job", 60s, 0s, moved);
    EXPECT_EQ(holder.line(), "asking");
    EXPECT_THAT(holder.line(), StartsWith("held"));
    EXPECT_EQ(here.acquire("job").error().code, ErrorCode::busy) << offset.count() << " h off";
    holder.tell("release");
    EXPECT_EQ(holder.line(), "released");
  }
}

TEST_F(ClockTest, TimeNamespaceChangesNothing) {
  Client here = client();
  auto lease = here.acquire("job", {.ttl = 60s});
  ASSERT_TRUE(lease);
  const auto moved = in_namespaces({"--time", "--boottime", "100000", "--fork"}, {});
  Worker other = Worker::hold(url, "job", 60s, 0s, moved);
  EXPECT_EQ(other.line(), "asking") << kNamespacesNeed;
  EXPECT_THAT(other.line(), StartsWith("error busy"));
}

}  // namespace
}  // namespace leasehold::testing
