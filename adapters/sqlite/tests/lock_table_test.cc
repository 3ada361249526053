// The file: whose it is, which boot it belongs to, what it refuses.
#include "lock_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <fstream>
#include <future>
#include <thread>

#include "leasehold/process/io.h"
#include "leasehold/sqlite/adapter.h"
#include "store.h"
#include "testing/temp_folder.h"
#include "testing/virtual_time.h"

namespace leasehold::sqlite {
namespace {

using namespace std::chrono_literals;
using leasehold::testing::FakeClock;
using leasehold::testing::TempFolder;
using ::testing::HasSubstr;

class LockTableTest : public ::testing::Test {
 protected:
  static LockName name(const std::string& text = "job") { return LockName::parse(text).value(); }
  static RequestId new_request() { return RequestId::random(system_random()); }

  Result<std::unique_ptr<LockTable>> open(MachineIdentity machine = {"here", "boot-1"},
                                          Millis within = 10s) {
    LockTable::Options options;
    options.path = path;
    options.machine = std::move(machine);
    options.clock = &clock;
    options.random = &system_random();
    return LockTable::open(std::move(options), {BootClock::now() + within, {}});
  }

  Result<AcquireReply> acquire(LockTable& table, const RequestId& request, bool queue = false,
                               const std::string& wake = "") {
    table.be_patient({BootClock::now() + 10s, {}});
    return table.acquire(
        {name(), request, OwnerLabel::parse("test").value(), Ttl::of(30s).value(), queue}, wake);
  }
  std::int64_t token(LockTable& table, const RequestId& request) {
    return std::get<Granted>(acquire(table, request).value()).token.value();
  }
  void write(const std::string& text) { std::ofstream(path, std::ios::binary) << text; }
  void sql(const std::string& statement) {
    auto database = Database::open(path, false).value();
    const auto ok = database.connection().exec(statement.c_str());
    ASSERT_TRUE(ok) << to_string(ok.error());
  }

