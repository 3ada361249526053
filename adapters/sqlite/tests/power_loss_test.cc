// The power goes at every write: no token that was handed out before may come again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <algorithm>

#include "faulty_disk.h"
#include "lock_table.h"
#include "testing/virtual_time.h"

namespace leasehold::sqlite {
namespace {

using namespace std::chrono_literals;
using leasehold::testing::FakeClock;
using testing::Disk;
using testing::Unsynced;

class PowerLossTest : public testing::FaultyDiskTest {
 protected:
  static constexpr std::int64_t kBlock = 4;

  static LockName name(const std::string& text) { return LockName::parse(text).value(); }

  Result<std::unique_ptr<LockTable>> open(const std::string& path, const std::string& boot) {
    LockTable::Options options;
    options.path = path;
    options.machine = {"machine", boot};
    options.clock = &clock;
    options.random = &random;
    options.vfs = disk.name();
    options.token_block = kBlock;
    options.checkpoint_frames = checkpoint_frames;
    options.frames_at_close = frames_at_close;
    return LockTable::open(std::move(options), {BootClock::now() + 10s, {}});
  }

  Result<Granted> take(LockTable& table, const std::string& lock, const RequestId& request) {
    table.be_patient({{BootClock::now() + 10s, {}}});
    auto reply = table.acquire(
        {name(lock), request, OwnerLabel::parse("test").value(), Ttl::of(1h).value(), false}, "");
    if (!reply) return fail(reply.error());
    if (!std::holds_alternative<Granted>(*reply)) return fail(ErrorCode::busy, "it is held");
    return std::get<Granted>(*reply);
  }

  // A lock each, in one transaction.
  std::vector<Granted> take_together(LockTable& table, const std::vector<RequestId>& requests) {
    std::vector<std::unique_ptr<AskedAcquire>> asked;
    std::vector<AnyAsked> batch;
    for (const RequestId& request : requests) {
      const LockName lock = name("job " + std::to_string(batch.size()));
      const AcquireCall call{lock, request, OwnerLabel::parse("test").value(), Ttl::of(1h).value()};
      asked.push_back(std::make_unique<AskedAcquire>(call, CallContext{BootTime::max(), {}}));
      batch.push_back(asked.back().get());
    }
    table.be_patient({{BootClock::now() + 10s, {}}});
    EXPECT_TRUE(table.answer(batch, ""));
    std::vector<Granted> granted;
    for (const auto& one : asked) granted.push_back(std::get<Granted>(one->reply.value().value()));
    return granted;
  }

  void no_token_comes_again(int rounds, int together);

