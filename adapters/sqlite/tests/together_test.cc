// Calls that go together in one transaction: each has its own answer, and none before the commit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <future>
#include <thread>

#include "leasehold/process/io.h"
#include "lock_table.h"
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

// Is asked when a connection that was opened while this object lives commits something. True: the
// commit fails, and SQLite takes everything back.
class AtCommit {
 public:
  explicit AtCommit(std::function<bool()> asked) {
    asked_ = std::move(asked);
    sqlite3_auto_extension(reinterpret_cast<void (*)()>(&attach));
  }
  ~AtCommit() {
    sqlite3_reset_auto_extension();
    asked_ = nullptr;
  }
  AtCommit(const AtCommit&) = delete;

 private:
  static int attach(sqlite3* db, char**, const sqlite3_api_routines*) {
    sqlite3_commit_hook(
        db, [](void*) { return asked_ && asked_() ? 1 : 0; }, nullptr);
    return SQLITE_OK;
  }
  inline static std::function<bool()> asked_;
};

// Says when it is asked: SQLite's waiting for another writer does so before each of its pauses.
class WatchedRandom final : public Random {
 public:
  std::uint64_t next() override {
    if (asked) asked();
    return system_random().next();
  }
  std::function<void()> asked;
};

class TogetherInOneTransaction : public ::testing::Test {
 protected:
  static LockName name(const std::string& text) { return LockName::parse(text).value(); }
  static RequestId new_request() { return RequestId::random(system_random()); }
  static OwnerLabel owner() { return OwnerLabel::parse("test").value(); }
  static Ttl ttl() { return Ttl::of(30s).value(); }

  LockTable::Options options() {
    LockTable::Options options;
    options.path = path;
    options.machine = {"here", "boot-1"};
    options.clock = &clock;
    options.random = &random;
    options.token_block = kBlock;
    return options;
  }
  std::unique_ptr<LockTable> open() {
    return LockTable::open(options(), {BootClock::now() + 10s, {}}).value();
  }
  Database open_beside() { return Database::open(path, true).value(); }

  AskedAcquire& acquire(const std::string& lock, const RequestId& request = new_request(),
                        Mode mode = {}, bool queue = false) {
    auto one = std::make_unique<AskedAcquire>(
        AcquireCall{name(lock), request, owner(), ttl(), queue, mode}, kLimits);
    return add(std::move(one));
  }
  AskedRelease& release(const std::string& lock, const RequestId& request) {
    return add(std::make_unique<AskedRelease>(ReleaseCall{name(lock), request, 0ms}, kLimits));
  }
  AskedRenew& renew(const std::string& lock, const RequestId& request) {
    return add(
        std::make_unique<AskedRenew>(std::vector{RenewCall{name(lock), request, ttl()}}, kLimits));
  }
  // What was asked since the last time.
  Status answer(LockTable& table, const std::string& wake_address = "") {
    table.be_patient({{BootClock::now() + patience, {}}});
    const auto answered = table.answer(batch_, wake_address);
    batch_.clear();
    return answered;
  }
  Result<AcquireReply> alone(LockTable& table, const AcquireCall& call) {
    table.be_patient({{BootClock::now() + 10s, {}}});
    return table.acquire(call, "");
  }

  static std::int64_t token(const AskedAcquire& asked) {
    const auto* granted =
        asked.reply && *asked.reply ? std::get_if<Granted>(&**asked.reply) : nullptr;
    return granted == nullptr ? 0 : granted->token.value();
  }
  static bool busy(const AskedAcquire& asked) {
    return asked.reply && *asked.reply && std::holds_alternative<Busy>(**asked.reply);
  }
  static ReleaseReply reply(const AskedRelease& asked) { return asked.reply.value().value(); }
  static bool is_held(LockTable& table, const std::string& lock) {
    return !table.inspect(name(lock))->holders.empty();
  }
  // Of those whose batch is on its way. Who has an answer has begun no more.
  auto begun() const {
    return std::ranges::count_if(batch_, [](const AnyAsked& one) {
      return std::visit([](auto* asked) { return asked->has_begun(); }, one);
    });
  }

  static constexpr std::int64_t kBlock = 1000;
  inline static const CallContext kLimits{BootTime::max(), {}};
  Millis patience = 10s;  // with another process that writes
  FakeClock clock;
  WatchedRandom random;
  TempFolder folder;
  std::string path = folder.file("locks.db");

