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
  static LockName name(const std::string& text) { return LockName::parse(text).value(); }

  Result<std::unique_ptr<LockTable>> open(const std::string& path, const std::string& boot) {
    LockTable::Options options;
    options.path = path;
    options.machine = {"machine", boot};
    options.clock = &clock;
    options.random = &random;
    options.vfs = disk.name();
    options.token_block = 4;
    options.checkpoint_frames = checkpoint_frames;
    options.frames_at_close = frames_at_close;
    return LockTable::open(std::move(options), {BootClock::now() + 10s, {}});
  }

  Result<Granted> take(LockTable& table, const std::string& lock, const RequestId& request,
                       std::function<bool()> step_aside = {}) {
    table.be_patient({{BootClock::now() + 10s, {}}, std::move(step_aside)});
    auto reply = table.acquire(
        {name(lock), request, OwnerLabel::parse("test").value(), Ttl::of(1h).value(), false}, "");
    if (!reply) return fail(reply.error());
    if (!std::holds_alternative<Granted>(*reply)) return fail(ErrorCode::busy, "it is held");
    return std::get<Granted>(*reply);
  }

  int checkpoint_frames = 24;
  int frames_at_close = 8;
  FakeClock clock;
};

TEST_F(PowerLossTest, NoTokenComesAgainWhereverTheFilesAreCut) {
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
    for (int i = 0; i < 25; ++i) {
      const RequestId request = RequestId::random(random);
      const auto granted = take(**table, "job", request);
      ASSERT_TRUE(granted) << to_string(granted.error());
      handed_out.push_back({disk.steps(), granted->token.value()});
      lineage = granted->store;
      ASSERT_TRUE((*table)->release({name("job"), request, 0ms}));
      if (i % 7 == 6) {  // closing cuts the log
        table->reset();
        table = open(path, "boot-1");
        ASSERT_TRUE(table) << to_string(table.error());
      }
    }
  }
  ASSERT_EQ(handed_out.back().token, 25);
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

TEST_F(PowerLossTest, AfterAFailedCheckpointOnlyNumbersThatAreOnDiskAreGranted) {
  auto table = open(folder.file("locks.db"), "boot-1").value();
  const RequestId held = RequestId::random(random);
  ASSERT_TRUE(take(*table, "held", held));
  disk.fail_sync = SQLITE_IOERR_FSYNC;
  for (int i = 0; i < checkpoint_frames; ++i) {
    clock.advance(1s);
    ASSERT_TRUE(table->renew({{name("held"), held, Ttl::of(1h).value()}}));
  }
  disk.fail_sync = 0;
  for (int i = 0; i < 4; ++i) {
    const RequestId request = RequestId::random(random);
    ASSERT_TRUE(take(*table, "job", request));
    ASSERT_TRUE(table->release({name("job"), request, 0ms}));
  }
  const auto refused = take(*table, "job", RequestId::random(random));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
}

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
      const auto id = table.rotate_lineage();
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
      const auto known = table.recall(name("job"), key);
      const bool done = known && (*known || table.record(name("job"), request, key, {"", "0"}));
      if (done) promised.push_back({.step = disk.steps(), .key = key});
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
      if (promise.key.empty()) continue;
      const auto known = (*table)->recall(name("job"), promise.key);
      if (!known) return expect_told(known.error(), fault);
      ASSERT_TRUE(*known) << promise.key;
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

TEST_P(TwoFaultsTest, NoLineageThatWasSeenIsForgotten) {
  strike_all([this](LockTable& table) { use_anew(table); });
}

INSTANTIATE_TEST_SUITE_P(Meetings, TwoFaultsTest,
                         ::testing::Values(Meeting{"OneAfterTheOther", false, false},
                                           Meeting{"SideBySide", true, false},
                                           Meeting{"TheFirstStays", true, true},
                                           Meeting{"TheSecondComes", false, true}),
                         [](const auto& each) { return each.param.name; });

// A reader lets a process copy the log only in part, which SQLite does not sync. If a later sync
// fails, that part is lost too, and the next process has nothing of it to copy any more.
class PartlyCopiedLogTest : public PowerLossTest {
 protected:
  Database reader() {
    auto database = Database::open(path_, false, disk.name()).value();
    EXPECT_TRUE(database.connection().exec("BEGIN; SELECT count(*) FROM store"));
    return database;
  }
  std::int64_t last_before(std::size_t strike) {
    std::filesystem::remove_all(folder.file("work"));
    std::filesystem::create_directories(folder.file("work"));
    auto open_all_the_time = open(path_, "boot-1").value();
    auto struck = open(path_, "boot-1").value();
    const RequestId other = RequestId::random(random);
    EXPECT_TRUE(take(*open_all_the_time, "other", other));
    for (int i = 0; i < 4; ++i) {
      const RequestId request = RequestId::random(random);
      EXPECT_TRUE(take(*struck, "job", request));
      EXPECT_TRUE(struck->release({name("job"), request, 0ms}));
    }
    std::optional<Database> first = reader();
    std::optional<Database> second;
    int stepped_aside = 0;
    const auto between_attempts = [&] {
      if (++stepped_aside == 1) {
        second = reader();
        first.reset();
        open_all_the_time->be_patient({{BootClock::now() + 10s, {}}});
        EXPECT_TRUE(open_all_the_time->renew({{name("other"), other, Ttl::of(2h).value()}}));
      } else if (stepped_aside == 2) {
        second.reset();
        disk.strike_at(disk.steps() + strike, Disk::Fault::lost_sync);
      }
      return true;
    };
    const RequestId request = RequestId::random(random);
    if (take(*struck, "job", request, between_attempts)) {
      EXPECT_TRUE(struck->release({name("job"), request, 0ms}));
    }
    EXPECT_GE(stepped_aside, 2);
    disk.next_process();
    struck.reset();
    auto next = open(path_, "boot-1").value();
    const auto granted = take(*next, "job", RequestId::random(random));
    EXPECT_TRUE(granted);
    const std::size_t steps = disk.steps();
    disk.files_after(steps, Unsynced::none, random, folder.file("work"), folder.file("cut"));
    return granted ? granted->token.value() : 0;
  }

 private:
  const std::string path_ = work("locks.db");
};

TEST_F(PartlyCopiedLogTest, NoTokenComesAgain) {
  disk.ignore_syncs = true;
  for (std::size_t strike = 0; strike < 16; ++strike) {
    SCOPED_TRACE("a sync is lost from step " + std::to_string(strike) + " on");
    const std::int64_t last = last_before(strike);
    auto after = open(cut("locks.db"), "boot-2");
    ASSERT_TRUE(after) << after.error().message;
    const auto granted = take(**after, "job", RequestId::random(random));
    ASSERT_TRUE(granted) << granted.error().message;
    EXPECT_GT(granted->token.value(), last);
    after->reset();
    disk.steps_.clear();
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
