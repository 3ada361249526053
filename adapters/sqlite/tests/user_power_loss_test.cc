// What is in the user's own database is as durable as the user's commits: mark, data, keys and
// messages go back together, and what was told to somebody does not go back.
#include "faulty_disk.h"
#include "fence_table.h"
#include "leasehold/outbox.h"
#include "leasehold/sqlite/adapter.h"
#include "leasehold/sqlite/fence.h"
#include "leasehold/sqlite/fenced_once.h"
#include "leasehold/sqlite/once.h"
#include "leasehold/sqlite/outbox.h"
#include "leasehold/sqlite/row_fence.h"
#include "mark_sweep.h"
#include "user_database.h"

namespace leasehold::sqlite {
namespace {

using testing::Disk;

class UserPowerLossTest : public testing::FaultyDiskTest,
                          public ::testing::WithParamInterface<const char*> {
 protected:
  struct Promise {
    std::size_t step;
    std::string row;  // a statement that finds it
  };

  UserPowerLossTest() { sqlite3_vfs_register(sqlite3_vfs_find(disk.name()), 1); }

  void promise(const std::string& from) {
    promised.push_back({disk.steps(), "SELECT 1 FROM " + from});
  }

  // Does what the one before did not do, with a higher token, and relays.
  void act() {
    ++acts;
    const UserConnection user(path);
    user.exec("PRAGMA synchronous = FULL");
    const auto once = Once::open(user.get());
    const auto fenced = FencedOnce::open(user.get(), "balance");
    if (!once || !fenced) return;
    const auto alone =
        once->run("alone", "", [](OpenTransaction&) { return Result<std::string>("done"); });
    if (alone) promise("leasehold_once WHERE key = 'alone'");
    const auto together = fenced->run(token_of(acts, 'b'), "both", "", [&](auto& open) {
      exec_on(open.handle(), "UPDATE balance SET by = " + std::to_string(acts));
      const auto sent =
          open.send({.key = "k", .topic = "t", .payload = "p", .idempotency_key = {}});
      return sent ? Result<std::string>("done") : fail(sent.error());
    });
    if (together) promise("leasehold_once WHERE key = 'both'");
    relay();
  }

  // As the relay does before it sends anything.
  void relay() {
    const auto outbox =
        adapters().front().offers.open<Outbox>(Url::parse("sqlite:" + path).value());
    if (!outbox) return;
    const auto batch = (*outbox)->next(100, {});
    if (!batch || !(*outbox)->enter(token_of(acts, 'b'))) return;
    for (const auto& message : *batch) {
      promise("leasehold_outbox WHERE idempotency_key = '" + message.idempotency_key + "'");
    }
  }

  Span tell_story() {
    promised.clear();
    acts = 0;
    {
      const UserConnection user(path);
      user.exec(std::string("PRAGMA journal_mode = ") + GetParam());
      user.exec("CREATE TABLE balance(by INTEGER); INSERT INTO balance VALUES(0)");
      EXPECT_TRUE(install_outbox(user.get()) && install_once(user.get()));
    }
    Span struck{disk.steps(), 0};
    act();
    struck.to = disk.steps();
    disk.next_process();
    act();
    return struck;
  }

  // After a sync that failed SQLite's log may have a hole, and then all behind it is lost.
  void expect_kept(std::size_t step, Disk::Fault fault) {
    const UserConnection user(cut("user.db"));
    for (const Promise& promise : promised) {
      if (promise.step > step || fault == Disk::Fault::lost_sync) break;
      ASSERT_EQ(user.ask(promise.row), "1") << promise.row;
    }
    ASSERT_EQ(user.ask("SELECT by <= coalesce((SELECT token FROM leasehold_fence"
                       " WHERE resource = 'balance'), 0) FROM balance"),
              "1");
    ASSERT_EQ(user.ask("SELECT (SELECT count(*) FROM leasehold_outbox) ="
                       " (SELECT count(*) FROM leasehold_once WHERE key = 'both')"),
              "1");
  }

  const std::string path = work("user.db");
  std::vector<Promise> promised;
  int acts = 0;
};

TEST_P(UserPowerLossTest, WhatWasToldIsKeptAndTheRestGoesBackTogether) {
  strike_everywhere([&] { return tell_story(); },
                    [&](std::size_t step, Disk::Fault fault) { expect_kept(step, fault); },
                    {Disk::Fault::kill, Disk::Fault::lost_sync, Disk::Fault::late_sync});
}

INSTANTIATE_TEST_SUITE_P(Journals, UserPowerLossTest, ::testing::Values("wal", "delete"),
                         [](const auto& each) { return each.param; });

// ---- what an operator is told --------------------------------------------------------------

ResourceName balance() {
  return ResourceName::parse("balance").value();
}
Status add_columns(sqlite3* db) {
  return add_fence_columns(db, "balance");
}
Status adopt(sqlite3* db) {
  return adopt_lineage(Connection(db), balance(), lineage_of(), TokenNumber::of(7).value());
}
Status adopt_row(sqlite3* db) {
  const auto fence = RowFence::open(db, "balance", "id");
  if (!fence) return fail(fence.error());
  return fence->adopt("1", lineage_of(), TokenNumber::of(7).value());
}
Status write_row(sqlite3* db) {
  const auto fence = RowFence::open(db, "balance", "id");
  if (!fence) return fail(fence.error());
  return fence->write("1", token_of(7, 'b'), {{"by", "7"}});
}
Status enter_row(sqlite3* db) {
  const auto fence = RowFence::open(db, "balance", "id");
  if (!fence) return fail(fence.error());
  const auto entered = fence->enter("1", token_of(7, 'b'));
  return entered ? Status() : fail(entered.error());
}
Status enter_long_ago(sqlite3* db) {
  auto entered = Fence::open(db, balance())->transaction(token_of(7, 'b'), [](OpenTransaction&) {
    return Status();
  });
  EXPECT_EQ(exec_on(db, "UPDATE leasehold_fence SET entered_at = 0"), "");
  return entered;
}
Status enter_to_read(sqlite3* db) {
  return Fence::open(db, balance())->read(token_of(7, 'b'), [](OpenTransaction&) {
    return Status();
  });
}
Status sweep(sqlite3* db) {
  return sweep_marks(Connection(db), {.older_than = Millis(1)}).map([](std::int64_t) {});
}
Status sweep_at_normal(sqlite3* db) {
  exec_on(db, "PRAGMA synchronous = NORMAL");
  return sweep(db);
}
constexpr const char* kCovered =
    "(SELECT count(*) FROM leasehold_fence) + (SELECT count(*) FROM leasehold_floor WHERE floor = "
    "7)"
    " > 0";
std::string is_in_schema(const std::string& name) {
  return "EXISTS(SELECT 1 FROM sqlite_master WHERE name GLOB '" + name + "')";
}

struct Deed {
  const char* name;
  std::vector<std::function<Status(sqlite3*)>> before;
  std::function<Status(sqlite3*)> act;
  std::string done;          // in SQL, when it was told
  std::string always = "1";  // from its beginning
};
void PrintTo(const Deed& deed, std::ostream* out) {
  *out << deed.name;
}
const Deed kDeeds[] = {
    {"Install", {}, install_fence, is_in_schema("leasehold_fence_stay")},
    {"Remove", {install_fence}, remove_fence, "NOT " + is_in_schema("leasehold_fence")},
    {"Guard",
     {install_fence},
     [](sqlite3* db) { return guard_table(db, "balance", balance()); },
     is_in_schema("leasehold_guard_*_DELETE")},
    {"Adopt", {install_fence}, adopt, "(SELECT least FROM leasehold_fence) = 7"},
    {"Reset",
     {install_fence, adopt},
     [](sqlite3* db) { return reset_mark(Connection(db), balance()); },
     "(SELECT least FROM leasehold_fence) IS NULL"},
    {"Admit",
     {install_fence},
     [](sqlite3* db) { return admit_store(Connection(db), lineage_of().store); },
     "EXISTS(SELECT 1 FROM leasehold_floor)"},
    {"EnterToRead", {install_fence}, enter_to_read, "(SELECT read_token FROM leasehold_fence) = 7"},
    {"Sweep",
     {install_fence, enter_long_ago},
     sweep,
     "(SELECT floor FROM leasehold_floor) = 7 AND NOT EXISTS(SELECT 1 FROM leasehold_fence)",
     kCovered},
    {"InstallOnce", {}, install_once, is_in_schema("leasehold_once")},
    {"InstallOutbox", {}, install_outbox, is_in_schema("leasehold_outbox_by_key")},
    {"AddColumns",
     {},
     add_columns,
     "EXISTS(SELECT 1 FROM pragma_table_info('balance') WHERE name = 'fence_refused')"},
    {"AdoptRow", {add_columns}, adopt_row, "(SELECT fence FROM balance) = 7"},
    {"EnterRow", {add_columns}, enter_row, "(SELECT fence FROM balance) = 7"},
    {"WriteRow", {add_columns}, write_row, "(SELECT by FROM balance) = 7"},
};

class DeedPowerLossTest : public testing::FaultyDiskTest,
                          public ::testing::WithParamInterface<std::tuple<const char*, Deed>> {
 protected:
  DeedPowerLossTest() { sqlite3_vfs_register(sqlite3_vfs_find(disk.name()), 1); }

  bool act() {
    const UserConnection user(path);
    user.exec("PRAGMA synchronous = FULL");
    const bool done = deed.act(user.get()).has_value();
    told = disk.steps();
    return done;
  }

  Span tell_story() {
    {
      const UserConnection user(path);
      user.exec(std::string("PRAGMA journal_mode = ") + std::get<0>(GetParam()));
      user.exec(
          "CREATE TABLE balance(id TEXT PRIMARY KEY, by INTEGER);"
          " INSERT INTO balance VALUES('1', 0)");
      for (const auto& step : deed.before) EXPECT_TRUE(step(user.get()));
    }
    Span struck{disk.steps(), 0};
    (void)act();
    struck.to = disk.steps();
    disk.next_process();
    EXPECT_TRUE(act());
    return struck;
  }

  const std::string path = work("user.db");
  const Deed deed = std::get<1>(GetParam());
  std::size_t told = 0;
};

TEST_P(DeedPowerLossTest, WhatAKilledProcessDidIsToldWhenItIsOnDisk) {
  strike_everywhere([&] { return tell_story(); },
                    [&](std::size_t step, Disk::Fault) {
                      const UserConnection user(cut("user.db"));
                      ASSERT_EQ(user.ask("SELECT " + deed.always), "1");
                      if (step < told) return;
                      ASSERT_EQ(user.ask("SELECT " + deed.done), "1");
                    },
                    {Disk::Fault::kill});
}

std::string name_of_deed(const ::testing::TestParamInfo<std::tuple<const char*, Deed>>& each) {
  return std::string(std::get<1>(each.param).name) + "_" + std::get<0>(each.param);
}

INSTANTIATE_TEST_SUITE_P(Each, DeedPowerLossTest,
                         ::testing::Combine(::testing::Values("wal", "delete"),
                                            ::testing::ValuesIn(kDeeds)),
                         name_of_deed);

// Commits may go back then, but only in the order in which they came. In another journal SQLite
// itself promises nothing at that level.
INSTANTIATE_TEST_SUITE_P(AtNormal, DeedPowerLossTest,
                         ::testing::Combine(::testing::Values("wal"),
                                            ::testing::Values(Deed{"Sweep",
                                                                   {install_fence, enter_long_ago},
                                                                   sweep_at_normal,
                                                                   "1",
                                                                   kCovered})),
                         name_of_deed);

}  // namespace
}  // namespace leasehold::sqlite
