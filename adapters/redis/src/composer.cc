#include "composer.h"

#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "kit/try.h"

namespace leasehold::redis {
namespace {

template <class Asked, class Read>
Parts::Answer answer_to(Asked& asked, Read read) {
  return [&asked, read](Result<resp::Value> reply) {
    if (!reply) return asked.answer(fail(std::move(reply.error())));
    asked.answer(read(*reply));
  };
}

// `answer_each` is told the reply of a script for many. If the script was refused, nothing was
// done, and each asks on its own.
template <class Asked, class AnswerEach>
Parts::Answer answer_to_many(std::vector<Asked*> many, AnswerEach answer_each) {
  return [many = std::move(many), answer_each](Result<resp::Value> reply) {
    Status known = reply ? check_count(*reply, many.size()) : fail(reply.error());
    if (known) return answer_each(many, *reply);
    if (known.error().code != ErrorCode::outcome_unknown) return;
    for (Asked* asked : many) asked->answer(fail(known.error()));
  };
}

void answer_acquires(const std::vector<AskedAcquire*>& many, const resp::Value& reply,
                     const StoreId& store) {
  for (std::size_t i = 0; i < many.size(); ++i) {
    const auto token = TokenNumber::of(reply.at(i).integer);
    if (!token) continue;
    many[i]->answer(Granted{*token, store, many[i]->call.ttl.length(), /*fresh=*/true});
  }
}

void answer_releases(const std::vector<AskedRelease*>& many, const resp::Value& reply) {
  for (std::size_t i = 0; i < many.size(); ++i) {
    if (reply.at(i).integer == 1) many[i]->answer(ReleaseReply::released);
  }
}

}  // namespace

Result<Composer::Acquire> Composer::script_of(const AcquireCall& call) {
  const auto keys = TRY(LockKeys::usable_of(prefix_, call.lock));
  const auto store = store_.id();
  const std::string channel = call.queue ? subscriber_.channel() : "";
  return Acquire{acquire_call(keys, call, call.queue, channel, store, numbers_.next()), store};
}

Result<AcquireReply> Composer::read(const resp::Value& reply, const AcquireCall& call,
                                    const std::optional<StoreId>& believed) {
  auto answer = TRY(read_acquire(reply, call, believed));
  const auto* granted = std::get_if<Granted>(&answer);
  // An earlier grant may be of another store.
  if (granted && granted->fresh && granted->store != believed) store_.learn(granted->store);
  return answer;
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
      const auto answer_each = [store = *store_](const auto& many, const auto& reply) {
        answer_acquires(many, reply, store);
      };
      parts_.add(std::move(acquire_), answer_to_many(std::move(acquires_), answer_each));
    }
    if (!releases_.empty()) {
      parts_.add(std::move(release_), answer_to_many(std::move(releases_), answer_releases));
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
    return store_ && simple_acquires_ > 1 && is_simple(call) && of_lock_.at(call.lock.str()) == 1;
  }
  bool goes_with_many(const ReleaseCall& call) const {
    return simple_releases_ > 1 && is_simple(call) && of_lock_.at(call.lock.str()) == 1;
  }

  // The script, and with it the number of the call, is made before the call begins: who gives up
  // one that has begun releases it under a higher number.
  void sort(AskedAcquire& asked) {
    if (goes_with_many(asked.call)) return add_to_many(asked);
    auto sent = composer_.script_of(asked.call);
    if (!sent || !asked.begin()) return;
    parts_.add(std::move(sent->script),
               answer_to(asked, [&composer = composer_, &call = asked.call,
                                 believed = sent->store](const resp::Value& reply) {
                 return composer.read(reply, call, believed);
               }));
  }
  void sort(AskedRelease& asked) {
    if (goes_with_many(asked.call)) return add_to_many(asked);
    auto script = composer_.script_of(asked.call);
    if (script && asked.begin()) parts_.add(std::move(*script), answer_to(asked, read_release));
  }
  void sort(AskedRenew& asked) {
    auto script = composer_.script_of(asked.call);
    if (!script || !asked.begin()) return;
    parts_.add(std::move(*script), answer_to(asked, [&call = asked.call](const auto& reply) {
                 return read_renew(reply, call.size());
               }));
  }
  void add_to_many(AskedAcquire& asked) {
    auto keys = LockKeys::usable_of(composer_.prefix_, asked.call.lock);
    if (!keys || !asked.begin()) return;
    add_acquire(acquire_, std::move(*keys), asked.call);
    acquires_.push_back(&asked);
  }
  void add_to_many(AskedRelease& asked) {
    auto keys = LockKeys::usable_of(composer_.prefix_, asked.call.lock);
    if (!keys || !asked.begin()) return;
    add_release(release_, std::move(*keys), asked.call);
    releases_.push_back(&asked);
  }

  Composer& composer_;
  const std::optional<StoreId> store_ = composer_.store_.id();
  const std::int64_t number_ = composer_.numbers_.next();  // of those that go with many
  std::unordered_map<std::string_view, int> of_lock_;
  int simple_acquires_ = 0;
  int simple_releases_ = 0;
  Parts parts_;
  ScriptCall acquire_ = acquire_many_call(store_, number_);
  std::vector<AskedAcquire*> acquires_;
  ScriptCall release_ = release_many_call(number_);
  std::vector<AskedRelease*> releases_;
};

Parts Composer::begin(std::span<const AnyAsked> batch) {
  return Sorting(*this, batch).parts();
}

}  // namespace leasehold::redis