  FakeClock clock;
  TempFolder folder;
  std::string path = folder.file("locks.db");
};

// ---- the log ------------------------------------------------------------------------------

TEST_F(LockTableTest, ShortProgramsLeaveAShortLog) {
  constexpr std::size_t kFrame = 4096 + 24;
  for (int i = 0; i < 100; ++i) {
    auto table = open().value();
    const RequestId request = new_request();
    EXPECT_EQ(token(*table, request), i + 1);
    ASSERT_TRUE(table->release({name(), request, 0ms}));
    table.reset();
    ASSERT_LT(std::filesystem::file_size(path + "-wal"), 70 * kFrame) << "after program " << i;
  }
}

TEST_F(LockTableTest, FileWithoutALogGetsOne) {
  { ASSERT_TRUE(open()); }
  sql("PRAGMA journal_mode = DELETE");
  ASSERT_FALSE(std::filesystem::exists(path + "-wal"));
  auto table = open().value();
  token(*table, new_request());
  EXPECT_TRUE(std::filesystem::exists(path + "-wal"));
}

// ---- machines and boots --------------------------------------------------------------------

TEST_F(LockTableTest, AnotherBootEndsAllLeasesAndBeginsAboveAllTokens) {
  const RequestId old = new_request();
  std::int64_t first = 0;
  {
    auto table = open().value();
    first = token(*table, old);
    ASSERT_TRUE(std::holds_alternative<Queued>(acquire(*table, new_request(), true).value()));
  }
  clock.set(BootTime(1s));  // the boot clock begins anew
  auto table = open({"here", "boot-2"}).value();
  EXPECT_FALSE(table->inspect(name())->holder);
  EXPECT_TRUE(table->inspect(name())->waiters.empty());
  EXPECT_EQ(table->renew({{name(), old, Ttl::of(30s).value()}})->at(0), RenewReply::gone);
  EXPECT_GT(token(*table, new_request()), first);
}

TEST_F(LockTableTest, AnotherMachineIsRefusedAndChangesNothing) {
  const RequestId held = new_request();
  {
    auto table = open().value();
    token(*table, held);
  }
  const auto refused = open({"elsewhere", "boot-9"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
  EXPECT_THAT(refused.error().message, HasSubstr("another machine (here)"));
  EXPECT_THAT(refused.error().message, HasSubstr("LEASEHOLD_MACHINE_ID"));
  EXPECT_EQ(open().value()->inspect(name())->holder->request, held);
}

TEST_F(LockTableTest, MachineWithoutAnIdIsNotTrustedAcrossBoots) {
  { ASSERT_TRUE(open({"", "boot-1"})); }
  EXPECT_EQ(open({"", "boot-2"}).error().code, ErrorCode::unsupported);
}

TEST_F(LockTableTest, ContainersOfOneBootShareTheFile) {
  const RequestId held = new_request();
  {
    auto table = open({"host", "boot-1"}).value();
    token(*table, held);
  }
  auto table = open({"container", "boot-1"}).value();
  EXPECT_EQ(table->inspect(name())->holder->request, held);
}

// A machine restored from a snapshot is in the same boot, at an earlier time, and may find a file
// that was written later.
TEST_F(LockTableTest, GrantOfATimeThatIsYetToComeEndsAfterItsTtl) {
  auto table = open().value();
  token(*table, new_request());
  clock.set(clock.now() - 40min);
  const RequestId next = new_request();
  EXPECT_TRUE(std::holds_alternative<Busy>(acquire(*table, next).value()))
      << "its holder may be in the snapshot";
  EXPECT_LE(table->inspect(name())->holder->remaining, 30s);
  EXPECT_GE(table->inspect(name())->holder->held_for, 0ms);
  clock.advance(30s);
  EXPECT_EQ(token(*table, next), 2);
}

TEST_F(LockTableTest, RenewalOfATimeThatIsYetToComeEndsAfterItsTtl) {
  auto table = open().value();
  const RequestId holder = new_request();
  token(*table, holder);
  const BootTime snapshot = clock.now();
  for (int i = 0; i < 10; ++i) {
    clock.advance(20s);
    ASSERT_EQ(table->renew({{name(), holder, Ttl::of(40s).value()}})->at(0), RenewReply::renewed);
  }
  clock.set(snapshot);
  acquire(*table, new_request()).value();
  clock.advance(40s - 1ns);
  EXPECT_TRUE(std::holds_alternative<Busy>(acquire(*table, new_request()).value()));
  clock.advance(1ns);
  EXPECT_EQ(token(*table, new_request()), 2);
}

TEST_F(LockTableTest, KeptLockOfATimeThatIsYetToComeEndsWhenItWasKeptSoLong) {
  auto table = open().value();
  const RequestId holder = new_request();
  token(*table, holder);
  ASSERT_TRUE(table->release({name(), holder, 10min}));
  clock.set(clock.now() - 40min);
  EXPECT_TRUE(std::holds_alternative<Busy>(acquire(*table, new_request()).value()));
  clock.advance(10min);
  EXPECT_EQ(token(*table, new_request()), 2);
}

TEST_F(LockTableTest, WaiterOfATimeThatIsYetToComeIsPassedOver) {
  auto table = open().value();
  const RequestId holder = new_request();
  token(*table, holder);
  ASSERT_TRUE(std::holds_alternative<Queued>(acquire(*table, new_request(), true).value()));
  ASSERT_TRUE(table->release({name(), holder, 0ms}));
  clock.set(clock.now() - 40min);
  EXPECT_TRUE(table->inspect(name())->waiters.empty());
  EXPECT_EQ(token(*table, new_request()), 2);
}

// ---- expiry --------------------------------------------------------------------------------

TEST_F(LockTableTest, ExpiresToTheNanosecond) {
  auto table = open().value();
  const RequestId first = new_request();
  token(*table, first);
  clock.advance(30s - 1ns);
  EXPECT_TRUE(std::holds_alternative<Busy>(acquire(*table, new_request()).value()));
  EXPECT_EQ(table->renew({{name(), first, Ttl::of(30s).value()}})->at(0), RenewReply::renewed);
  clock.advance(30s);
  EXPECT_EQ(table->renew({{name(), first, Ttl::of(30s).value()}})->at(0), RenewReply::gone);
  EXPECT_EQ(table->release({name(), first, 0ms}).value(), ReleaseReply::not_held);
  EXPECT_EQ(token(*table, new_request()), 2);
}

TEST_F(LockTableTest, WaiterThatDoesNotAskAgainIsPassedOver) {
  auto table = open().value();
  const RequestId holder = new_request();
  token(*table, holder);
  ASSERT_TRUE(std::holds_alternative<Queued>(acquire(*table, new_request(), true).value()));
  ASSERT_TRUE(table->release({name(), holder, 0ms}));
  const RequestId behind = new_request();
  EXPECT_TRUE(std::holds_alternative<Queued>(acquire(*table, behind, true).value()));
  clock.advance(10s);
  EXPECT_TRUE(std::holds_alternative<Granted>(acquire(*table, behind, true).value()));
}

TEST_F(LockTableTest, FirstTwoWaitersLookAgainWhenTheLeaseRunsOut) {
  auto table = open().value();
  token(*table, new_request());
  clock.advance(29s);
  std::vector<Millis> rechecks;
  for (int i = 0; i < 3; ++i) {
    rechecks.push_back(
        std::get<Queued>(acquire(*table, new_request(), true).value()).recheck_after);
  }
  EXPECT_LE(rechecks[0], 1001ms);
  EXPECT_LE(rechecks[1], 1001ms);
  EXPECT_GT(rechecks[2], 1001ms);
}

// ---- tokens --------------------------------------------------------------------------------

TEST_F(LockTableTest, TokensGoOnAfterTheBlockIsUsedUp) {
  auto table = open().value();
  for (std::int64_t expected = 1; expected <= 2500; ++expected) {
    const RequestId request = new_request();
    ASSERT_EQ(token(*table, request), expected);
    ASSERT_TRUE(table->release({name(), request, 0ms}));
  }
}

TEST_F(LockTableTest, TokenNearItsLimitIsRefusedNeverWrapped) {
  { ASSERT_TRUE(open()); }
  sql("UPDATE store SET floor = 9223372036854775806, ceiling = 9223372036854775807");
  auto table = open().value();
  const RequestId last = new_request();
  EXPECT_EQ(token(*table, last), INT64_MAX);
  ASSERT_TRUE(table->release({name(), last, 0ms}));
  const auto refused = acquire(*table, new_request());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
  EXPECT_THAT(refused.error().message, HasSubstr("used up"));
}

TEST_F(LockTableTest, NewBootNearTheLimitEndsTheLeasesAndGrantsNothing) {
  {
    auto table = open().value();
    token(*table, new_request());
  }
  sql("UPDATE store SET reserved = 9223372036854775800");
  auto table = open({"here", "boot-2"}).value();
  EXPECT_FALSE(table->inspect(name())->holder);
  EXPECT_THAT(acquire(*table, new_request()).error().message, HasSubstr("used up"));
}

TEST_F(LockTableTest, CountersThatMakeNoSenseAreRepairedOrRefused) {
  {
    auto table = open().value();
    const RequestId request = new_request();
    token(*table, request);
    ASSERT_TRUE(table->release({name(), request, 0ms}));
  }
  sql("UPDATE lock SET token = 5000000000");
  {
    auto table = open().value();
    const RequestId request = new_request();
    EXPECT_EQ(token(*table, request), 5000000001);
    ASSERT_TRUE(table->release({name(), request, 0ms}));
  }
  sql("UPDATE lock SET token = -5");
  auto table = open().value();
  EXPECT_THAT(acquire(*table, new_request()).error().message, HasSubstr("damaged"));
}

TEST_F(LockTableTest, LabelsFromTheFileAreSafeToPrint) {
  {
    auto table = open().value();
    token(*table, new_request());
  }
  sql("UPDATE lock SET owner = 'a' || char(27) || '[31m'");
  auto table = open().value();
  EXPECT_EQ(std::get<Busy>(acquire(*table, new_request()).value()).ahead, "(an unreadable label)");
  EXPECT_EQ(table->inspect(name())->holder->owner, "(an unreadable label)");
}

TEST_F(LockTableTest, WakeAddressFromTheFileReachesNothingElse) {
  auto table = open().value();
  const RequestId holder = new_request();
  token(*table, holder);
  ASSERT_TRUE(
      std::holds_alternative<Queued>(acquire(*table, new_request(), true, "../precious").value()));
  std::filesystem::create_directories(path + "-wake");
  std::ofstream(folder.file("precious")) << "x";
  ASSERT_TRUE(table->release({name(), holder, 0ms}));
  acquire(*table, new_request());
  EXPECT_TRUE(std::filesystem::exists(folder.file("precious")));
}

TEST_F(LockTableTest, ForkedChildOfAUserOfTheStoreIsRefused) {
  const auto url = Url::parse("sqlite:" + path).value();
  ASSERT_TRUE(open_store(url, {}));
  const pid_t child = fork();
  if (child == 0) {
    const auto refused = open_store(url, {});
    _exit(!refused && refused.error().code == ErrorCode::unsupported ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(LockTableTest, KilledAtAnyInstructionNoTokenRepeats) {
  std::int64_t last = 0;
  for (int round = 0; round < 40; ++round) {
    auto pipe = process::make_pipe();
    const pid_t child = fork();
    if (child == 0) {
      auto table = open();
      while (table) {
        const RequestId request = new_request();
        const auto reply = acquire(**table, request);
        const auto* granted = reply ? std::get_if<Granted>(&*reply) : nullptr;
        if (granted == nullptr) _exit(1);
        const std::int64_t number = granted->token.value();
        if (::write(pipe.write.get(), &number, sizeof number) < 0) _exit(2);
        if (!(*table)->release({name(), request, 0ms})) _exit(3);
      }
      _exit(4);
    }
    pipe.write.reset();
    std::int64_t number = 0;
    for (int i = 0; i < 10 + round; ++i) {
      ASSERT_EQ(read(pipe.read.get(), &number, sizeof number), static_cast<ssize_t>(sizeof number));
      ASSERT_GT(number, last);
      last = number;
    }
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    while (read(pipe.read.get(), &number, sizeof number) > 0) {
      ASSERT_GT(number, last);
      last = number;
    }
    clock.advance(1min);  // whoever died holding it is over
    auto table = open().value();
    const RequestId request = new_request();
    ASSERT_GT(token(*table, request), last);
    last = token(*table, request);
    ASSERT_TRUE(table->release({name(), request, 0ms}));
  }
}

// ---- files that are something else ---------------------------------------------------------

TEST_F(LockTableTest, FileThatIsNoDatabaseIsRefusedAndKept) {
  write(std::string(4096, 'x'));
  const auto refused = open();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
  EXPECT_THAT(refused.error().message, HasSubstr("not a SQLite database"));
  std::ifstream file(path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), std::string(4096, 'x'));
}

TEST_F(LockTableTest, DatabaseOfAnotherProgramIsRefusedAndKept) {
  auto database = Database::open(path, true).value();
  ASSERT_TRUE(database.connection().exec("CREATE TABLE customer(name TEXT)"));
  const auto refused = open();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::invalid);
  EXPECT_THAT(refused.error().message, HasSubstr("another program"));
  EXPECT_TRUE(database.connection().exec("SELECT name FROM customer"));
  auto mode = database.connection().prepare("PRAGMA journal_mode").value();
  ASSERT_TRUE(mode.step().value());
  EXPECT_EQ(mode.text(0), "delete");
}

TEST_F(LockTableTest, NewerFormatIsRefused) {
  { ASSERT_TRUE(open()); }
  sql("PRAGMA user_version = 3");
  EXPECT_THAT(open().error().message, HasSubstr("format 3"));
}

TEST_F(LockTableTest, DamagedFileIsToldNotTrusted) {
  { ASSERT_TRUE(open()); }
  sql("DELETE FROM store");
  EXPECT_THAT(open().error().message, HasSubstr("damaged"));
}

TEST_F(LockTableTest, MissingFolderIsTold) {
  path = folder.file("no/such/folder/locks.db");
  const auto refused = open();
  EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
  EXPECT_THAT(refused.error().message, HasSubstr(path));
}

TEST_F(LockTableTest, ManyProcessesMayCreateTheFileAtOnce) {
  std::vector<pid_t> children;
  for (int i = 0; i < 12; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(open() ? 0 : 1);
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
}

// ---- another process is in the way ---------------------------------------------------------

TEST_F(LockTableTest, WriterThatDoesNotFinishIsUnavailableInTime) {
  auto table = open().value();
  auto other = Database::open(path, false).value();
  ASSERT_TRUE(other.connection().exec("BEGIN IMMEDIATE"));
  table->be_patient({BootClock::now() + 50ms, {}});
  const auto refused = table->acquire(
      {name(), new_request(), OwnerLabel::parse("test").value(), Ttl::of(30s).value(), false}, "");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
  EXPECT_THAT(refused.error().message, HasSubstr("another process is writing"));
}

TEST_F(LockTableTest, OpeningCanBeStoppedWhileAnotherWrites) {
  auto other = Database::open(path, true).value();
  ASSERT_TRUE(other.connection().exec("BEGIN IMMEDIATE"));
  std::stop_source stop;
  Registry registry;
  registry.add(adapters());
  auto opening = std::async(std::launch::async, [&] {
    return registry.open_store("sqlite:" + path, {.store_timeout = 1h, .stop = stop.get_token()});
  });
  stop.request_stop();
  const auto opened = opening.get();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::cancelled) << to_string(opened.error());
}

TEST_F(LockTableTest, WaitingForAWriterCanBeStoppedAndClosed) {
  auto other = Database::open(path, true).value();
  LockTable::Options options;
  options.path = path;
  options.machine = {"here", "boot-1"};
  options.clock = &clock;
  options.random = &system_random();
  auto store = SqliteStore::open(std::move(options), OpenOptions().begin()).value();
  ASSERT_TRUE(other.connection().exec("BEGIN IMMEDIATE"));
  const auto ask = [&](std::stop_token stop) {
    std::promise<ErrorCode> answer;
    store->acquire(
        {name(), new_request(), OwnerLabel::parse("test").value(), Ttl::of(30s).value(), false},
        {BootClock::now() + 1h, std::move(stop)},
        [&](Result<AcquireReply> reply) { answer.set_value(reply.error().code); });
    return answer.get_future().get();
  };
  std::stop_source stop;
  auto stopped = std::async(std::launch::async, ask, stop.get_token());
  stop.request_stop();
  EXPECT_EQ(stopped.get(), ErrorCode::cancelled);
  auto closed = std::async(std::launch::async, ask, std::stop_token());
  store->close();
  EXPECT_EQ(closed.get(), ErrorCode::unavailable);
  EXPECT_EQ(ask({}), ErrorCode::unavailable) << "closed for good";
}

}  // namespace
}  // namespace leasehold::sqlite