 private:
  template <class One>
  One& add(std::unique_ptr<One> one) {
    One& added = *one;
    batch_.push_back(&added);
    asked_.push_back(std::move(one));
    return added;
  }
  std::vector<AnyAsked> batch_;
  std::vector<std::unique_ptr<AskedRider>> asked_;
};

TEST_F(TogetherInOneTransaction, EachGetsItsOwnAnswerByOneCommit) {
  int commits = 0;
  const AtCommit count([&] {
    ++commits;
    return false;
  });
  auto table = open();
  const RequestId held = new_request();
  acquire("held", held);
  ASSERT_TRUE(answer(*table));
  commits = 0;
  const auto& renewed = renew("held", held);
  const auto& not_held = renew("held", new_request());
  const auto& first = acquire("first");
  const auto& taken = acquire("held");
  const auto& second = acquire("second");
  const auto& nobodys = release("free", new_request());
  const auto& released = release("held", held);
  ASSERT_TRUE(answer(*table));
  EXPECT_EQ(commits, 1);
  EXPECT_THAT(renewed.reply->value(), ElementsAre(RenewReply::renewed));
  EXPECT_THAT(not_held.reply->value(), ElementsAre(RenewReply::gone));
  EXPECT_EQ(token(first), 2);
  EXPECT_TRUE(busy(taken));
  EXPECT_EQ(token(second), 3);
  EXPECT_EQ(reply(nobodys), ReleaseReply::not_held);
  EXPECT_EQ(reply(released), ReleaseReply::released);
  EXPECT_EQ(table->inspect(name("first"))->holder()->request, first.call.request);
  EXPECT_EQ(table->inspect(name("first"))->last_token->value(), 2);
  EXPECT_EQ(table->inspect(name("second"))->last_token->value(), 3);
}

TEST_F(TogetherInOneTransaction, OneLockGoesToOneByArrival) {
  auto table = open();
  acquire("other");  // gets the first numbers
  ASSERT_TRUE(answer(*table));
  const RequestId holder = new_request();
  const auto& first = acquire("job", holder);
  const auto& second = acquire("job");
  const auto& released = release("job", holder);
  const auto& third = acquire("job");
  const auto& fourth = acquire("job");
  ASSERT_TRUE(answer(*table));
  EXPECT_EQ(token(first), 2);
  EXPECT_TRUE(busy(second));
  EXPECT_EQ(reply(released), ReleaseReply::released);
  EXPECT_EQ(token(third), 3);
  EXPECT_TRUE(busy(fourth));
  EXPECT_EQ(table->inspect(name("job"))->holder()->request, third.call.request);
}

TEST_F(TogetherInOneTransaction, WhatARequestHasIsToldItAgain) {
  auto table = open();
  const RequestId request = new_request();
  const auto& first = acquire("job", request);
  const auto& again = acquire("job", request);
  ASSERT_TRUE(answer(*table));
  EXPECT_EQ(token(first), 1);
  EXPECT_EQ(token(again), 1);
  EXPECT_FALSE(std::get<Granted>(again.reply->value()).fresh);
}

TEST_F(TogetherInOneTransaction, WhoIsRefusedCostsItsNeighboursNothing) {
  auto table = open();
  acquire("pool", new_request(), Mode::permit_of(3));
  ASSERT_TRUE(answer(*table));
  const auto& before = acquire("before");
  const auto& refused = acquire("pool", new_request(), Mode::permit_of(5));
  const auto& after = acquire("after");
  ASSERT_TRUE(answer(*table));
  EXPECT_EQ(token(before), 2);
  EXPECT_EQ(refused.reply->error().code, ErrorCode::invalid);
  EXPECT_THAT(refused.reply->error().message, HasSubstr("has 3 permits"));
  EXPECT_EQ(token(after), 3);
  EXPECT_TRUE(is_held(*table, "before"));
  EXPECT_TRUE(is_held(*table, "after"));
}

TEST_F(TogetherInOneTransaction, WhatTheFileCannotAnswerLeavesTheOthersToGoAlone) {
  auto table = open();
  acquire("bad");
  ASSERT_TRUE(answer(*table));
  ASSERT_TRUE(open_beside().connection().exec("UPDATE lock SET token = -1"));
  const auto& before = acquire("before");
  const auto& bad = acquire("bad");
  const auto& after = acquire("after");
  const auto failed = answer(*table);
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message, HasSubstr("is damaged"));
  for (const auto* one : {&before, &bad, &after}) EXPECT_FALSE(one->reply);
  EXPECT_FALSE(is_held(*table, "before"));
  EXPECT_TRUE(std::get<Granted>(alone(*table, before.call).value()).fresh);
  EXPECT_EQ(alone(*table, bad.call).error().code, ErrorCode::unavailable);
  EXPECT_TRUE(std::get<Granted>(alone(*table, after.call).value()).fresh);
}