  int checkpoint_frames = 24;
  int frames_at_close = 8;
  FakeClock clock;
};

void PowerLossTest::no_token_comes_again(int rounds, int together) {
  const std::string path = folder.file("work/locks.db");
  std::filesystem::create_directories(folder.file("work"));
  struct HandedOut {
    std::size_t step;
    std::int64_t token;
  };
  std::vector<HandedOut> handed_out;
  std::optional<StoreId> lineage;
  {
    disk.ignore_syncs = true;  // the real disk underneath is not what is tested
    auto table = open(path, "boot-1");
    ASSERT_TRUE(table) << to_string(table.error());
    for (int i = 0; i < rounds; ++i) {
      std::vector<RequestId> requests;
      for (int one = 0; one < together; ++one) requests.push_back(RequestId::random(random));
      for (const Granted& granted : take_together(**table, requests)) {
        handed_out.push_back({disk.steps(), granted.token.value()});
        lineage = granted.store;
      }
      for (int one = 0; one < together; ++one) {
        const LockName lock = name("job " + std::to_string(one));
        ASSERT_TRUE((*table)->release({lock, requests[static_cast<std::size_t>(one)], 0ms}));
      }
      if (i % 7 == 6) {  // closing cuts the log
        table->reset();
        table = open(path, "boot-1");
        ASSERT_TRUE(table) << to_string(table.error());
      }
    }
  }
  ASSERT_EQ(handed_out.back().token, rounds * together);
  disk.record = false;

  int cuts = 0;
  for (std::size_t step = 0; step <= disk.steps(); ++step) {
    for (const auto unsynced : {Unsynced::none, Unsynced::all, Unsynced::torn, Unsynced::torn,
                                Unsynced::some, Unsynced::some, Unsynced::some}) {
      disk.files_after(step, unsynced, random, folder.file("work"), folder.file("cut"));
      std::int64_t last = 0;
      for (const auto& grant : handed_out) {
        if (grant.step <= step) last = grant.token;
      }
      auto table = open(folder.file("cut/locks.db"), "boot-2");
      if (last == 0 && !table) continue;  // cut while the file was made: nothing was promised yet
      ASSERT_TRUE(table) << "after step " << step << ": " << to_string(table.error());
      const auto granted = take(**table, "job", RequestId::random(random));
      ASSERT_TRUE(granted) << "after step " << step << ": " << to_string(granted.error());
      ASSERT_GT(granted->token.value(), last) << "after step " << step;
      if (last > 0) {
        ASSERT_EQ(granted->store, *lineage);
      }
      ++cuts;
    }
  }
  EXPECT_GT(cuts, 500);
}

TEST_F(PowerLossTest, NoTokenComesAgainWhereverTheFilesAreCut) {
  no_token_comes_again(25, 1);
}

// Some of a batch are granted from the next block of numbers.
TEST_F(PowerLossTest, NoTokenOfABatchComesAgainWhereverTheFilesAreCut) {
  no_token_comes_again(10, 3);
}

TEST_F(PowerLossTest, CommitOfABatchThatMayHaveHappenedIsUnknownToEach) {
  auto table = open(folder.file("locks.db"), "boot-1").value();
  const RequestId held = RequestId::random(random);
  ASSERT_TRUE(take(*table, "held", held));
  AskedAcquire acquired({name("job"), RequestId::random(random), OwnerLabel::parse("test").value(),
                         Ttl::of(1h).value()},
                        {BootTime::max(), {}});
  AskedRelease released({name("held"), held, 0ms}, {BootTime::max(), {}});
  AskedAcquire refused({name("held"), RequestId::random(random), OwnerLabel::parse("test").value(),
                        Ttl::of(1h).value(), false, Mode::permit_of(2)},
                       {BootTime::max(), {}});
  disk.fail_write_of = "-wal";
  disk.fail_write = SQLITE_IOERR_WRITE;
  const std::vector<AnyAsked> batch{&refused, &acquired, &released};
  ASSERT_TRUE(table->answer(batch, ""));
  EXPECT_EQ(refused.reply->error().code, ErrorCode::invalid);
  EXPECT_EQ(acquired.reply->error().code, ErrorCode::outcome_unknown);
  EXPECT_EQ(released.reply->error().code, ErrorCode::outcome_unknown);
  disk.fail_write = 0;
  EXPECT_TRUE(take(*table, "held", held));
}

TEST_F(PowerLossTest, ProgramThatFindsNumbersLeftSyncsNothing) {
  const auto run_program = [&] {
    auto table = open(folder.file("locks.db"), "boot-1").value();
    const RequestId request = RequestId::random(random);
    EXPECT_TRUE(take(*table, "job", request));
    EXPECT_TRUE(table->release({name("job"), request, 0ms}));
  };
  run_program();
  disk.steps_.clear();
  run_program();
  EXPECT_EQ(std::ranges::count(disk.steps_, Disk::Step::Kind::sync, &Disk::Step::kind), 0);
}

TEST_F(PowerLossTest, AfterAFailedSyncNoLockIsGranted) {
  auto table = open(folder.file("locks.db"), "boot-1");
  ASSERT_TRUE(table);
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(take(**table, "lock-" + std::to_string(i), RequestId::random(random)));
  }
  for (int i = 0; i < 3; ++i) {
    const RequestId request = RequestId::random(random);
    ASSERT_TRUE(take(**table, "job", request));
    ASSERT_TRUE((*table)->release({name("job"), request, 0ms}));
  }
  const RequestId last = RequestId::random(random);
  ASSERT_TRUE(take(**table, "job", last));
  ASSERT_TRUE((*table)->release({name("job"), last, 0ms}));
  disk.fail_sync = SQLITE_IOERR_FSYNC;
  const auto refused = take(**table, "job", RequestId::random(random));
  ASSERT_FALSE(refused) << "granted a number that is not on disk";
  EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
  disk.fail_sync = 0;  // the kernel forgets that it failed; we must not
  EXPECT_EQ(take(**table, "job", RequestId::random(random)).error().code, ErrorCode::unavailable);
}

class FailedCheckpointTest : public PowerLossTest,
                             public ::testing::WithParamInterface<const char*> {};

TEST_P(FailedCheckpointTest, OnlyNumbersThatAreOnDiskAreGrantedAfterIt) {
  disk.fail_sync_of = std::string("locks.db") + GetParam();
  auto table = open(folder.file("locks.db"), "boot-1").value();
  const RequestId held = RequestId::random(random);
  ASSERT_TRUE(take(*table, "held", held));
  disk.fail_sync = SQLITE_IOERR_FSYNC;
  for (int i = 0; i < checkpoint_frames; ++i) {
    clock.advance(1s);
    ASSERT_TRUE(table->renew({{name("held"), held, Ttl::of(1h).value()}}));
  }
  disk.fail_sync = 0;
  for (int i = 0; i < 3; ++i) {
    const RequestId request = RequestId::random(random);
    ASSERT_TRUE(take(*table, "job", request));
    ASSERT_TRUE(table->release({name("job"), request, 0ms}));
  }
  const auto refused = take(*table, "job", RequestId::random(random));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
}

// SQLite copies it again; only a failed sync is never known to be made good.
TEST_F(PowerLossTest, WriteThatFailedOnceDoesNotStopTheNumbers) {
  auto table = open(folder.file("locks.db"), "boot-1").value();
  const RequestId held = RequestId::random(random);
  ASSERT_TRUE(take(*table, "held", held));
  disk.fail_write_of = "locks.db";
  disk.fail_write = SQLITE_IOERR_WRITE;
  for (int i = 0; i < checkpoint_frames; ++i) {
    clock.advance(1s);
    ASSERT_TRUE(table->renew({{name("held"), held, Ttl::of(1h).value()}}));
  }
  disk.fail_write = 0;
  for (int i = 0; i < 10; ++i) {
    const RequestId request = RequestId::random(random);
    const auto granted = take(*table, "job", request);
    ASSERT_TRUE(granted) << to_string(granted.error());
    ASSERT_TRUE(table->release({name("job"), request, 0ms}));
  }
}

INSTANTIATE_TEST_SUITE_P(SyncOf, FailedCheckpointTest, ::testing::Values("", "-wal"),
                         [](const auto& file) { return *file.param ? "TheLog" : "TheDatabase"; });

TEST_F(PowerLossTest, HoleInTheLogAfterAFailedSyncRepeatsNoToken) {
  const std::string path = folder.file("work/locks.db");
  std::filesystem::create_directories(folder.file("work"));
  std::int64_t last = 0;
  const auto work = [&](LockTable& table, int times) {
    for (int i = 0; i < times; ++i) {
      const RequestId request = RequestId::random(random);
      const auto granted = take(table, "job", request);
      ASSERT_TRUE(granted) << to_string(granted.error());
      last = granted->token.value();
      ASSERT_TRUE(table.release({name("job"), request, 0ms}));
    }
  };
  disk.ignore_syncs = true;
  checkpoint_frames = frames_at_close = 1000;  // what is in the log stays there alone
  {
    auto table = open(path, "boot-1");
    ASSERT_TRUE(table);
    work(**table, 4);  // all the numbers there are
    disk.fail_sync = SQLITE_IOERR_FSYNC;
    EXPECT_FALSE(take(**table, "job", RequestId::random(random)));
    disk.fail_sync = 0;
  }
  {
    auto table = open(path, "boot-1");  // the program is started again
    ASSERT_TRUE(table);
    work(**table, 3);
  }
  disk.record = false;
  disk.files_after(disk.steps(), Unsynced::none, random, folder.file("work"), folder.file("cut"));
  auto table = open(folder.file("cut/locks.db"), "boot-2");
  ASSERT_TRUE(table) << to_string(table.error());
  const auto granted = take(**table, "job", RequestId::random(random));
  ASSERT_TRUE(granted);
  EXPECT_GT(granted->token.value(), last);
}

// ---- two faults ----------------------------------------------------------------------------

struct Meeting {
  const char* name;
  bool second_was_there;  // and has the file open when the first is struck
  bool first_stays;       // and keeps the file open
};
void PrintTo(const Meeting& meeting, std::ostream* out) {
  *out << meeting.name;
}

class TwoFaultsTest : public PowerLossTest, public ::testing::WithParamInterface<Meeting> {
 protected:
  struct Promise {
    std::size_t step;
    std::int64_t token = 0;
    std::string key = {};
    std::optional<StoreId> new_lineage = {};
    std::string forgotten = {};
  };
  using Act = std::function<void(LockTable&)>;

