// A fenced SET on Redis, beside a plain SET through a script with hiredis: what the check costs.
#include <memory>
#include <string>

#include "adapters/redis/rig/server.h"
#include "bench/compare.h"
#include "bench/hiredis.h"
#include "bench/report.h"
#include "leasehold/redis/fence.h"

namespace {

using namespace leasehold;
using namespace leasehold::bench;

std::string key_of(int worker) {
  return "data-" + std::to_string(worker);
}

Token token() {
  return Token::parse("9007199254740993", "00112233445566778899aabbccddeeff/job",
                      "0123456789abcdef0123456789abcdef")
      .value();
}

Side plain(const rig::RedisServer& server) {
  return {"SET through a script with hiredis", [&server](int worker) {
            auto mine = std::make_shared<Hiredis>(server.port());
            const std::string sha = mine->load("return redis.call('SET', KEYS[1], ARGV[1])");
            return [mine, sha, key = key_of(worker)] {
              mine->command({"EVALSHA", sha, "1", key, "value"});
              return true;
            };
          }};
}

// One holder writes again and again: the mark stands, and is compared.
Side fenced(const redis::Resources& resources, bool numbered) {
  return {numbered ? "fenced, with sequence numbers" : "fenced",
          [&resources, numbered](int worker) {
            const std::string name = std::to_string(worker) + (numbered ? "-numbered" : "");
            auto fence = std::make_shared<redis::Fence>(must(resources.fence(name)));
            // Grows from turn to turn, as the mark remembers it.
            auto last = std::make_shared<std::int64_t>(BootClock::now().time_since_epoch().count());
            return [=, holder = token(), key = key_of(worker)] {
              EnterOptions options;
              if (numbered) options.sequence = ++*last;
              must(fence->run(holder, {"SET", key, "value"}, options));
              return true;
            };
          }};
}

}  // namespace

int main(int argc, char** argv) {
  const rig::RedisServer server({.durable = false});
  const auto resources = must(redis::Resources::open(server.url()));
  for (const int in_flight : {1, 50}) {
    const std::string beside = ", in flight: " + std::to_string(in_flight);
    const Effort effort = effort_of(argc, argv, in_flight);
    compare("Redis: fenced SET" + beside, fenced(resources, false), plain(server), effort, 0.8);
    compare("Redis: fenced SET, numbered" + beside, fenced(resources, true), plain(server), effort,
            0.8);
  }
}
