// The file: whose it is, which boot it belongs to, what it refuses.
#include "lock_table.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <future>
#include <thread>

#include "leasehold/process/io.h"
#include "leasehold/sqlite/adapter.h"
#include "rig/temp_folder.h"
#include "store.h"
#include "testing/virtual_time.h"

namespace leasehold::sqlite {
namespace {

using namespace std::chrono_literals;
using leasehold::rig::TempFolder;
using leasehold::testing::FakeClock;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// How many instructions of SQLite's machine a connection of this program runs, and how many rows
// that means. Of those that are opened while this object lives.
class CountedWork {
 public:
  CountedWork() {
    sqlite3_auto_extension(reinterpret_cast<void (*)()>(&attach));
    done_ = 0;
  }
  ~CountedWork() { sqlite3_reset_auto_extension(); }
  CountedWork(const CountedWork&) = delete;

  static int of(const std::function<void()>& work) {
    const int before = done_;
    work();
    return done_ - before;
  }

 private:
  static int attach(sqlite3* db, char**, const sqlite3_api_routines*) {
    const auto count = [](void*) {
      ++done_;
      return 0;
    };
    sqlite3_progress_handler(db, 1, count, nullptr);
    return SQLITE_OK;
  }
  inline static int done_ = 0;
};

// Runs a call on a thread of its own, and returns when it stands in line or waits for a writer.
std::thread start_and_await_sleep(const std::function<void()>& call) {
  std::promise<pid_t> id;
  auto told = id.get_future();
  std::thread thread([&call, id = std::move(id)]() mutable {
    id.set_value(gettid());
    call();
  });
  const std::string stat = "/proc/self/task/" + std::to_string(told.get()) + "/stat";
  for (char state = 'R'; state != 'S';) {
    std::ifstream(stat).ignore(64, ')').ignore(1).get(state);
  }
  return thread;
}

class LockTableTest : public ::testing::Test {
 protected:
  static LockName name(const std::string& text = "job") { return LockName::parse(text).value(); }
  static RequestId new_request() { return RequestId::random(system_random()); }

  Result<std::unique_ptr<LockTable>> open(MachineIdentity machine = {"here", "boot-1"},
                                          Millis timeout = 10s) {
    LockTable::Options options;
    options.path = path;
    options.machine = std::move(machine);
    options.clock = &clock;
    options.random = &system_random();
    options.token_block = 1000;
    return LockTable::open(std::move(options), {BootClock::now() + timeout, {}});
  }

  std::unique_ptr<Store> open_sqlite_store(const Clock& by) {
    LockTable::Options options;
    options.path = path;
    options.machine = {"here", "boot-1"};
    options.clock = &by;
    options.random = &system_random();
    return open_table(std::move(options), OpenOptions().begin()).value();
  }