  // Takes and gives back, as long as the disk allows it.
  void use(LockTable& table, int times = 6) {
    for (int i = 0; i < times; ++i) {
      const RequestId request = RequestId::random(random);
      const auto granted = take(table, "job", request);
      if (!granted) return;
      promised.push_back({disk.steps(), granted->token.value()});
      if (lineage && granted->store != *lineage) promised.back().new_lineage = granted->store;
      if (!table.release({name("job"), request, 0ms})) return;
    }
  }

  // The one that is struck begins a new lineage.
  void use_anew(LockTable& table) {
    use(table, 1);
    if (is_first) {
      const auto seen = table.inspect(name("job"));
      if (seen) lineage = seen->store;
      const auto id = table.numbers().rotate_store_id();
      if (id) promised.push_back({.step = disk.steps(), .new_lineage = *id});
    }
    use(table, 1);
  }

  // Does what the one before did not do, and something new.
  void use_once(LockTable& table) {
    const RequestId request = RequestId::random(random);
    if (!take(table, "job", request)) return;
    ++acts;
    for (const std::string& key : {std::to_string(acts - 1), std::to_string(acts)}) {
      const auto known = table.records().recall(name("job"), key);
      const bool done =
          known && (*known || table.records().record(name("job"), request, key, {"", "0"}));
      if (done) promised.push_back({.step = disk.steps(), .key = key});
    }
    (void)table.release({name("job"), request, 0ms});
  }

