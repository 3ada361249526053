// A PostgreSQL server whose disk is full, on a small filesystem of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "postgres_under_test.h"
#include "testing/small_disk.h"

namespace leasehold::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::AnyOf;
using ::testing::HasSubstr;

// All but some kilobytes of the file that the server writes its log to: the next file has no room.
void use_up_the_log(const rig::PostgresServer& server) {
  server.psql(
      "SELECT pg_logical_emit_message(false, 'x', repeat('x', 16 * 1024 * 1024 - 300000 -"
      " (pg_walfile_name_offset(pg_current_wal_insert_lsn())).file_offset))");
}

// Acquires and releases until that fails; the last token that was granted.
std::int64_t use_until_it_fails(Client& client, std::optional<Error>& failure) {
  std::int64_t last = 0;
  for (int i = 0; i < 20000 && !failure; ++i) {
    auto lease = client.acquire_fenced("job", {.ttl = 2s, .store_timeout = 2s});
    if (!lease) {
      failure = lease.error();
      return last;
    }
    last = lease->token().number.value();
    if (auto released = lease->release(); !released) failure = released.error();
  }
  return last;
}

void check_full_disk(const std::filesystem::path& disk) {
  rig::PostgresServer server(
      {.settings = {"wal_recycle=off", "min_wal_size=32MB", "max_wal_size=48MB"},
       .data = (disk / "home").string()});
  Client client(open_postgres(server.url("postgres")).value());
  ASSERT_TRUE(client.acquire_fenced("job")->release());
  fill_disk(disk / "filler");
  use_up_the_log(server);
  std::optional<Error> failure;
  const std::int64_t last = use_until_it_fails(client, failure);
  ASSERT_TRUE(failure) << "the disk did not become full";
  EXPECT_THAT(failure->code, AnyOf(ErrorCode::unavailable, ErrorCode::outcome_unknown))
      << to_string(*failure);
  EXPECT_THAT(to_string(*failure), HasSubstr(server.address()));
  // The words of its own session, or of what another one's failure did to the server.
  EXPECT_THAT(failure->store_words,
              AnyOf(HasSubstr("No space left on device"), HasSubstr("server closed the connection"),
                    HasSubstr("crash of another server process"), HasSubstr("in recovery mode"),
                    HasSubstr("Connection refused")));
  EXPECT_THAT(server.log(), HasSubstr("No space left on device"));
  std::filesystem::remove(disk / "filler");
  // Full of log, the server stops by itself and has to be started.
  server.kill();
  server.start();
  const std::int64_t counter =
      std::stoll(server.psql("SELECT token FROM leasehold.lock WHERE name = 'job'"));
  EXPECT_GE(counter, last) << "of the last grant, or of the one that failed";
  auto after = client.acquire_fenced("job", {.wait = 60s, .store_timeout = 30s});
  ASSERT_TRUE(after) << to_string(after.error());
  EXPECT_GT(after->token().number.value(), counter);
}

TEST(FullDiskTest, NothingIsGrantedThatIsNotWrittenAndItRecovers) {
  EXPECT_TRUE(passes_on_a_small_disk("size=120m,mode=1777", check_full_disk));
}

}  // namespace
}  // namespace leasehold::testing
