// A fenced SET on Redis, beside a plain SET through a script with hiredis: what the check costs.
#include <hiredis/hiredis.h>

#include <memory>
#include <string>

#include "bench/compare.h"
#include "bench/report.h"
#include "leasehold/redis/fence.h"
#include "rig/redis.h"

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

class Hiredis {
 public:
  explicit Hiredis(std::uint16_t port)
      : context_(redisConnect("127.0.0.1", port), &redisFree),
        sha_(command({"SCRIPT", "LOAD", "return redis.call('SET', KEYS[1], ARGV[1])"})) {}

  void set(const std::string& key, const std::string& value) {
    if (command({"EVALSHA", sha_, "1", key, value}) != "OK") stop("SET through a script failed");
  }

 private:
  std::string command(const std::vector<std::string>& words) {
    std::vector<const char*> texts;
    std::vector<std::size_t> sizes;
    for (const std::string& word : words) {
      texts.push_back(word.data());
      sizes.push_back(word.size());
    }
    const std::unique_ptr<redisReply, void (*)(void*)> reply(
        static_cast<redisReply*>(redisCommandArgv(context_.get(), static_cast<int>(words.size()),
                                                  texts.data(), sizes.data())),
        &freeReplyObject);
    if (!reply || reply->type == REDIS_REPLY_ERROR) stop("Redis, by hand, failed");
    return reply->str;
  }

  std::unique_ptr<redisContext, void (*)(redisContext*)> context_;
  const std::string sha_;
};

Side plain(const rig::RedisServer& server) {
  return {"SET through a script with hiredis", [&server](int worker) {
            auto mine = std::make_shared<Hiredis>(server.port());
            return [mine, key = key_of(worker)] {
              mine->set(key, "value");
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