  // Forgets what the one before has done, and does two things: the second may leave a hole in the
  // log, behind the first.
  void use_and_forget(LockTable& table) {
    const RequestId request = RequestId::random(random);
    if (!take(table, "job", request)) return;
    const std::string earlier = std::to_string(acts - 1);
    const auto known = table.records().recall(name("job"), earlier);
    if (known && !*known) promised.push_back({.step = disk.steps(), .forgotten = earlier});
    const std::string before = std::to_string(acts++);
    if (!table.records().forget(name("job"), before)) return;
    promised.push_back({.step = disk.steps(), .forgotten = before});
    for (const std::string& key : {std::to_string(acts), std::to_string(acts) + " too"}) {
      if (!table.records().record(name("job"), request, key, {"", "0"})) return;
    }
    (void)table.release({name("job"), request, 0ms});
  }

  // The steps of the process that was to be struck.
  Span tell_story(const Act& act) {
    promised.clear();
    lineage.reset();
    acts = 0;
    std::unique_ptr<LockTable> second;
    if (GetParam().second_was_there) {
      second = open(path, "boot-1").value();
      act(*second);
    }
    Span struck{disk.steps(), 0};
    auto first = open(path, "boot-1");
    is_first = true;
    if (first) act(**first);
    is_first = false;
    if (!GetParam().first_stays) first = fail(ErrorCode::unavailable, "it has gone");
    struck.to = disk.steps();
    disk.next_process();
    clock.advance(2h);  // whoever died holding it is over
    if (!second) second = open(path, "boot-1").value();
    act(*second);
    return struck;
  }

  // A disk that loses what it had may leave a damaged file. That is told, and grants nothing.
  static void expect_told(const Error& error, Disk::Fault fault) {
    ASSERT_EQ(fault, Disk::Fault::lost_sync) << to_string(error);
    ASSERT_EQ(error.code, ErrorCode::unavailable) << to_string(error);
  }

