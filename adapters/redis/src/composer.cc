#include "composer.h"

#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "kit/try.h"

namespace leasehold::redis {
namespace {

Result<AcquireReply> read(const resp::Value& reply, const AcquireCall& call) {
  return read_acquire(reply, call);
}
Result<std::vector<RenewReply>> read(const resp::Value& reply,
                                     const std::vector<RenewCall>& calls) {
  return read_renew(reply, calls.size());
}
Result<ReleaseReply> read(const resp::Value& reply, const ReleaseCall&) {
  return read_release(reply);
}

template <class Asked>
Parts::Answer answer_to(Asked& asked) {
  return [&asked](Result<resp::Value> reply) {
    if (!reply) return asked.answer(fail(std::move(reply.error())));
    asked.answer(read(*reply, asked.call));
  };
}

// `answer_each` is told the reply of a script for many, which has `head` parts before those of
// each. If the script was refused, nothing was done, and each asks on its own.
template <class Asked, class AnswerEach>
Parts::Answer answer_to_many(std::vector<Asked*> many, std::size_t head, AnswerEach answer_each) {
  return [many = std::move(many), head, answer_each](Result<resp::Value> reply) {
    Status known = reply ? check_count(*reply, head + many.size()) : fail(reply.error());
    if (known) return answer_each(many, *reply);
    if (known.error().code != ErrorCode::outcome_unknown) return;
    for (Asked* asked : many) asked->answer(fail(known.error()));
  };
}

void answer_acquires(const std::vector<AskedAcquire*>& many, const resp::Value& reply) {
  const auto store = StoreId::from_hex(reply.at(0).text);
  for (std::size_t i = 0; i < many.size(); ++i) {
    const auto token = TokenNumber::of(reply.at(i + 1).integer);
    if (!store || !token) continue;
    many[i]->answer(Granted{*token, *store, many[i]->call.ttl.length(), /*fresh=*/true});
  }
}

void answer_releases(const std::vector<AskedRelease*>& many, const resp::Value& reply) {
  for (std::size_t i = 0; i < many.size(); ++i) {
    if (reply.at(i).integer == 1) many[i]->answer(ReleaseReply::released);
  }
}

}  // namespace

Result<ScriptCall> Composer::script_of(const AcquireCall& call) {
  const auto keys = TRY(LockKeys::usable_of(prefix_, call.lock));
  return acquire_call(keys, call, call.queue, subscriber_.channel(), new_store_, numbers_.next());
}

Result<ScriptCall> Composer::script_of(const std::vector<RenewCall>& calls) {
  return renew_call(prefix_, calls);
}

Result<ScriptCall> Composer::script_of(const ReleaseCall& call) {
  const auto keys = TRY(LockKeys::usable_of(prefix_, call.lock));
  return release_call(keys, call, doubts_.doubts(call.request), numbers_.next());
}

// Puts each call of a batch where it belongs.
class Composer::Sorting {
 public:
  Sorting(Composer& composer, std::span<const AnyAsked> batch) : composer_(composer) {
    for (const AnyAsked& one : batch) {
      std::visit([this](auto* asked) { count(asked->call); }, one);
    }
    for (const AnyAsked& one : batch) {
      std::visit([this](auto* asked) { sort(*asked); }, one);
    }
  }

  Parts parts() && {
    if (!acquires_.empty()) {
      parts_.add(std::move(acquire_), answer_to_many(std::move(acquires_), 1, answer_acquires));
    }
    if (!releases_.empty()) {
      parts_.add(std::move(release_), answer_to_many(std::move(releases_), 0, answer_releases));
    }
    return std::move(parts_);
  }

 private:
  void count(const AcquireCall& call) {
    ++of_lock_[call.lock.str()];
    if (is_simple(call)) ++simple_acquires_;
  }
  void count(const ReleaseCall& call) {
    ++of_lock_[call.lock.str()];
    if (is_simple(call)) ++simple_releases_;
  }
  void count(const std::vector<RenewCall>&) {}

  static bool is_simple(const AcquireCall& call) { return call.mode.is_exclusive(); }
  bool is_simple(const ReleaseCall& call) const {
    return call.keep_for <= Millis(0) && !composer_.doubts_.doubts(call.request);
  }

  bool goes_with_many(const AcquireCall& call) const {
    return simple_acquires_ > 1 && is_simple(call) && of_lock_.at(call.lock.str()) == 1;
  }
  bool goes_with_many(const ReleaseCall& call) const {
    return simple_releases_ > 1 && is_simple(call) && of_lock_.at(call.lock.str()) == 1;
  }
  static bool goes_with_many(const std::vector<RenewCall>&) { return false; }

  // The script, and with it the number of the call, is made before the call begins: who gives up
  // one that has begun releases it under a higher number.
  void sort(auto& asked) {
    if (goes_with_many(asked.call)) return add_to_many(asked);
    auto script = composer_.script_of(asked.call);
    if (script && asked.begin()) parts_.add(std::move(*script), answer_to(asked));
  }
  void add_to_many(AskedAcquire& asked) {
    const auto keys = LockKeys::usable_of(composer_.prefix_, asked.call.lock);
    const auto number = composer_.numbers_.next();
    if (!keys || !asked.begin()) return;
    add_acquire(acquire_, *keys, asked.call, number);
    acquires_.push_back(&asked);
  }
  void add_to_many(AskedRelease& asked) {
    const auto keys = LockKeys::usable_of(composer_.prefix_, asked.call.lock);
    const auto number = composer_.numbers_.next();
    if (!keys || !asked.begin()) return;
    add_release(release_, *keys, asked.call, number);
    releases_.push_back(&asked);
  }
  void add_to_many(AskedRenew&) {}

  Composer& composer_;
  std::unordered_map<std::string_view, int> of_lock_;
  int simple_acquires_ = 0;
  int simple_releases_ = 0;
  Parts parts_;
  ScriptCall acquire_ = acquire_many_call();
  std::vector<AskedAcquire*> acquires_;
  ScriptCall release_ = release_many_call();
  std::vector<AskedRelease*> releases_;
};

Parts Composer::begin(std::span<const AnyAsked> batch) {
  return Sorting(*this, batch).parts();
}

}  // namespace leasehold::redis
