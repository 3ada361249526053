// acquire + release on Redis, beside the documented recipe with hiredis: SET NX PX, and a script
// that compares and deletes. And the hand-off among 32 waiters, beside a client that polls.
#include <hiredis/hiredis.h>

#include <memory>
#include <random>
#include <thread>

#include "bench/compare.h"
#include "bench/report.h"
#include "leasehold/client.h"
#include "leasehold/stores.h"
#include "testing/servers/redis.h"

namespace {

using namespace leasehold;
using namespace leasehold::bench;
using namespace std::chrono_literals;

class Recipe {
 public:
  Recipe(std::uint16_t port, std::string key)
      : context_(redisConnect("127.0.0.1", port), &redisFree), key_(std::move(key)) {
    if (!context_ || context_->err != 0) stop("hiredis cannot connect");
    const Reply loaded = command(
        "SCRIPT LOAD %s",
        "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end "
        "return 0");
    sha_ = loaded->str;
  }

  bool try_acquire() {
    value_ = std::to_string(random_()) + std::to_string(random_());
    return command("SET %s %s NX PX 30000", key_.c_str(), value_.c_str())->type != REDIS_REPLY_NIL;
  }
  void release() {
    if (command("EVALSHA %s 1 %s %s", sha_.c_str(), key_.c_str(), value_.c_str())->integer != 1) {
      stop("the recipe lost its lock");
    }
  }
  void pause() { std::this_thread::sleep_for(std::chrono::microseconds(1000 + random_() % 9000)); }

 private:
  using Reply = std::unique_ptr<redisReply, void (*)(void*)>;
  template <class... Words>
  Reply command(const char* format, Words... words) {
    Reply reply(static_cast<redisReply*>(redisCommand(context_.get(), format, words...)),
                &freeReplyObject);
    if (!reply || reply->type == REDIS_REPLY_ERROR) stop("Redis, by hand, failed");
    return reply;
  }

  std::unique_ptr<redisContext, void (*)(redisContext*)> context_;
  const std::string key_;
  std::string sha_;
  std::string value_;
  std::mt19937_64 random_{std::random_device{}()};
};

Side recipe(const testing::RedisServer& server) {
  return {"the recipe with hiredis", [&server](int worker) {
            auto mine = std::make_shared<Recipe>(server.port(), "mine-" + std::to_string(worker));
            return [mine] {
              if (!mine->try_acquire()) stop("the lock is not free");
              mine->release();
              return true;
            };
          }};
}

Side polling(const testing::RedisServer& server) {
  auto baton = std::make_shared<Baton>();
  return {"the recipe, polling with 1 to 10 ms jitter", [&server, baton](int worker) {
            auto mine = std::make_shared<Recipe>(server.port(), "shared");
            return [mine, baton, worker] {
              while (!mine->try_acquire()) mine->pause();
              const bool handed_over = baton->taken_by(worker);
              mine->release();
              return handed_over;
            };
          }};
}

}  // namespace

int main(int argc, char** argv) {
  register_stores();
  const testing::RedisServer server({.durable = false});
  for (const int in_flight : {1, 50}) {
    compare("Redis: acquire + release, in flight: " + std::to_string(in_flight),
            one_client(server.url()), recipe(server), effort_of(argc, argv, in_flight), 0.9);
  }
  compare("Redis: hand-offs, waiters: 32", waiting_clients(server.url()), polling(server),
          effort_of(argc, argv, 33), 1.0);
  return 0;
}
