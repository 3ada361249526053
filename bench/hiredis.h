// Redis by hand: one connection of hiredis, which ends the program when something fails.
#pragma once

#include <hiredis/hiredis.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/report.h"

namespace leasehold::bench {

class Hiredis {
 public:
  using Reply = std::unique_ptr<redisReply, void (*)(void*)>;

  explicit Hiredis(std::uint16_t port) : context_(redisConnect("127.0.0.1", port), &redisFree) {
    if (!context_ || context_->err != 0) stop("hiredis cannot connect");
  }

  template <class... Words>
  Reply command(const char* format, Words... words) {
    return checked(redisCommand(context_.get(), format, words...));
  }
  Reply command(const std::vector<std::string>& words) {
    std::vector<const char*> texts;
    std::vector<std::size_t> sizes;
    for (const std::string& word : words) {
      texts.push_back(word.data());
      sizes.push_back(word.size());
    }
    return checked(redisCommandArgv(context_.get(), static_cast<int>(words.size()), texts.data(),
                                    sizes.data()));
  }
  // For EVALSHA.
  std::string load(const std::string& script) { return command({"SCRIPT", "LOAD", script})->str; }

 private:
  static Reply checked(void* answer) {
    Reply reply(static_cast<redisReply*>(answer), &freeReplyObject);
    if (!reply || reply->type == REDIS_REPLY_ERROR) stop("Redis, by hand, failed");
    return reply;
  }
  std::unique_ptr<redisContext, void (*)(redisContext*)> context_;
};

}  // namespace leasehold::bench