TEST_F(TogetherInOneTransaction, NobodyIsAnsweredBeforeTheCommit) {
  std::function<bool()> at_commit = [] { return false; };
  const AtCommit hook([&] { return at_commit(); });
  auto table = open();
  const RequestId held = new_request();
  acquire("held", held);
  ASSERT_TRUE(answer(*table));
  std::ptrdiff_t open_at_commit = 0;
  at_commit = [&] {
    open_at_commit = begun();
    return false;
  };
  acquire("first");
  release("held", held);
  acquire("second");
  acquire("first");
  ASSERT_TRUE(answer(*table));
  EXPECT_EQ(open_at_commit, 4);
}

TEST_F(TogetherInOneTransaction, CommitThatIsTakenBackLeavesAllToGoAlone) {
  bool fails = false;
  const AtCommit hook([&] { return fails; });
  auto table = open();
  const RequestId held = new_request();
  acquire("held", held);
  ASSERT_TRUE(answer(*table));
  fails = true;
  const auto& first = acquire("first");
  const auto& released = release("held", held);
  const auto& waiting = acquire("first", new_request(), {}, /*queue=*/true);
  ASSERT_FALSE(answer(*table));
  fails = false;
  EXPECT_FALSE(first.reply || released.reply || waiting.reply);
  EXPECT_TRUE(is_held(*table, "held"));
  EXPECT_FALSE(is_held(*table, "first"));
  EXPECT_TRUE(table->inspect(name("first"))->waiters.empty());
  EXPECT_FALSE(table->waits());
  EXPECT_TRUE(std::get<Granted>(alone(*table, first.call).value()).fresh);
  table->be_patient({{BootClock::now() + 10s, {}}});
  EXPECT_EQ(table->release(released.call), ReleaseReply::released);
}