  Result<AcquireReply> acquire(LockTable& table, const RequestId& request, bool queue = false,
                               const std::string& wake = "") {
    table.be_patient({{BootClock::now() + 10s, {}}});
    return table.acquire(
        {name(), request, OwnerLabel::parse("test").value(), Ttl::of(30s).value(), queue}, wake);
  }
  Result<AcquireReply> acquire_as(Mode mode, LockTable& table, const RequestId& request) {
    table.be_patient({{BootClock::now() + 10s, {}}});
    return table.acquire(
        {name(), request, OwnerLabel::parse("test").value(), Ttl::of(30s).value(), false, mode},
        "");
  }
  std::int64_t token(LockTable& table, const RequestId& request) {
    return std::get<Granted>(acquire(table, request).value()).token.value();
  }
  bool queued(LockTable& table, const RequestId& request, const std::string& wake = "") {
    return std::holds_alternative<Queued>(acquire(table, request, true, wake).value());
  }
  Millis recheck(LockTable& table, const RequestId& request, const std::string& wake = "") {
    return std::get<Queued>(acquire(table, request, true, wake).value()).recheck_after;
  }
  static std::unique_ptr<WakeSocket> new_socket(LockTable& table) {
    return WakeSocket::bind(table.wake_folder(), system_random(), {[](const auto&) {}, [] {}});
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
  constexpr std::size_t kFrame = 1024 + 24;
  for (int i = 0; i < 100; ++i) {
    auto table = open().value();
    const RequestId request = new_request();
    EXPECT_EQ(token(*table, request), i + 1);
    ASSERT_TRUE(table->release({name(), request, 0ms}));
    table.reset();
    ASSERT_LT(std::filesystem::file_size(path + "-wal"), 100 * kFrame) << "after program " << i;
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
  EXPECT_FALSE(table->inspect(name())->holder());
  EXPECT_TRUE(table->inspect(name())->waiters.empty());
  EXPECT_EQ(table->renew({{name(), old, Ttl::of(30s).value()}})->at(0), RenewReply::gone);
  EXPECT_GT(token(*table, new_request()), first);
}

TEST_F(LockTableTest, AnotherBootEndsThoseWhoShareAndKeepsWhatWasSet) {
  const RequestId reader = new_request();
  {
    auto table = open().value();
    ASSERT_TRUE(acquire_as(Mode::shared(), *table, reader));
    ASSERT_TRUE(table->set_permits(name("set"), 3));
  }
  clock.set(BootTime(1s));
  auto table = open({"here", "boot-2"}).value();
  EXPECT_TRUE(table->inspect(name())->holders.empty());
  EXPECT_EQ(table->renew({{name(), reader, Ttl::of(30s).value()}})->at(0), RenewReply::gone);
  token(*table, new_request());
  EXPECT_EQ(table->inspect(name("set"))->set_permits, 3);
}

// As for exclusive holders: see HolderOfATimeYetToCome….
TEST_F(LockTableTest, ReaderOfATimeYetToComeHasAtMostItsTtl) {
  clock.set(BootTime(1h));
  auto table = open().value();
  ASSERT_TRUE(acquire_as(Mode::shared(), *table, new_request()));
  clock.set(BootTime(1min));
  EXPECT_LE(table->inspect(name())->holders.at(0).remaining, 30s);
  ASSERT_TRUE(std::holds_alternative<Busy>(acquire(*table, new_request()).value()));
  clock.set(BootTime(1min + 31s));
  EXPECT_TRUE(std::holds_alternative<Granted>(acquire(*table, new_request()).value()));
}

TEST_F(LockTableTest, ReadersWhoDiedAreSwept) {
  auto table = open().value();
  for (int i = 0; i < 200; ++i) {
    const auto died = table->acquire(
        {name("once " + std::to_string(i)), new_request(), OwnerLabel::parse("test").value(),
         Ttl::of(30s).value(), false, Mode::shared()},
        "");
    ASSERT_TRUE(died);
  }
  clock.set(clock.now() + 2min);
  for (int i = 0; i < 400; ++i) {
    const RequestId request = new_request();
    token(*table, request);
    ASSERT_TRUE(table->release({name(), request, 0ms}));
  }
  auto database = Database::open(path, false).value();
  EXPECT_EQ(number(database.connection(), "SELECT count(*) FROM holder").value(), 0);
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
  EXPECT_EQ(open().value()->inspect(name())->holder()->request, held);
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
  EXPECT_EQ(table->inspect(name())->holder()->request, held);
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
  EXPECT_LE(table->inspect(name())->holder()->remaining, 30s);
  EXPECT_GE(table->inspect(name())->holder()->held_for, 0ms);
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
  const auto socket = new_socket(*table);
  ASSERT_TRUE(queued(*table, new_request()));
  ASSERT_TRUE(queued(*table, new_request(), socket->address()));
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
  EXPECT_EQ(recheck(*table, new_request()), 1001ms);
  EXPECT_EQ(recheck(*table, new_request()), 1001ms);
  EXPECT_EQ(recheck(*table, new_request()), 2s) << "it gives its signs of life itself";
}

// ---- many waiters --------------------------------------------------------------------------

TEST_F(LockTableTest, OneWaiterOfAProcessWatchesAndTheOthersRest) {
  auto first = open().value();
  auto second = open().value();
  const auto socket = new_socket(*first);
  const auto other_socket = new_socket(*second);
  token(*first, new_request());
  for (int i = 0; i < 2; ++i) EXPECT_EQ(recheck(*first, new_request(), socket->address()), 2s);
  const RequestId rests = new_request();
  EXPECT_EQ(recheck(*first, rests, socket->address()), 10s);
  EXPECT_EQ(recheck(*first, rests, socket->address()), 10s) << "at the second look too";
  EXPECT_EQ(recheck(*second, new_request(), other_socket->address()), 2s);
  EXPECT_EQ(recheck(*second, new_request(), other_socket->address()), 10s);
}

TEST_F(LockTableTest, AskOfAWaiterDoesNotWaitForAWriter) {
  auto table = open().value();
  const auto socket = new_socket(*table);
  token(*table, new_request());
  const RequestId waiter = new_request();
  ASSERT_TRUE(queued(*table, waiter, socket->address()));
  auto other = Database::open(path, false).value();
  ASSERT_TRUE(other.connection().exec("BEGIN IMMEDIATE"));
  table->hurry();
  const auto again = acquire(*table, waiter, true, socket->address());
  ASSERT_TRUE(again) << to_string(again.error());
  EXPECT_TRUE(std::holds_alternative<Queued>(*again));
}

TEST_F(LockTableTest, NoCallCostsMoreWhereMoreWait) {
  const CountedWork counted;
  auto table = open().value();
  const auto socket = new_socket(*table);
  RequestId holder = new_request();
  token(*table, holder);
  RequestId next = new_request();
  ASSERT_TRUE(queued(*table, next, socket->address()));
  RequestId last = new_request();
  const auto round = [&] {
    last = new_request();
    return std::vector{
        counted.of([&] { ASSERT_TRUE(queued(*table, last, socket->address())); }),
        counted.of([&] { ASSERT_TRUE(queued(*table, last, socket->address())); }),
        counted.of([&] { ASSERT_TRUE(queued(*table, next)); }),  // as one without a socket
        counted.of([&] {
          ASSERT_TRUE(table->release({name(), last, 0ms}));
        }),
        counted.of([&] {
          ASSERT_TRUE(table->release({name(), holder, 0ms}));
        }),
        counted.of([&] { token(*table, next); }),
    };
  };
  const auto work_with_few = round();
  std::swap(holder, next);
  next = new_request();
  ASSERT_TRUE(queued(*table, next, socket->address()));
  for (int i = 0; i < 500; ++i) ASSERT_TRUE(queued(*table, new_request(), socket->address()));
  const auto work_with_many = round();
  for (std::size_t i = 0; i < work_with_few.size(); ++i) {
    EXPECT_LT(work_with_many[i], work_with_few[i] + 50) << "call " << i;
  }
}

TEST_F(LockTableTest, DeadProcessCostsNoMoreWhereMoreWaitForOtherLocks) {
  const CountedWork counted;
  auto table = open().value();
  const auto pass_over = [&] {
    const RequestId held = new_request();
    token(*table, held);
    EXPECT_TRUE(queued(*table, new_request(), new_request().hex()));  // has no socket
    EXPECT_TRUE(table->release({name(), held, 0ms}));
    const RequestId next = new_request();
    EXPECT_TRUE(std::holds_alternative<Busy>(acquire(*table, next).value()));
    clock.advance(7s);
    const int work = counted.of([&] { token(*table, next); });
    EXPECT_TRUE(table->release({name(), next, 0ms}));
    return work;
  };
  const int work_with_few = pass_over();
  const auto socket = new_socket(*table);
  for (int i = 0; i < 500; ++i) {
    const AcquireCall call{LockName::parse("other").value(), new_request(),
                           OwnerLabel::parse("test").value(), Ttl::of(1h).value(), true};
    ASSERT_TRUE(table->acquire(call, socket->address()));
  }
  EXPECT_LT(pass_over(), work_with_few + 50);
}

TEST_F(LockTableTest, ProcessGivesOneSignOfLifeForAllThatWaitInIt) {
  auto table = open().value();
  const auto socket = new_socket(*table);
  const RequestId holder = new_request();
  token(*table, holder);
  const std::vector waiters{new_request(), new_request(), new_request()};
  for (const auto& waiter : waiters) ASSERT_TRUE(queued(*table, waiter, socket->address()));
  clock.advance(5s);
  socket->sign();
  clock.advance(5s);
  EXPECT_EQ(table->inspect(name())->waiters.size(), 3);
  ASSERT_TRUE(table->release({name(), holder, 0ms}));
  const RequestId behind = new_request();
  EXPECT_TRUE(queued(*table, behind)) << "overtakes a process that lives";
  clock.advance(1s);
  EXPECT_TRUE(table->inspect(name())->waiters.size() == 2) << "called, and the one behind";
  EXPECT_TRUE(queued(*table, behind)) << "the one that was called has still time";
  clock.advance(5s);
  EXPECT_TRUE(std::holds_alternative<Granted>(acquire(*table, behind, true).value()));
  EXPECT_TRUE(table->inspect(name())->waiters.empty()) << "all of the silent process are gone";
}

TEST_F(LockTableTest, ReaderThatThawsWhenPermitsWereSetHasNoPlaceAnyMore) {
  auto other = open().value();
  const RequestId holder = new_request();
  token(*other, holder);
  const RequestId frozen = new_request();
  const auto ask = [&] {
    other->be_patient({{BootClock::now() + 10s, {}}});
    return other->acquire({name(), frozen, OwnerLabel::parse("test").value(), Ttl::of(30s).value(),
                           true, Mode::shared()},
                          "");
  };
  ASSERT_TRUE(std::holds_alternative<Queued>(ask().value()));
  ASSERT_TRUE(other->release({name(), holder, 0ms}));
  EXPECT_FALSE(other->set_permits(name(), 2)) << "it waits still";
  clock.advance(10s);

  // It comes just behind the commit that sets the permits.
  static sqlite3* opened = nullptr;
  sqlite3_auto_extension(
      reinterpret_cast<void (*)()>(+[](sqlite3* db, char**, const sqlite3_api_routines*) {
        opened = db;
        return SQLITE_OK;
      }));
  auto table = open().value();
  sqlite3_reset_auto_extension();
  struct Thaw {
    std::function<Result<AcquireReply>()> ask;
    std::optional<Result<AcquireReply>> reply;
  } here{ask, {}};
  const auto come = [](void* context, sqlite3*, const char*, int) {
    auto* it = static_cast<Thaw*>(context);
    if (!it->reply) it->reply = it->ask();
    return SQLITE_OK;
  };
  sqlite3_wal_hook(opened, come, &here);
  table->be_patient({{BootClock::now() + 10s, {}}});
  ASSERT_TRUE(table->set_permits(name(), 2));
  ASSERT_TRUE(here.reply);
  ASSERT_FALSE(*here.reply) << "it would be granted beside permits";
  EXPECT_EQ(here.reply->error().code, ErrorCode::invalid);
}

TEST_F(LockTableTest, WaiterThatNobodyAsksForAnyMoreIsPassedOverThoughItsProcessLives) {
  auto table = open().value();
  const auto socket = new_socket(*table);
  const RequestId holder = new_request();
  token(*table, holder);
  ASSERT_TRUE(queued(*table, new_request(), socket->address()));
  const RequestId behind = new_request();
  ASSERT_TRUE(queued(*table, behind, socket->address()));
  ASSERT_TRUE(table->release({name(), holder, 0ms}));
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(queued(*table, behind, socket->address())) << "after " << 2 * i << " s";
    clock.advance(2s);
    socket->sign();
  }
  EXPECT_TRUE(
      std::holds_alternative<Granted>(acquire(*table, behind, true, socket->address()).value()));
}

TEST_F(LockTableTest, ReleaseWakesTheFirstWhoseProcessGivesSigns) {
  auto table = open().value();
  const RequestId holder = new_request();
  token(*table, holder);
  const auto frozen = new_socket(*table);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(queued(*table, new_request(), frozen->address()));
  clock.advance(10s);
  const RequestId behind = new_request();
  std::promise<RequestId> woken;
  const auto socket = WakeSocket::bind(table->wake_folder(), system_random(),
                                       {[&](const auto& who) { woken.set_value(who); }, [] {}});
  ASSERT_TRUE(queued(*table, behind, socket->address()));
  ASSERT_TRUE(table->release({name(), holder, 0ms}));
  auto told = woken.get_future();
  ASSERT_EQ(told.wait_for(30s), std::future_status::ready);
  EXPECT_EQ(told.get(), behind);
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
  sql("UPDATE store SET last = 9223372036854775806, ceiling = 9223372036854775807");
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
  EXPECT_FALSE(table->inspect(name())->holder());
  EXPECT_THAT(acquire(*table, new_request()).error().message, HasSubstr("used up"));
}

TEST_F(LockTableTest, CountersThatMakeNoSenseAreRepairedOrRefused) {
  {
    auto table = open().value();
    const RequestId request = new_request();
    token(*table, request);
    ASSERT_TRUE(table->release({name(), request, 0ms}));
  }
  sql("UPDATE store SET last = 5000000000");
  {
    auto table = open().value();
    const RequestId request = new_request();
    EXPECT_EQ(token(*table, request), 5000000001);
    ASSERT_TRUE(table->release({name(), request, 0ms}));
  }
  for (const char* nonsense : {"UPDATE lock SET token = -5", "UPDATE store SET last = -5",
                               "UPDATE lock SET token = 5, store = 'none'"}) {
    sql("UPDATE store SET last = 5000000001");
    sql(nonsense);
    auto table = open().value();
    const auto refused = acquire(*table, new_request());
    ASSERT_FALSE(refused) << nonsense;
    EXPECT_THAT(refused.error().message, HasSubstr("damaged")) << nonsense;
  }
}

TEST_F(LockTableTest, StoreIdThatIsNoneIsToldWhoLooks) {
  auto table = open().value();
  token(*table, new_request());
  sql("UPDATE store SET id = 'none'");
  const auto one = table->inspect(name());
  ASSERT_FALSE(one);
  EXPECT_THAT(one.error().message, HasSubstr("damaged"));
  const auto all = table->list();
  ASSERT_FALSE(all);
  EXPECT_THAT(all.error().message, HasSubstr("damaged"));
}

TEST_F(LockTableTest, RepeatedAcquireTellsTheLineageOfItsGrant) {
  auto table = open().value();
  const RequestId request = new_request();
  const auto first = std::get<Granted>(acquire(*table, request).value());
  const auto rotated = table->numbers().rotate_store_id();
  ASSERT_TRUE(rotated);
  const auto again = std::get<Granted>(acquire(*table, request).value());
  EXPECT_EQ(again.token, first.token);
  EXPECT_EQ(again.store, first.store) << "that number was not given in the new one";
  ASSERT_TRUE(table->release({name(), request, 0ms}));
  EXPECT_EQ(std::get<Granted>(acquire(*table, new_request()).value()).store, *rotated);
}

// ---- free locks leave nothing behind -------------------------------------------------------

class SweepTest : public LockTableTest {
 protected:
  std::int64_t rows() {
    auto database = Database::open(path, false).value();
    return number(database.connection(), "SELECT count(*) FROM lock").value();
  }
  RequestId hold(LockTable& table, const std::string& lock, Mode mode = {}) {
    const RequestId request = new_request();
    table.be_patient({{BootClock::now() + 10s, {}}});
    const auto reply = table.acquire(
        {name(lock), request, OwnerLabel::parse("test").value(), Ttl::of(30s).value(), false, mode},
        "");
    EXPECT_TRUE(reply && std::holds_alternative<Granted>(*reply)) << lock;
    return request;
  }
  void pass_by(LockTable& table, const std::string& lock) {
    ASSERT_TRUE(table.release({name(lock), hold(table, lock), 0ms}));
  }
  void pass_by_often(LockTable& table, int grants = 1000) {
    for (int i = 0; i < grants; ++i) pass_by(table, "often");
  }
};

TEST_F(SweepTest, NamesThatAreUsedOnceDoNotPileUp) {
  auto table = open().value();
  std::int64_t most = 0;
  for (int i = 0; i < 6000; ++i) {
    pass_by(*table, "order/" + new_request().hex());
    clock.advance(100ms);
    if (i % 100 == 99) most = std::max(most, rows());
  }
  EXPECT_GE(most, 600) << "a minute's, at least";
  EXPECT_LE(most, 1000);
}

TEST_F(SweepTest, LockThatWasFreeForAMinuteIsForgotten) {
  auto table = open().value();
  pass_by(*table, "job");
  hold(*table, "dead");
  pass_by_often(*table);
  EXPECT_TRUE(table->inspect(name())->last_token) << "its release may be repeated";
  clock.advance(59s);
  pass_by_often(*table);
  EXPECT_TRUE(table->inspect(name())->last_token);
  clock.advance(2s);
  pass_by_often(*table);
  const auto status = table->inspect(name()).value();
  EXPECT_FALSE(status.last_token);
  EXPECT_GE(status.counted_to, 3001);
  EXPECT_TRUE(table->inspect(name("dead"))->last_token) << "its lease ended half a minute ago";
  clock.advance(30s);
  pass_by_often(*table);
  EXPECT_EQ(rows(), 1) << "that which is used";
}

TEST_F(SweepTest, HeldKeptAndRenewedLocksStayInEveryMode) {
  auto table = open().value();
  struct Use {
    Mode mode;
    std::string renewed = "renewed, " + to_string(mode);
    std::string kept = "kept, " + to_string(mode);
    RequestId request = new_request();
  };
  std::vector<Use> uses = {{Mode::exclusive()}, {Mode::shared()}, {Mode::permit_of(2)}};
  for (Use& it : uses) {
    if (!it.mode.is_exclusive()) hold(*table, it.renewed, it.mode);  // dies
    it.request = hold(*table, it.renewed, it.mode);
    ASSERT_TRUE(table->release({name(it.kept), hold(*table, it.kept, it.mode), 10min}));
  }
  for (int i = 0; i < 20; ++i) {
    clock.advance(20s);
    for (const Use& it : uses) {
      EXPECT_THAT(table->renew({{name(it.renewed), it.request, Ttl::of(30s).value()}}).value(),
                  ElementsAre(RenewReply::renewed))
          << it.renewed;
    }
    pass_by_often(*table, 200);
  }
  for (const Use& it : uses) {
    for (const std::string& lock : {it.renewed, it.kept}) {
      const auto status = table->inspect(name(lock)).value();
      ASSERT_EQ(status.holders.size(), 1u) << lock;
      EXPECT_EQ(status.holders[0].mode, it.mode);
      const std::int64_t second = lock == it.renewed ? 1 : 0;
      if (it.mode.is_permit()) {
        EXPECT_EQ(status.holders[0].slot, Slot{second}) << lock;
      }
    }
  }
}

TEST_F(SweepTest, WhatAnOperatorHasSetStays) {
  auto table = open().value();
  const Mode three = Mode::permit_of(3);
  ASSERT_TRUE(table->set_permits(name("never used"), 3));
  ASSERT_TRUE(table->set_permits(name("used"), 3));
  const RequestId request = hold(*table, "used", three);
  ASSERT_TRUE(table->release({name("used"), request, 0ms}));
  hold(*table, "used", three);  // dies
  clock.advance(10min);
  pass_by_often(*table);
  table = open().value();
  pass_by_often(*table);
  for (const std::string lock : {"never used", "used"}) {
    EXPECT_EQ(table->inspect(name(lock))->set_permits, 3) << lock;
    const auto refused =
        table->acquire({name(lock), new_request(), OwnerLabel::parse("test").value(),
                        Ttl::of(30s).value(), false, Mode::permit_of(2)},
                       "");
    ASSERT_FALSE(refused) << lock;
    EXPECT_EQ(refused.error().code, ErrorCode::invalid);
    hold(*table, lock, three);
    EXPECT_EQ(table->inspect(name(lock))->holder()->slot, Slot{0}) << lock;
  }
}

TEST_F(SweepTest, LockThatWasForgottenCountsOn) {
  auto table = open().value();
  const RequestId late = hold(*table, "job");
  const std::int64_t before = table->inspect(name())->last_token->value();
  clock.advance(2min);
  pass_by_often(*table);
  ASSERT_FALSE(table->inspect(name())->last_token);
  EXPECT_THAT(table->renew({{name(), late, Ttl::of(30s).value()}}).value(),
              ElementsAre(RenewReply::gone));
  EXPECT_EQ(table->release({name(), late, 0ms}).value(), ReleaseReply::not_held);
  EXPECT_GT(token(*table, new_request()), before + 1000);
}

TEST_F(SweepTest, EveryProcessTakesItsStep) {
  for (int i = 0; i < 300; ++i) {
    auto table = open().value();
    pass_by(*table, "run/" + std::to_string(i));
    clock.advance(1s);
  }
  EXPECT_LE(rows(), 150);
}

// The machine was restored from a snapshot in the same boot, and the file was not.
TEST_F(SweepTest, WhatEndedAtATimeToComeIsForgottenToo) {
  auto table = open().value();
  clock.advance(10min);
  pass_by(*table, "job");
  clock.advance(-9min);
  pass_by_often(*table);
  EXPECT_FALSE(table->inspect(name())->last_token);
}

TEST_F(LockTableTest, LabelsFromTheFileAreSafeToPrint) {
  {
    auto table = open().value();
    token(*table, new_request());
  }
  sql("UPDATE lock SET owner = 'a' || char(27) || '[31m'");
  auto table = open().value();
  EXPECT_EQ(std::get<Busy>(acquire(*table, new_request()).value()).ahead, "(an unreadable label)");
  EXPECT_EQ(table->inspect(name())->holder()->owner, "(an unreadable label)");
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

TEST_F(LockTableTest, AnotherFormatIsRefused) {
  open().value();
  for (const int other : {kFormat - 1, kFormat + 1}) {
    sql("PRAGMA user_version = " + std::to_string(other));
    const auto refused = open();
    ASSERT_FALSE(refused) << other;
    EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
    EXPECT_THAT(refused.error().message,
                HasSubstr(other < kFormat ? "begin with a new file"
                                          : "use a program that is at least as new"));
  }
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
  table->be_patient({{BootClock::now() + 50ms, {}}});
  const auto refused = table->acquire(
      {name(), new_request(), OwnerLabel::parse("test").value(), Ttl::of(30s).value(), false}, "");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
  EXPECT_THAT(refused.error().message, HasSubstr("another process is writing"));
}

TEST_F(LockTableTest, ReaderThatStaysHoldsUpNewNumbersAndNothingElse) {
  auto table = open().value();
  const RequestId first = new_request();
  EXPECT_EQ(token(*table, first), 1);
  auto other = Database::open(path, false).value();
  ASSERT_TRUE(other.connection().exec("BEGIN; SELECT * FROM lock"));
  ASSERT_TRUE(table->release({name(), first, 0ms}));
  const RequestId second = new_request();
  EXPECT_EQ(token(*table, second), 2);
  ASSERT_TRUE(table->release({name(), second, 0ms}));
  sql("UPDATE store SET last = 1000");  // all that there are
  table->be_patient({{BootClock::now() + 50ms, {}}});
  const AcquireCall call{name(), new_request(), OwnerLabel::parse("test").value(),
                         Ttl::of(30s).value(), false};
  EXPECT_EQ(table->acquire(call, "").error().code, ErrorCode::unavailable);
  ASSERT_TRUE(other.connection().exec("COMMIT"));
  EXPECT_EQ(token(*table, call.request), 1001);
}

// Another process can renew meanwhile, and so can another thread.
TEST_F(LockTableTest, WhoWaitsForNewNumbersLetsOthersWrite) {
  auto table = open().value();
  auto beside = open().value();
  const RequestId held = new_request();
  EXPECT_EQ(token(*table, held), 1);
  auto reader = Database::open(path, false).value();
  ASSERT_TRUE(reader.connection().exec("BEGIN; SELECT * FROM lock"));
  sql("UPDATE store SET ceiling = 0");  // none are left
  int stepped_aside = 0;
  const auto renew = [&](Pause) {
    beside->be_patient({{BootClock::now(), {}}});
    const auto renewed = beside->renew({{name(), held, Ttl::of(30s).value()}});
    EXPECT_TRUE(renewed) << renewed.error().message;
    return ++stepped_aside < 3;
  };
  table->be_patient({{BootClock::now() + 10s, {}}, renew});
  const AcquireCall call{LockName::parse("other").value(), new_request(),
                         OwnerLabel::parse("test").value(), Ttl::of(30s).value(), false};
  EXPECT_EQ(table->acquire(call, "").error().code, ErrorCode::unavailable);
  EXPECT_EQ(stepped_aside, 3);
}

TEST_F(LockTableTest, DeadWaitersWhoseSocketsAreGoneHoldUpTheLockTogether) {
  auto table = open().value();
  const RequestId held = new_request();
  EXPECT_EQ(token(*table, held), 1);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(acquire(*table, new_request(), /*queue=*/true, new_request().hex()));
  }
  ASSERT_TRUE(table->release({name(), held, 0ms}));
  const auto first = acquire(*table, new_request());
  ASSERT_TRUE(first);
  EXPECT_TRUE(std::holds_alternative<Busy>(*first)) << "they have a while to come back";
  clock.advance(7s);
  EXPECT_EQ(token(*table, new_request()), 2);
}

TEST_F(LockTableTest, WhoWaitsToStoreAnOutcomeLetsOthersPass) {
  auto table = open().value();
  const RequestId held = new_request();
  EXPECT_EQ(token(*table, held), 1);
  auto reader = Database::open(path, false).value();
  ASSERT_TRUE(reader.connection().exec("BEGIN; SELECT * FROM lock"));
  int stepped_aside = 0;
  const auto end_after_three = [&](Pause) { return ++stepped_aside < 3; };
  table->be_patient({{BootClock::now() + 10s, {}}, end_after_three});
  EXPECT_EQ(table->records().record(name(), held, "key", {"what", "done"}).error().code,
            ErrorCode::outcome_unknown);
  EXPECT_EQ(stepped_aside, 3);
  stepped_aside = 0;
  table->be_patient({{BootClock::now() + 10s, {}}, end_after_three});
  EXPECT_EQ(table->numbers().rotate_store_id().error().code, ErrorCode::outcome_unknown);
  EXPECT_EQ(stepped_aside, 3);
}

// SQLite itself does not wait there.
TEST_F(LockTableTest, WhoNeedsNumbersWaitsForAnotherWhoCopiesTheLog) {
  constexpr off_t kCheckpointLock = 121;  // in the -shm file: SQLite's format of it
  auto table = open().value();
  auto pipe = process::make_pipe();
  const pid_t child = fork();
  if (child == 0) {
    struct flock lock {};
    lock.l_type = F_WRLCK;
    lock.l_start = kCheckpointLock;
    lock.l_len = 1;
    const char locked = fcntl(::open((path + "-shm").c_str(), O_RDWR), F_SETLK, &lock) == 0;
    if (::write(pipe.write.get(), &locked, 1) == 1) pause();
    _exit(1);
  }
  char locked = 0;
  ASSERT_EQ(read(pipe.read.get(), &locked, 1), 1);
  ASSERT_EQ(locked, 1);
  const BootTime deadline = BootClock::now() + 50ms;
  table->be_patient({{deadline, {}}});
  const AcquireCall call{name(), new_request(), OwnerLabel::parse("test").value(),
                         Ttl::of(30s).value(), false};
  EXPECT_EQ(table->acquire(call, "").error().code, ErrorCode::unavailable);
  EXPECT_GE(BootClock::now(), deadline);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(token(*table, call.request), 1);
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

TEST_F(LockTableTest, RenewalDoesNotStandBehindAcquires) {
  auto store = open_sqlite_store(system_clock());
  const AcquireCall held{name("held"), new_request(), OwnerLabel::parse("test").value(),
                         Ttl::of(1h).value()};
  const CallContext context{BootClock::now() + 1min, {}};
  store->acquire(held, context, [](const auto& reply) { ASSERT_TRUE(reply); });
  auto other = Database::open(path, true).value();
  ASSERT_TRUE(other.connection().exec("BEGIN IMMEDIATE"));
  std::vector<std::function<void()>> calls;
  for (const char* lock : {"inside", "in line", "in line too"}) {
    AcquireCall call = held;
    call.lock = name(lock);
    calls.emplace_back([&store, call, context] {
      store->acquire(call, context, [](const auto& reply) { ASSERT_TRUE(reply); });
    });
  }
  calls.emplace_back([&] {
    store->renew({{held.lock, held.request, held.ttl}}, {context.deadline, {}, /*urgent=*/true},
                 [](const auto& replies) { ASSERT_TRUE(replies); });
  });
  std::vector<std::thread> threads;
  for (const auto& call : calls) threads.push_back(start_and_await_sleep(call));
  ASSERT_TRUE(other.connection().exec("COMMIT"));
  for (auto& thread : threads) thread.join();

  auto order =
      other.connection()
          .prepare(
              "SELECT name FROM lock"
              " ORDER BY CASE name WHEN 'held' THEN expires_at - 3600000000000 ELSE granted_at END")
          .value();
  std::vector<std::string> names;
  while (order.step().value()) names.emplace_back(order.text(0));
  ASSERT_EQ(names.size(), 4U);
  names.resize(2);  // who has waited for too long goes alone, so the others come in any order
  EXPECT_THAT(names, ::testing::ElementsAre("inside", "held"));
}

TEST_F(LockTableTest, WaitingForAWriterCanBeStoppedAndClosed) {
  auto other = Database::open(path, true).value();
  auto store = open_sqlite_store(clock);
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
