// acquire + release on Redis, beside the same two scripts with hiredis, and beside the documented
// recipe, which has no queue and no token: SET NX PX, and a script that compares and deletes.
// Redlock beside one server. And the hand-off among 32 waiters, beside a client that polls.
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "adapters/redis/rig/server.h"
#include "bench/compare.h"
#include "bench/hiredis.h"
#include "bench/report.h"
#include "calls.h"
#include "leasehold/client.h"
#include "leasehold/stores.h"

namespace {

using namespace leasehold;
using namespace leasehold::bench;
using namespace std::chrono_literals;

// What the adapter sends, and nothing around it.
Side same_scripts(const rig::RedisServer& server) {
  return {"the same scripts with hiredis", [&server](int worker) {
            auto hiredis = std::make_shared<Hiredis>(server.port());
            for (const auto* script :
                 {&redis::Scripts::all().acquire, &redis::Scripts::all().release}) {
              hiredis->load(script->source());
            }
            const auto run = [hiredis](const redis::ScriptCall& call) {
              std::vector<std::string> words = {"EVALSHA", call.script.sha(),
                                                std::to_string(call.keys.size())};
              words.insert(words.end(), call.keys.begin(), call.keys.end());
              words.insert(words.end(), call.arguments.begin(), call.arguments.end());
              return hiredis->command(words);
            };
            const LockName lock = must(LockName::parse("same-" + std::to_string(worker)));
            return [run, lock, keys = redis::LockKeys(lock.str()), store = std::optional<StoreId>(),
                    owner = must(OwnerLabel::parse("me")), ttl = must(Ttl::of(Millis(30'000))),
                    number = std::int64_t{0}]() mutable {
              const RequestId request = RequestId::random(system_random());
              const AcquireCall acquire{lock, request, owner, ttl};
              const auto granted =
                  run(redis::acquire_call(keys, acquire, acquire.queue, "-", store, ++number));
              if (granted->type != REDIS_REPLY_INTEGER) {  // the first one learns the store
                if (granted->element[0]->integer != 1) stop("the lock is not free");
                store = StoreId::from_hex(granted->element[2]->str);
              }
              const ReleaseCall release{lock, request};
              if (run(redis::release_call(keys, release, false, ++number))->integer != 1) {
                stop("the lock was lost");
              }
              return true;
            };
          }};
}

class Recipe {
 public:
  Recipe(std::uint16_t port, std::string key) : redis_(port), key_(std::move(key)) {
    sha_ = redis_.load(
        "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end "
        "return 0");
  }

  void acquire() {
    while (!try_acquire()) pause_before_polling();
  }
  void release() {
    if (redis_.command("EVALSHA %s 1 %s %s", sha_.c_str(), key_.c_str(), value_.c_str())->integer !=
        1) {
      stop("the recipe lost its lock");
    }
  }

 private:
  bool try_acquire() {
    value_ = std::to_string(random_()) + std::to_string(random_());
    return redis_.command("SET %s %s NX PX 30000", key_.c_str(), value_.c_str())->type !=
           REDIS_REPLY_NIL;
  }

  Hiredis redis_;
  const std::string key_;
  std::string sha_;
  std::string value_;
  std::mt19937_64 random_{std::random_device{}()};
};

Side recipe(const rig::RedisServer& server) {
  return alone("the recipe with hiredis", [&server](int worker) {
    return std::make_shared<Recipe>(server.port(), "mine-" + std::to_string(worker));
  });
}

Side polling(const rig::RedisServer& server) {
  return handing_over("the recipe, polling with 1 to 10 ms jitter",
                      [&server](int) { return std::make_shared<Recipe>(server.port(), "shared"); });
}

}  // namespace

int main(int argc, char** argv) {
  register_stores();
  const rig::RedisServer::Options without_disk{.durable = false};
  const rig::RedisServer server(without_disk);
  for (const int in_flight : {1, 50}) {
    compare("Redis: acquire + release, in flight: " + std::to_string(in_flight),
            one_client(server.url()), same_scripts(server), effort_of(argc, argv, in_flight), 0.9);
    compare("Redis: the same, beside the recipe, in flight: " + std::to_string(in_flight),
            one_client(server.url()), recipe(server), effort_of(argc, argv, in_flight),
            in_flight == 1 ? 0.9 : 1.5);
  }
  std::vector<std::unique_ptr<rig::RedisServer>> nodes(3);
  for (auto& node : nodes) node = std::make_unique<rig::RedisServer>(without_disk);
  Side one_server = one_client(server.url());
  one_server.name = "one server";
  compare("Redlock, 3 nodes: acquire + release, in flight: 1",
          one_client("redlock://" + rig::addresses_of(nodes)), one_server,
          effort_of(argc, argv, 1));
  compare("Redis: hand-offs, waiters: 32", waiting_clients(server.url()), polling(server),
          effort_of(argc, argv, 33), 1.0);
  return 0;
}