// A waiter that was told earlier would look, and find the lock still held.
TEST_F(TogetherInOneTransaction, WaiterIsToldAfterTheCommit) {
  std::function<bool()> at_commit = [] { return false; };
  const AtCommit hook([&] { return at_commit(); });
  auto table = open();
  const std::string address = new_request().hex();
  ASSERT_TRUE(table->wake_folder().create());
  const kit::Fd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  table->wake_folder().reachable(address).copy(at.sun_path, sizeof at.sun_path - 1);
  ASSERT_EQ(bind(socket.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
  ASSERT_TRUE(table->wake_folder().sign(address));
  const auto told = [&] {
    char message[64];
    return recv(socket.get(), message, sizeof message, 0) > 0;
  };
  const RequestId held = new_request();
  acquire("job", held);
  const auto& waiting = acquire("job", new_request(), {}, /*queue=*/true);
  ASSERT_TRUE(answer(*table, address));
  ASSERT_TRUE(std::holds_alternative<Queued>(waiting.reply->value()));
  bool early = false;
  at_commit = [&] {
    early = early || told();
    return false;
  };
  release("job", held);
  acquire("other");
  ASSERT_TRUE(answer(*table));
  EXPECT_FALSE(early);
  EXPECT_TRUE(told());
}

// ---- numbers ---------------------------------------------------------------------------------

TEST_F(TogetherInOneTransaction, BatchThatRunsOutOfNumbersGetsNewOnesAndGrantsOnce) {
  auto table = open();
  const RequestId held = new_request();
  acquire("held", held);
  ASSERT_TRUE(answer(*table));
  ASSERT_TRUE(open_beside().connection().exec("UPDATE store SET last = 999"));
  const auto& last = acquire("last");
  const auto& first = acquire("first");
  const auto& released = release("held", held);
  const auto& taken = acquire("first");
  const auto& second = acquire("second");
  ASSERT_TRUE(answer(*table));
  EXPECT_EQ(token(last), 1000);
  EXPECT_EQ(token(first), 1001);
  EXPECT_EQ(reply(released), ReleaseReply::released);
  EXPECT_TRUE(busy(taken));
  EXPECT_EQ(token(second), 1002);
  EXPECT_EQ(table->inspect(name("last"))->holder()->request, last.call.request);
  EXPECT_EQ(table->inspect(name("free"))->counted_to, 1002);
}

TEST_F(TogetherInOneTransaction, WhoNeedsNumbersThatAreNotToBeHadHoldsUpNobody) {
  auto table = open();
  const RequestId held = new_request();
  const RequestId leaving = new_request();
  acquire("held", held);
  acquire("leaving", leaving);
  ASSERT_TRUE(answer(*table));
  ASSERT_TRUE(open_beside().connection().exec("UPDATE store SET last = 1000"));
  auto reader = open_beside();
  ASSERT_TRUE(reader.connection().exec("BEGIN; SELECT * FROM lock"));
  const auto& renewed = renew("held", held);
  const auto& needs_a_number = acquire("job");
  const auto& released = release("leaving", leaving);
  const auto failed = answer(*table);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::unavailable);
  EXPECT_THAT(renewed.reply->value(), ElementsAre(RenewReply::renewed));
  EXPECT_EQ(reply(released), ReleaseReply::released);
  EXPECT_FALSE(needs_a_number.reply);
  ASSERT_TRUE(reader.connection().exec("COMMIT"));
  EXPECT_EQ(std::get<Granted>(alone(*table, needs_a_number.call).value()).token.value(), 1001);
}

// ---- another process writes ------------------------------------------------------------------

TEST_F(TogetherInOneTransaction, WhoLeavesWhileTheFileIsLockedIsNotDone) {
  auto table = open();
  auto other = open_beside();
  ASSERT_TRUE(other.connection().exec("BEGIN IMMEDIATE"));
  auto& leaves = acquire("left");
  const auto& stays = acquire("stays");
  std::ptrdiff_t began_early = 0;
  random.asked = [&] {
    began_early += begun();
    leaves.left_behind();
    (void)other.connection().exec("COMMIT");
  };
  ASSERT_TRUE(answer(*table));
  random.asked = nullptr;
  EXPECT_EQ(began_early, 0);
  EXPECT_FALSE(leaves.reply);
  EXPECT_FALSE(is_held(*table, "left"));
  EXPECT_EQ(token(stays), 1);
}

TEST_F(TogetherInOneTransaction, WriterThatDoesNotFinishIsUnavailableForEach) {
  auto table = open();
  auto other = open_beside();
  ASSERT_TRUE(other.connection().exec("BEGIN IMMEDIATE"));
  patience = 20ms;
  const auto& one = acquire("one");
  const auto& two = acquire("two");
  ASSERT_TRUE(answer(*table));
  for (const auto* it : {&one, &two}) {
    EXPECT_EQ(it->reply->error().code, ErrorCode::unavailable);
    EXPECT_THAT(it->reply->error().message, HasSubstr("another process is writing"));
  }
}

// ---- a crash ---------------------------------------------------------------------------------

TEST_F(TogetherInOneTransaction, KilledAtAnyInstructionNoTokenRepeats) {
  constexpr int kTogether = 5;
  std::int64_t last = 0;
  for (int round = 0; round < 30; ++round) {
    auto pipe = process::make_pipe();
    const pid_t child = fork();
    if (child == 0) {
      auto table = open();
      for (;;) {
        std::vector<AskedAcquire*> granted;
        for (int i = 0; i < kTogether; ++i) granted.push_back(&acquire("job " + std::to_string(i)));
        if (!answer(*table)) _exit(1);
        for (const AskedAcquire* one : granted) {
          const std::int64_t number = token(*one);
          if (::write(pipe.write.get(), &number, sizeof number) < 0) _exit(2);
        }
        for (const AskedAcquire* one : granted) release(one->call.lock.str(), one->call.request);
        if (!answer(*table)) _exit(3);
      }
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
    auto table = open();
    const auto& one = acquire("job 0");
    const auto& two = acquire("job 1");
    ASSERT_TRUE(answer(*table));
    ASSERT_GT(token(one), last);
    ASSERT_EQ(token(two), token(one) + 1);
    last = token(two);
    release("job 0", one.call.request);
    release("job 1", two.call.request);
    ASSERT_TRUE(answer(*table));
  }
}

// ---- the store -------------------------------------------------------------------------------

// Returns when the thread sleeps: in a line, or while another writes.
void await_sleep(pid_t thread) {
  const std::string stat = "/proc/self/task/" + std::to_string(thread) + "/stat";
  for (char state = 'R'; state != 'S';) {
    std::ifstream(stat).ignore(64, ')').ignore(1).get(state);
  }
}

class RidingThreads : public TogetherInOneTransaction {
 protected:
  std::unique_ptr<Store> open_store() {
    return open_table(options(), OpenOptions().begin()).value();
  }

  // A call on a thread of its own, which sleeps when this returns.
  struct Caller {
    std::stop_source stop;
    std::promise<Result<AcquireReply>> answer;
    std::future<Result<AcquireReply>> told = answer.get_future();
    std::promise<pid_t> id;
    std::thread thread;
  };
  std::unique_ptr<Caller> call(Store& store, const AcquireCall& what, Millis time = 1min) {
    auto caller = std::make_unique<Caller>();
    caller->thread = std::thread([&store, what, time, &it = *caller] {
      it.id.set_value(gettid());
      store.acquire(what, {BootClock::now() + time, it.stop.get_token()},
                    [&it](Result<AcquireReply> reply) { it.answer.set_value(std::move(reply)); });
    });
    return caller;
  }
  AcquireCall of(const std::string& lock) {
    return {name(lock), new_request(), owner(), ttl(), /*queue=*/false};
  }
};

TEST_F(RidingThreads, EachThatWaitsForAnotherWriterHasItsOwnDeadlineAndStop) {
  auto store = open_store();
  auto other = open_beside();
  ASSERT_TRUE(other.connection().exec("BEGIN IMMEDIATE"));
  std::vector<std::unique_ptr<Caller>> callers;
  for (const char* lock : {"first", "stopped", "patient", "patient too"}) {
    callers.push_back(call(*store, of(lock)));
    await_sleep(callers.back()->id.get_future().get());
  }
  callers.push_back(call(*store, of("short of time"), 30ms));
  callers[0]->stop.request_stop();
  callers[1]->stop.request_stop();
  EXPECT_EQ(callers[0]->told.get().error().code, ErrorCode::cancelled);
  EXPECT_EQ(callers[1]->told.get().error().code, ErrorCode::cancelled);
  EXPECT_EQ(callers[4]->told.get().error().code, ErrorCode::unavailable);
  ASSERT_TRUE(other.connection().exec("COMMIT"));
  EXPECT_TRUE(callers[2]->told.get());
  EXPECT_TRUE(callers[3]->told.get());
  for (auto& caller : callers) caller->thread.join();
  store->close();
  auto table = open();
  EXPECT_FALSE(is_held(*table, "first"));
  EXPECT_FALSE(is_held(*table, "stopped"));
  EXPECT_FALSE(is_held(*table, "short of time"));
  EXPECT_TRUE(is_held(*table, "patient"));
  EXPECT_TRUE(is_held(*table, "patient too"));
}

// Its caller leaves when its batch is about to be committed.
TEST_F(RidingThreads, GrantWhoseRiderHadLeftIsWithdrawnByItsRelease) {
  std::function<void()> at_commit = [] {};
  const AtCommit hook([&] {
    at_commit();
    return false;
  });
  auto store = open_store();
  store->acquire(of("gets the first numbers"), {BootClock::now() + 1min, {}}, [](const auto&) {});
  std::optional<ErrorCode> code;
  std::optional<Result<ReleaseReply>> released;
  AcquireCall left = of("left");
  for (int attempt = 0; attempt < 20 && code != ErrorCode::outcome_unknown; ++attempt) {
    left.request = new_request();
    std::unique_ptr<Caller> rider;
    bool is_first = true;
    std::atomic<pid_t> riding = 0;
    at_commit = [&] {
      if (std::exchange(is_first, false)) {
        rider = call(*store, left);
        riding = rider->id.get_future().get();
        return await_sleep(riding);
      }
      if (gettid() == riding) return;  // it was tired of gathering, and goes on its own
      rider->stop.request_stop();
      rider->told.wait();
    };
    store->acquire(of("first " + std::to_string(attempt)), {BootClock::now() + 1min, {}},
                   [](const auto& reply) { EXPECT_TRUE(reply); });
    rider->thread.join();
    // After the batch: the hook is at rest again.
    store->release({left.lock, left.request, 0ms}, {BootClock::now() + 1min, {}},
                   [&](auto answer) { released = std::move(answer); });
    at_commit = [] {};
    auto reply = rider->told.get();
    if (!reply) code = reply.error().code;
  }
  EXPECT_EQ(code, ErrorCode::outcome_unknown);
  EXPECT_EQ(released->value(), ReleaseReply::released);
  store->close();
  EXPECT_FALSE(is_held(*open(), "left"));
}

}  // namespace
}  // namespace leasehold::sqlite