  void expect_kept(std::size_t step, Disk::Fault fault) {
    auto table = open(cut("locks.db"), "boot-2");
    for (const Promise& promise : promised) {
      if (promise.step > step) break;
      if (!table) return expect_told(table.error(), fault);
      if (promise.key.empty() && promise.forgotten.empty()) continue;
      const auto known = (*table)->records().recall(
          name("job"), promise.key.empty() ? promise.forgotten : promise.key);
      if (!known) return expect_told(known.error(), fault);
      ASSERT_EQ(known->has_value(), promise.forgotten.empty()) << promise.key << promise.forgotten;
    }
    if (!table) return;
    const auto granted = take(**table, "job", RequestId::random(random));
    if (!granted) return expect_told(granted.error(), fault);
    for (const Promise& promise : promised) {
      if (promise.step > step) break;
      ASSERT_GT(granted->token.value(), promise.token);
      if (!promise.new_lineage) continue;
      ASSERT_EQ(granted->store, *promise.new_lineage);
    }
  }

  void strike_all(const Act& act) {
    std::vector<Disk::Fault> faults = {Disk::Fault::lost_sync, Disk::Fault::late_sync};
    if (!GetParam().first_stays) faults.push_back(Disk::Fault::kill);
    strike_everywhere([&] { return tell_story(act); },
                      [&](std::size_t step, Disk::Fault fault) { expect_kept(step, fault); },
                      faults);
  }

  const std::string path = work("locks.db");
  std::vector<Promise> promised;
  std::optional<StoreId> lineage;  // before there was a new one
  bool is_first = false;
  int acts = 0;
};

TEST_P(TwoFaultsTest, NoTokenComesAgain) {
  strike_all([this](LockTable& table) { use(table); });
}

TEST_P(TwoFaultsTest, NoOutcomeThatWasToldIsForgotten) {
  strike_all([this](LockTable& table) { use_once(table); });
}

TEST_P(TwoFaultsTest, NoOutcomeThatWasForgottenComesBack) {
  strike_all([this](LockTable& table) { use_and_forget(table); });
}

TEST_P(TwoFaultsTest, NoLineageThatWasSeenIsForgotten) {
  strike_all([this](LockTable& table) { use_anew(table); });
}

INSTANTIATE_TEST_SUITE_P(Meetings, TwoFaultsTest,
                         ::testing::Values(Meeting{"OneAfterTheOther", false, false},
                                           Meeting{"SideBySide", true, false},
                                           Meeting{"TheFirstStays", true, true},
                                           Meeting{"TheSecondComes", false, true}),
                         [](const auto& each) { return each.param.name; });

// ---- somebody reads ------------------------------------------------------------------------

class ReaderTest : public PowerLossTest {
 protected:
  ReaderTest() {
    disk.ignore_syncs = true;
    begin_anew();
  }
  void begin_anew() {
    std::filesystem::remove_all(folder.file("work"));
    std::filesystem::create_directories(folder.file("work"));
    disk.steps_.clear();
  }
  Database reader() {
    auto database = Database::open(path, false, disk.name()).value();
    EXPECT_TRUE(database.connection().exec("BEGIN; SELECT count(*) FROM store"));
    return database;
  }
  static LockTable::Patience patience(std::function<bool(Pause)> step_aside = {}) {
    return {{BootClock::now() + 10s, {}}, std::move(step_aside)};
  }
  // All the numbers there are; holds the lock then.
  RequestId use_up(LockTable& table) {
    for (;;) {
      const RequestId request = RequestId::random(random);
      const auto granted = take(table, "job", request);
      EXPECT_TRUE(granted);
      if (granted && granted->token.value() % kBlock == 0) return request;
      EXPECT_TRUE(table.release({name("job"), request, 0ms}));
    }
  }
  std::ptrdiff_t writes(const std::string& file) {
    return std::ranges::count_if(disk.steps_, [&](const Disk::Step& step) {
      return step.kind == Disk::Step::Kind::write && step.file == file;
    });
  }

