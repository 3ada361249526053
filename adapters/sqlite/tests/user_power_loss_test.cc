// What is in the user's own database is as durable as the user's commits: mark, data, keys and
// messages go back together, and what was told to somebody does not go back.
#include "faulty_disk.h"
#include "leasehold/sqlite/adapter.h"
#include "leasehold/sqlite/fenced_once.h"
#include "leasehold/sqlite/once.h"
#include "leasehold/sqlite/outbox.h"
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
    const auto outbox = adapters().front().open_outbox(Url::parse("sqlite:" + path).value());
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

}  // namespace
}  // namespace leasehold::sqlite
