// Programs with other people's drivers for PostgreSQL, and both of its stores, on the same lock.
#include "postgres_under_test.h"
#include "testing/peer_conformance.h"
#include "testing/results.h"

namespace leasehold::testing {
namespace {

Meeting meet(const std::string& mode, const std::string& lock, const std::string& file,
             const std::string& kind) {
  auto under = std::make_shared<PostgresUnderTest>("mode=" + mode);
  const std::string known_as = Client(under->open()).inspect(lock_name(lock))->known_as;
  return {.open = [under] { return under->open(); },
          .url = under->url(),
          .lock = lock,
          .program = python_peer(LEASEHOLD_PEERS "/" + file),
          .address = shared_server().url(under->database()),
          .name = mode == "advisory" ? known_as : lock,
          .kind = kind};
}

const PeerCase kPeers[] = {
    {"psycopg2",
     [](const std::string& lock) { return meet("advisory", lock, "advisory.py", "psycopg2"); }},
    {"psycopg",
     [](const std::string& lock) { return meet("advisory", lock, "advisory.py", "psycopg"); }},
    {"functions",
     [](const std::string& lock) { return meet("rows", lock, "functions.py", "psycopg"); }},
    {"functions_by_psycopg2",
     [](const std::string& lock) { return meet("rows", lock, "functions.py", "psycopg2"); }},
};

INSTANTIATE_TEST_SUITE_P(Postgres, PeerConformance, ::testing::ValuesIn(kPeers), name_of_peer_case);

// It calls pg_advisory_lock with two numbers, which are never the same lock as one.
TEST(ToozTest, HasOtherLocksThanLeasehold) {
  for (const std::string mode : {"advisory", "rows"}) {
    Meeting meeting = meet(mode, "job", "", "");
    meeting.program = tooz_peer();
    meeting.address.replace(0, meeting.address.find(':'), "postgresql");
    Client mine(meeting.open());
    const auto lease = mine.acquire("job");
    ASSERT_TRUE(good(lease));
    std::vector<std::string> words = meeting.program;
    words.insert(words.end(), {meeting.address, "job", "30000"});
    Worker other = Worker::start(std::move(words));
    ASSERT_EQ(other.line(), "ready");
    other.tell("try");
    EXPECT_EQ(other.line(), "held") << mode;
  }
}

}  // namespace
}  // namespace leasehold::testing