  const std::string path = work("locks.db");
};

struct Settled {
  const char* name;
  std::function<bool(LockTable&, const RequestId& holder)> act;
};
void PrintTo(const Settled& it, std::ostream* out) {
  *out << it.name;
}
LockName job() {
  return LockName::parse("job").value();
}
const Settled kSettled[] = {
    {"NewNumbers",
     [](LockTable& table, const RequestId& holder) {
       if (!table.release({job(), holder, 0ms})) return false;
       const AcquireCall call{job(), holder, OwnerLabel::parse("test").value(), Ttl::of(1h).value(),
                              false};
       return table.acquire(call, "").has_value();
     }},
    {"Outcome",
     [](LockTable& table, const RequestId& holder) {
       return table.records().record(job(), holder, "key", {"", "0"}).has_value();
     }},
    {"Lineage", [](LockTable& table,
                   const RequestId&) { return table.numbers().rotate_store_id().has_value(); }},
};

class StayingReaderTest : public ReaderTest, public ::testing::WithParamInterface<Settled> {};

TEST_P(StayingReaderTest, WhoWaitsForItWritesNothingMeanwhile) {
  auto table = open(path, "boot-1").value();
  const RequestId holder = use_up(*table);
  std::optional<Database> somebody = reader();
  std::vector<Pause> pauses;
  std::ptrdiff_t in_the_log = 0;
  const std::ptrdiff_t in_the_database = writes(path);
  table->be_patient(patience([&](Pause pause) {
    pauses.push_back(pause);
    if (pauses.size() == 1) in_the_log = writes(path + "-wal");
    if (pauses.size() < 100) return true;
    EXPECT_EQ(writes(path + "-wal"), in_the_log);
    EXPECT_EQ(writes(path), in_the_database) << "a part of the log was copied, and not synced";
    somebody.reset();
    return true;
  }));
  EXPECT_TRUE(GetParam().act(*table, holder));
  ASSERT_EQ(pauses.size(), 100u);
  EXPECT_LT(pauses.front(), 1ms);
  EXPECT_GE(*std::min_element(pauses.begin() + 20, pauses.end()), 5ms);
  EXPECT_LE(*std::ranges::max_element(pauses), 50ms);
}

INSTANTIATE_TEST_SUITE_P(Each, StayingReaderTest, ::testing::ValuesIn(kSettled),
                         [](const auto& each) { return each.param.name; });

// Meanwhile an operator forgot it, and somebody did it again.
TEST_F(ReaderTest, WhatTookThePlaceOfARecordIsNotTestifiedWithIt) {
  auto table = open(path, "boot-1").value();
  auto other = open(path, "boot-1").value();
  const RequestId holder = RequestId::random(random);
  ASSERT_TRUE(take(*table, "job", holder));
  std::optional<Database> somebody = reader();
  const OnceRecord same{"", "0"};
  int turns = 0;
  table->be_patient(patience([&](Pause) {
    if (++turns > 1) return true;
    other->be_patient({{BootClock::now() + 20ms, {}}});
    EXPECT_FALSE(other->records().forget(job(), "key")) << "not on disk yet";
    other->be_patient({{BootClock::now() + 20ms, {}}});
    EXPECT_FALSE(other->records().record(job(), holder, "key", same)) << "not on disk yet";
    somebody.reset();
    return true;
  }));
  EXPECT_TRUE(table->records().record(job(), holder, "key", same));
  const auto database = Database::open(path, false, disk.name()).value();
  EXPECT_LT(number(database.connection(), "SELECT on_disk FROM once").value(), 0);
}

TEST_F(ReaderTest, RenewalsOnALongLogAreNotEachSynced) {
  checkpoint_frames = 80;
  auto table = open(path, "boot-1").value();
  const RequestId held = RequestId::random(random);
  ASSERT_TRUE(take(*table, "held", held));
  const auto somebody = reader();
  disk.steps_.clear();
  for (int i = 0; i < 200; ++i) {
    clock.advance(1s);
    ASSERT_TRUE(table->renew({{name("held"), held, Ttl::of(1h).value()}}));
  }
  const auto syncs = std::ranges::count(disk.steps_, Disk::Step::Kind::sync, &Disk::Step::kind);
  EXPECT_GT(syncs, 0);
  EXPECT_LT(syncs, 50);
  EXPECT_EQ(writes(path), 0) << "a part of the log was copied, and not synced";
}

// A reader would let a process copy the log only in part, which SQLite does not sync. If a later
// sync failed, that part would be lost too, and the next process would have nothing of it to copy.
class PartlyCopiedLogTest : public ReaderTest {
 protected:
  // One reader comes before the other has gone. When both have, the process that waits for them
  // loses a sync. Another goes on, and the power goes.
  template <class Act, class GoOn>
  void strike(std::size_t strike, const Act& act, const GoOn& go_on, int outcomes_before = 0) {
    begin_anew();
    auto open_all_the_time = open(path, "boot-1").value();
    auto struck = open(path, "boot-1").value();
    const RequestId other = RequestId::random(random);
    ASSERT_TRUE(take(*open_all_the_time, "other", other));
    const RequestId holder = use_up(*struck);
    struck->be_patient(patience());
    for (int i = 0; i < outcomes_before; ++i) {
      ASSERT_TRUE(struck->records().record(name("job"), holder, key(i), outcome()));
    }
    std::optional<Database> first = reader();
    std::optional<Database> second;
    int stepped_aside = 0;
    struck->be_patient(patience([&](Pause) {
      if (++stepped_aside == 1) {
        second = reader();
        first.reset();
        open_all_the_time->be_patient(patience());
        EXPECT_TRUE(open_all_the_time->renew({{name("other"), other, Ttl::of(2h).value()}}));
      } else if (stepped_aside == 2) {
        second.reset();
        disk.strike_at(disk.steps() + strike, Disk::Fault::lost_sync);
      }
      return true;
    }));
    act(*struck, holder);
    EXPECT_GE(stepped_aside, 2);
    disk.next_process();
    struck.reset();
    auto next = open(path, "boot-1").value();
    next->be_patient(patience());
    go_on(*next);
    disk.files_after(disk.steps(), Unsynced::none, random, folder.file("work"), folder.file("cut"));
  }
  // In no order: the pages of the table split everywhere.
  static std::string key(int i) { return std::to_string(1000 + i * 37 % 101); }
  static OnceRecord outcome() { return {std::string(200, 'p'), "0"}; }
};

TEST_F(PartlyCopiedLogTest, NoTokenComesAgain) {
  for (std::size_t step = 0; step < 16; ++step) {
    SCOPED_TRACE("a sync is lost from step " + std::to_string(step) + " on");
    std::int64_t last = 0;
    strike(
        step,
        [&](LockTable& table, const RequestId& holder) {
          if (kSettled[0].act(table, holder)) {
            EXPECT_TRUE(table.release({job(), holder, 0ms}));
          }
        },
        [&](LockTable& table) {
          const auto granted = take(table, "job", RequestId::random(random));
          ASSERT_TRUE(granted) << granted.error().message;
          last = granted->token.value();
        });
    auto after = open(cut("locks.db"), "boot-2");
    ASSERT_TRUE(after) << after.error().message;
    const auto granted = take(**after, "job", RequestId::random(random));
    ASSERT_TRUE(granted) << granted.error().message;
    EXPECT_GT(granted->token.value(), last);
  }
}

TEST_F(PartlyCopiedLogTest, NoOutcomeThatWasToldIsForgotten) {
  checkpoint_frames = frames_at_close = 1000;
  for (int before = 0; before < 40; ++before) {
    for (std::size_t step = 0; step < 10; ++step) {
      SCOPED_TRACE("a sync is lost from step " + std::to_string(step) + " on, with " +
                   std::to_string(before) + " outcomes before");
      bool told = false;
      strike(
          step,
          [&](LockTable& table, const RequestId& holder) {
            told = table.records().record(job(), holder, "1050x", outcome()).has_value();
          },
          [&](LockTable& table) {
            const auto seen = table.records().recall(job(), "1050x");
            told = told || (seen && *seen);
          },
          before);
      auto after = open(cut("locks.db"), "boot-2");
      ASSERT_TRUE(after) << after.error().message;
      for (int i = 0; i < before; ++i) {
        ASSERT_TRUE((*after)->records().recall(job(), key(i)).value()) << key(i);
      }
      ASSERT_TRUE(!told || (*after)->records().recall(job(), "1050x").value());
    }
  }
}

TEST_F(PowerLossTest, FullDiskRefusesAndLosesNothing) {
  auto table = open(folder.file("locks.db"), "boot-1");
  ASSERT_TRUE(table);
  const RequestId held = RequestId::random(random);
  const auto first = take(**table, "job", held);
  ASSERT_TRUE(first);
  disk.fail_write = SQLITE_FULL;
  const auto refused = take(**table, "other", RequestId::random(random));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
  EXPECT_THAT(refused.error().message, ::testing::HasSubstr("disk is full"));
  disk.fail_write = 0;
  EXPECT_EQ(take(**table, "job", held)->token, first->token);
  EXPECT_TRUE(take(**table, "other", RequestId::random(random)));
}

}  // namespace
}  // namespace leasehold::sqlite
