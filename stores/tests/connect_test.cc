// Opening a store whose server takes the connection and then says nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <semaphore>
#include <thread>

#include "leasehold/client.h"
#include "leasehold/stores.h"
#include "testing/one_in_time.h"
#include "testing/scripted_server.h"

namespace leasehold {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class SilentServer {
 public:
  void await_client() const { came_.acquire(); }
  std::string address() const { return server_.address(); }

 private:
  mutable std::counting_semaphore<> came_{0};
  const testing::ScriptedServer server_{[this](int client) {
    came_.release();
    testing::wire::only_listen(client);
  }};
};

class ConnectTest : public ::testing::TestWithParam<std::string> {
 protected:
  ConnectTest() { register_stores(registry); }

  std::string url() const {
    const std::string all =
        servers[0].address() + "," + servers[1].address() + "," + servers[2].address();
    if (GetParam() == "redlock") return "redlock://me:hunter2@" + all;
    return GetParam() + "://me:hunter2@" + servers[0].address() + "/0";
  }

  Registry registry;
  const std::array<SilentServer, 3> servers;
};

TEST_P(ConnectTest, EndsAtItsDeadline) {
  EXPECT_TRUE(testing::one_ends_in_time(1900ms, [&] {
    const auto client = connect(url(), {.store_timeout = 300ms}, registry);
    ASSERT_FALSE(client);
    EXPECT_EQ(client.error().code, ErrorCode::unavailable) << to_string(client.error());
    EXPECT_THAT(to_string(client.error()),
                AllOf(HasSubstr(servers[0].address()), Not(HasSubstr("hunter2"))));
  })) << "some give up after two seconds by themselves";
}

TEST_P(ConnectTest, CanBeLeftByAStopToken) {
  std::stop_source stop;
  const std::jthread leaving([&] {
    servers[0].await_client();
    stop.request_stop();
  });
  const auto client =
      connect(url(), {.store_timeout = Millis::max(), .stop = stop.get_token()}, registry);
  ASSERT_FALSE(client);
  EXPECT_EQ(client.error().code, ErrorCode::cancelled) << to_string(client.error());
}

TEST_P(ConnectTest, NeedsAPositiveTime) {
  EXPECT_EQ(connect(url(), {.store_timeout = 0ms}, registry).error().code, ErrorCode::invalid);
}

struct Nothing {
  static constexpr std::string_view kOffer = "nothing";
};

// Which loads it, compares it with its description, and opens nothing.
TEST(TechnologiesTest, EachIsAsItIsDescribed) {
  Registry registry;
  register_stores(registry);
  const auto all = registry.technologies();
  EXPECT_EQ(all.size(), LEASEHOLD_TECHNOLOGIES);
  for (const Technology& technology : all) {
    for (const Scheme& scheme : technology.schemes) {
      for (const Use& use : scheme.uses) {
        const auto url = Url::parse(use.example);
        ASSERT_TRUE(url) << use.example;
        EXPECT_EQ(url->scheme, scheme.name);
        EXPECT_TRUE(technology.check_options(*url, use.what)) << use.example;
        EXPECT_EQ(registry.open<Nothing>(use.example).error().message,
                  "there is no nothing for '" + scheme.name + "'");
      }
    }
  }
}

std::vector<std::string> schemes_with_a_server() {
  Registry registry;
  register_stores(registry);
  std::vector<std::string> schemes;
  for (const Technology& technology : registry.technologies()) {
    for (const Scheme& scheme : technology.schemes) {
      if (scheme.use(kStoreUse) && !technology.one_machine) schemes.push_back(scheme.name);
    }
  }
  return schemes;
}

INSTANTIATE_TEST_SUITE_P(Every, ConnectTest, ::testing::ValuesIn(schemes_with_a_server()),
                         [](const auto& scheme) { return scheme.param; });

}  // namespace
}  // namespace leasehold
