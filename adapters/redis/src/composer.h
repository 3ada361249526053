// What is sent for the calls that keep leases: one by one, or many together.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "call_numbers.h"
#include "calls.h"
#include "known_store.h"
#include "leasehold/resp/value.h"
#include "store_base/blocking_store.h"
#include "subscriber.h"

namespace leasehold::redis {

// What a batch sends, and for each script what is to be done with its reply, which may answer
// several calls. What is not answered was certainly not done.
struct Parts {
  using Answer = std::function<void(Result<resp::Value>)>;
  std::vector<ScriptCall> scripts;
  std::vector<Answer> answers;

  void add(ScriptCall script, Answer answer) {
    scripts.push_back(std::move(script));
    answers.push_back(std::move(answer));
  }
};

// Thread safe.
class Composer {
 public:
  Composer(std::string prefix, const Subscriber& subscriber, Doubts& doubts)
      : prefix_(std::move(prefix)), subscriber_(subscriber), doubts_(doubts) {}

  // An acquire, and the store that it believes to be there.
  struct Acquire {
    ScriptCall script;
    std::optional<StoreId> store;
  };
  // `invalid` if there can be no such lock.
  [[nodiscard]] Result<Acquire> script_of(const AcquireCall& call);
  // The next one believes what this one was told.
  [[nodiscard]] Result<AcquireReply> read(const resp::Value& reply, const AcquireCall& call,
                                          const std::optional<StoreId>& believed);
  [[nodiscard]] Result<ScriptCall> script_of(const std::vector<RenewCall>& calls);
  [[nodiscard]] Result<ScriptCall> script_of(const ReleaseCall& call);

  // Begins them. The calls of one lock go in their order, unless the server has forgotten a script.
  Parts begin(std::span<const AnyAsked> batch);

 private:
  class Sorting;

  const std::string prefix_;
  const Subscriber& subscriber_;
  Doubts& doubts_;
  CallNumbers numbers_;
  KnownStore store_;
};

}  // namespace leasehold::redis
