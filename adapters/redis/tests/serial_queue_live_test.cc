#include "leasehold/redis/serial_queue.h"

#include <gmock/gmock.h>

#include <fstream>
#include <map>
#include <sstream>

#include "adapters/redis/rig/server.h"
#include "kit/text/visible_text.h"
#include "testing/crashing_workers.h"
#include "testing/failure_texts.h"
#include "testing/handled_operations.h"

namespace leasehold::redis {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;
using leasehold::rig::RedisServer;
using leasehold::rig::TempFolder;
using leasehold::testing::CrashingWorkers;
using leasehold::testing::told;

class RedisSerialQueue : public ::testing::Test {
 protected:
  RedisSerialQueue() { server().cli({"FLUSHALL"}); }

  static RedisServer& server() {
    static RedisServer running;
    return running;
  }
  static SerialQueue open(SerialQueueOptions options = {}, const std::string& name = "orders") {
    return SerialQueue::open(server().url(), name, options).value();
  }
  void push(const std::string& entity, const std::string& payload) {
    ASSERT_TRUE(queue_.push(entity, payload));
  }

  static std::string handle(SerialQueue& queue, const Status& answer = {},
                            const HandleOptions& options = {}) {
    return told(
        queue.handle_one([&](const Operation&, std::stop_token) { return answer; }, options));
  }
  // As if the time of whoever is at work were over.
  static void end_time_of(const std::string& entity) {
    server().cli({"ZADD", "leasehold:serial:busy:6:orders", "XX", "1", entity});
  }

