// Processes whose clocks are moved still agree on when a lease ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "leasehold/client.h"
#include "leasehold/sqlite/adapter.h"
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
  for (const std::string offset : {"3600", "-3600"}) {
    Client here = client();
    auto lease = here.acquire("job", {.ttl = 60s});
    ASSERT_TRUE(lease);
    const std::vector<std::string> moved = {
        "env",
        // AddressSanitizer wants to be the first library of a program; this one may be before it.
        "ASAN_OPTIONS=verify_asan_link_order=0",
        std::string("LD_PRELOAD=") + LEASEHOLD_WALL_CLOCK_SHIM,
        "WALL_CLOCK_OFFSET=" + offset,
    };
    Worker other = Worker::hold(url, "job", 60s, 0s, moved);
    EXPECT_EQ(other.line(), "asking");
    EXPECT_THAT(other.line(), StartsWith("error busy")) << "offset " << offset;
    ASSERT_TRUE(lease->release());
    Worker holder = Worker::hold(url, "job", 60s, 0s, moved);
    EXPECT_EQ(holder.line(), "asking");
    EXPECT_THAT(holder.line(), StartsWith("held"));
    EXPECT_EQ(here.acquire("job").error().code, ErrorCode::busy) << "offset " << offset;
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