  SerialQueue queue_ = open({.timeout = Millis::max()});
};

TEST_F(RedisSerialQueue, OperationsOfAnEntityAreDoneInOrder) {
  push("a", "1");
  push("a", "2");
  push("b", "3");
  EXPECT_EQ(queue_.entities().value(), 2);
  std::map<std::string, std::string> done;
  for (int i = 0; i < 3; ++i) {
    const std::string one = handle(queue_);
    done[one.substr(0, 1)] += one.substr(2);
  }
  EXPECT_EQ(done, (std::map<std::string, std::string>{{"a", "12"}, {"b", "3"}}));
  EXPECT_EQ(handle(queue_), "nothing");
  EXPECT_EQ(queue_.entities().value(), 0);
  EXPECT_EQ(server().cli({"KEYS", "leasehold:serial:*"}), "leasehold:serial:ids:6:orders");
}

TEST_F(RedisSerialQueue, EntityAtWorkIsPassedOver) {
  push("a", "1");
  push("a", "2");
  SerialQueue other = open();
  const auto handled = queue_.handle_one([&](const Operation&, std::stop_token) {
    EXPECT_EQ(handle(other), "nothing") << "a:2 must wait for a:1";
    EXPECT_TRUE(other.push("a", "3"));
    EXPECT_EQ(handle(other), "nothing") << "a push must not let it go";
    return Status();
  });
  EXPECT_EQ(told(handled), "a:1");
  EXPECT_EQ(handle(other), "a:2");
  EXPECT_EQ(handle(other), "a:3");
}

TEST_F(RedisSerialQueue, WorkerWhoseTimeIsOverDoesNotRemoveForTheOther) {
  push("a", "1");
  push("a", "2");
  SerialQueue other = open();
  const auto late = queue_.handle_one([&](const Operation&, std::stop_token) {
    end_time_of("a");
    EXPECT_EQ(handle(other), "a:1") << "done again";
    return Status();
  });
  EXPECT_EQ(told(late), "lost");
  EXPECT_EQ(handle(queue_), "a:2") << "and not lost";
}

TEST_F(RedisSerialQueue, LossIsTold) {
  push("a", "1");
  SerialQueue mine = open({.ttl = 300ms});
  SerialQueue other = open();
  const auto late = mine.handle_one([&](const Operation&, std::stop_token lost) {
    do {  // a renewal may come in between
      end_time_of("a");
    } while (handle(other) != "a:1");
    std::mutex mutex;
    std::condition_variable_any told_so;
    std::unique_lock lock(mutex);
    told_so.wait(lock, lost, [] { return false; });
    return Status();
  });
  EXPECT_EQ(told(late), "lost");
}

TEST_F(RedisSerialQueue, LossIsToldWhileTheServerDoesNotAnswer) {
  push("a", "1");
  SerialQueue mine = open({.ttl = 300ms, .timeout = 60s});
  bool told_while_frozen = false;
  (void)mine.handle_one([&](const Operation&, std::stop_token lost) {
    server().process().freeze();
    std::mutex mutex;
    std::condition_variable_any never;
    std::unique_lock lock(mutex);
    never.wait_for(lock, lost, 30s, [] { return false; });
    told_while_frozen = lost.stop_requested();
    server().process().thaw();
    return Status();
  });
  EXPECT_TRUE(told_while_frozen) << "the renewal waited for longer than the entity was its own";
}

TEST_F(RedisSerialQueue, LongWorkIsRenewed) {
  push("a", "1");
  SerialQueue mine = open({.ttl = 4s});
  SerialQueue other = open();
  const auto until = BootClock::now() + 6s;
  const auto handled = mine.handle_one([&](const Operation&, std::stop_token) {
    while (BootClock::now() < until) {
      EXPECT_EQ(handle(other), "nothing");
      std::this_thread::sleep_for(20ms);
    }
    return Status();
  });
  EXPECT_EQ(told(handled), "a:1");
}

TEST_F(RedisSerialQueue, FailedOperationPausesAndIsSetAside) {
  push("bad", "1");
  push("bad", "2");
  const Status no = fail(ErrorCode::internal, "it does not work");
  EXPECT_EQ(handle(queue_, no, {.attempts = 2, .first_pause = 1h, .longest_pause = 1h}), "failed");
  EXPECT_EQ(handle(queue_), "nothing") << "it pauses";
  server().cli({"ZADD", "leasehold:serial:ready:6:orders", "XX", "1", "bad"});
  EXPECT_EQ(handle(queue_, no, {.attempts = 2}), "set aside");
  push("bad", "3");
  EXPECT_EQ(handle(queue_), "nothing") << "the whole entity is set aside";
  const auto problems = queue_.set_aside();
  ASSERT_TRUE(problems);
  ASSERT_EQ(problems->size(), 1u);
  EXPECT_EQ(problems->front().entity.str(), "bad");
  EXPECT_THAT(problems->front().last_error, HasSubstr("it does not work"));
  EXPECT_EQ(queue_.retry("fine").error().code, ErrorCode::invalid);
  ASSERT_TRUE(queue_.retry("bad"));
  EXPECT_EQ(handle(queue_, no, {.attempts = 1}), "set aside");
  ASSERT_TRUE(queue_.skip("bad"));
  EXPECT_EQ(handle(queue_), "bad:2");
  EXPECT_EQ(handle(queue_), "bad:3");
}

TEST_F(RedisSerialQueue, FailureIsCountedWhateverItSays) {
  for (const std::string& text : leasehold::testing::hostile_failure_texts()) {
    push("bad", "1");
    EXPECT_EQ(handle(queue_, fail(ErrorCode::internal, text), {.attempts = 1}), "set aside");
    const auto problems = queue_.set_aside().value();
    ASSERT_EQ(problems.size(), 1u);
    EXPECT_EQ(problems[0].last_error, kit::storable("internal: " + text));
    ASSERT_TRUE(queue_.skip("bad"));
  }
}

TEST_F(RedisSerialQueue, FailureIsCountedHoweverLongItsPauseIs) {
  const Status no = fail(ErrorCode::internal, "no");
  for (const Millis pause : {Millis::max(), Millis(-1), Millis::min()}) {
    server().cli({"FLUSHALL"});
    push("bad", "1");
    EXPECT_EQ(handle(queue_, no, {.first_pause = pause, .longest_pause = pause}), "failed")
        << pause.count();
    EXPECT_EQ(handle(queue_), pause > Millis(0) ? "nothing" : "bad:1");
  }
}

TEST_F(RedisSerialQueue, QueuesDoNotReachIntoOneAnother) {
  SerialQueue inner = open({}, "orders:x");
  push("x:y", "1");
  ASSERT_TRUE(inner.push("y", "2"));
  EXPECT_EQ(handle(inner), "y:2");
  EXPECT_EQ(handle(queue_), "x:y:1");
}

TEST_F(RedisSerialQueue, WrongInputIsRefused) {
  EXPECT_EQ(SerialQueue::open(server().url(), "").error().code, ErrorCode::invalid);
  EXPECT_EQ(SerialQueue::open("postgres://x/y", "q").error().code, ErrorCode::invalid);
  EXPECT_EQ(SerialQueue::open(server().url(), "q", {.ttl = 1ms}).error().code, ErrorCode::invalid);
  EXPECT_EQ(queue_.push("a\nb", "x").error().code, ErrorCode::invalid);
  EXPECT_EQ(queue_.push("a", std::string(kMaxOperationPayload + 1, 'x')).error().code,
            ErrorCode::invalid);
  EXPECT_EQ(handle(queue_), "nothing");
  const std::string bytes("\0 \xff", 3);
  push("a", bytes);
  EXPECT_EQ(handle(queue_), "a:" + bytes);
}

TEST_F(RedisSerialQueue, QueueOfAnotherFormatIsRefusedAndKept) {
  const std::string ids = "leasehold:serial:ids:6:orders";
  push("a", "1");
  const auto refuses = [&](const std::string& words) {
    const auto pushed = queue_.push("a", "2");
    ASSERT_FALSE(pushed);
    EXPECT_EQ(pushed.error().code, ErrorCode::unsupported);
    EXPECT_THAT(pushed.error().message, HasSubstr(words));
    EXPECT_EQ(queue_.handle_one([](const auto&, auto) { return Status(); }).error().code,
              ErrorCode::unsupported);
    EXPECT_EQ(server().cli({"LLEN", "leasehold:serial:ops:6:orders:a"}), "1");
  };
  server().cli({"HSET", ids, "format", "2"});
  refuses("use a program that is at least as new");
  server().cli({"DEL", ids});
  server().cli({"SET", ids, "1"});  // as the first builds had it
  refuses("to begin afresh");
  server().cli({"FLUSHALL"});
  push("a", "1");
  EXPECT_EQ(handle(queue_), "a:1");
}

TEST_F(RedisSerialQueue, ServerThatWouldForgetOperationsIsRefused) {
  server().cli({"CONFIG", "SET", "maxmemory", "100mb"});
  server().cli({"CONFIG", "SET", "maxmemory-policy", "allkeys-lru"});
  const auto refused = SerialQueue::open(server().url(), "orders");
  server().cli({"CONFIG", "SET", "maxmemory-policy", "noeviction"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unsafe_for_correctness);
  EXPECT_THAT(refused.error().message, HasSubstr("operations that are gone are never done"));
  EXPECT_TRUE(SerialQueue::open(server().url(), "orders"));
}

TEST_F(RedisSerialQueue, WorkersKilledAtAnyPointLeaveNothingUndone) {
  constexpr int kKills = 8;
  const std::vector<std::string> entities = {"a", "b", "c", "d", "e"};
  const TempFolder folder;
  std::vector<std::string> argv = {LEASEHOLD_SERIAL_WORKER, server().url(), "orders", folder.path(),
                                   "3000"};
  argv.insert(argv.end(), entities.begin(), entities.end());
  CrashingWorkers workers(argv, 4);
  int operations = 0;
  for (int i = 0; i < kKills; ++i) {
    for (const std::string& entity : entities) push(entity, std::to_string(operations++));
    ASSERT_TRUE(workers.kill_one()) << "after kill " << i;
  }
  while (queue_.entities().value() > 0) std::this_thread::sleep_for(5ms);

  std::ostringstream overlap;
  overlap << std::ifstream(folder.file("overlap")).rdbuf();
  EXPECT_EQ(overlap.str(), "");
  std::map<std::string, std::vector<int>> firsts;
  std::ifstream done(folder.file("done"));
  std::string entity;
  for (int payload = 0; done >> entity >> payload;) {
    auto& seen = firsts[entity];
    if (seen.empty() || seen.back() != payload) seen.push_back(payload);  // else done again
  }
  ASSERT_EQ(firsts.size(), entities.size());
  for (std::size_t i = 0; i < entities.size(); ++i) {
    std::vector<int> wanted;
    for (int n = static_cast<int>(i); n < operations; n += static_cast<int>(entities.size())) {
      wanted.push_back(n);
    }
    EXPECT_EQ(firsts[entities[i]], wanted) << entities[i];
  }
}

}  // namespace
}  // namespace leasehold::redis
