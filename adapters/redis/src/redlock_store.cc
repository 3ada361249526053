#include "redlock_store.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <optional>
#include <stop_token>

#include "introduction.h"
#include "kit/threads/thread_safety.h"
#include "kit/try.h"
#include "leasehold/random.h"
#include "store_base/renew_replies.h"
#include "tally.h"
#include "used_locks.h"

namespace leasehold::redis {

using resp::Value;

namespace {

constexpr auto kOthersMayTake = std::chrono::milliseconds(900);

// As the documented algorithm has it: clocks may differ by one percent, expiry by two milliseconds.
Millis drift(Millis ttl) {
  return ttl / 100 + Millis(2);
}

// A node must not take the time that the lease is worth.
Millis node_time(Millis configured, Millis ttl) {
  return std::min(configured, ttl / 4);
}

bool is_one(const Value& value) {
  return value.integer == 1;
}

Error too_few(const Answers& answers, std::size_t answered, bool unknown) {
  return Error(unknown ? ErrorCode::outcome_unknown : ErrorCode::unavailable,
               "only " + std::to_string(answered) + " of " + std::to_string(answers.size()) +
                   " nodes answered",
               complaints(answers));
}

struct Meeting {
  Status can_vote;  // ever; if not, that is a mistake in the URL, and no lost vote
  Status votes;     // now
};

Meeting meet(Server& server, const StoreId& new_store, const CallContext& context) {
  const auto introduction = learn(server, context);
  if (!introduction) return {{}, fail(introduction.error())};
  if (auto ok = check_usable(*introduction, server.address()); !ok) return {ok, ok};
  const auto writes = check_writes(server, new_store, context);
  const bool never = !writes && writes.error().code == ErrorCode::unsupported;
  return {never ? writes : Status(), writes};
}

Error not_waited_for(const Server& server) {
  return error_at(server.address(),
                  Error(ErrorCode::unavailable, "it had not answered when the others were done"));
}

// How many meetings have ended, and with how many votes. Thread safe.
class Turnout {
 public:
  void add(bool votes) {
    MutexLock lock(mutex_);
    ++ended_;
    if (votes) ++votes_;
    changed_.notify_all();
  }
  // Until so many have voted, or no longer can.
  void await(std::size_t votes, std::size_t all) {
    MutexLock lock(mutex_);
    changed_.wait(mutex_, [&]() LEASEHOLD_REQUIRES(mutex_) {
      const std::size_t refusals = ended_ - votes_;
      return votes_ >= votes || refusals > all - votes;
    });
  }
  void await_all(std::size_t all, Millis most) {
    MutexLock lock(mutex_);
    changed_.wait_for(mutex_, most, [&]() LEASEHOLD_REQUIRES(mutex_) { return ended_ == all; });
  }

 private:
  Mutex mutex_;
  ConditionVariable changed_;
  std::size_t ended_ LEASEHOLD_GUARDED_BY(mutex_) = 0;
  std::size_t votes_ LEASEHOLD_GUARDED_BY(mutex_) = 0;
};

Result<Answers> answers_of(std::vector<std::future<Meeting>> meetings) {
  Answers answers(meetings.size());
  Status usable;
  for (std::size_t node = 0; node < meetings.size(); ++node) {
    const Meeting meeting = meetings[node].get();
    if (!meeting.can_vote && usable) usable = meeting.can_vote;
    if (meeting.votes) {
      answers[node].kind = Answer::Kind::given;
    } else {
      answers[node].error = meeting.votes.error();
    }
  }
  if (!usable) return fail(usable.error().code, sentence(usable.error()));
  return answers;
}

// All at once. When there is a majority, or can be none, the others get no more than
// kOthersMayTake.
Result<Answers> meet_all(Quorum& quorum, const CallContext& context) {
  const StoreId new_store = StoreId::random(system_random());
  Turnout turnout;
  std::stop_source enough;
  const std::stop_callback cancelled(context.stop, [&] { enough.request_stop(); });
  const CallContext each{context.deadline, enough.get_token()};
  std::vector<std::future<Meeting>> meetings;
  // Also if there is no thread for the next one.
  struct AtTheEnd {
    std::stop_source& stop;
    ~AtTheEnd() { stop.request_stop(); }
  } const at_the_end{enough};
  for (std::size_t node = 0; node < quorum.size(); ++node) {
    meetings.push_back(std::async(std::launch::async, [&, node] {
      Meeting meeting = meet(quorum.server(node), new_store, each);
      const bool was_left = !meeting.votes && meeting.votes.error().code == ErrorCode::cancelled &&
                            !context.stop.stop_requested();
      if (was_left) meeting.votes = fail(not_waited_for(quorum.server(node)));
      turnout.add(meeting.votes.has_value());
      return meeting;
    }));
  }
  turnout.await(quorum.majority(), quorum.size());
  turnout.await_all(quorum.size(), kOthersMayTake);
  enough.request_stop();
  return answers_of(std::move(meetings));
}

}  // namespace

StoreTraits redlock_traits(const Options& options) {
  return {.address = options.address,
          .guarantee = Guarantee::efficiency,
          .why =
              "Redlock has no numbers that grow with every grant, and depends on clocks that "
              "run alike and on nodes that do not forget",
          .instead =
              "Protect the resource by a claim (write your request id into it, commit only if it "
              "is still there), or use a store with tokens (etcd, ZooKeeper, PostgreSQL).",
          .queues = false,
          .keeps_after_release = true,
          .why_no_modes =
              "a majority of independent servers has no common queue, so nobody could say who "
              "comes before whom"};
}

Result<std::unique_ptr<Store>> RedlockStore::open(Options options, const CallContext& context) {
  auto quorum = TRY(Quorum::make(options));
  StoreTraits traits = redlock_traits(options);
  const auto refuse = [&](Error error) {
    quorum->close();
    if (context.stop.stop_requested()) error.code = ErrorCode::cancelled;
    return fail(error_at(traits.address, std::move(error)));
  };
  const auto answers = meet_all(*quorum, context);
  if (!answers) return refuse(answers.error());
  const std::size_t usable = count(*answers, [](const Value&) { return true; }).yes;
  if (usable < quorum->majority()) return refuse(too_few(*answers, usable, false));
  return std::unique_ptr<Store>(
      new RedlockStore(std::move(options), std::move(quorum), std::move(traits)));
}

RedlockStore::RedlockStore(Options options, std::unique_ptr<Quorum> quorum, StoreTraits traits)
    : options_(std::move(options)),
      traits_(std::move(traits)),
      quorum_(std::move(quorum)),
      leftovers_(*quorum_) {}

void RedlockStore::do_close() {
  quorum_->close();
  leftovers_.close();
}

// ---- acquire -------------------------------------------------------------------------------

Result<AcquireReply> RedlockStore::do_acquire(const AcquireCall& call, const CallContext& context) {
  const auto keys = TRY(LockKeys::usable_of(options_.prefix, call.lock));
  const BootTime started = BootClock::now();
  const Millis ttl = call.ttl.length();
  const auto believed = store_.id();
  const auto question = Question::of(
      acquire_call(keys, call, /*queue=*/false, kNoChannel, believed, numbers_.next()));
  const Answers votes = quorum_->ask(question, context, node_time(options_.node_timeout, ttl));

  std::vector<TokenNumber> tokens;
  std::vector<StoreId> stores;
  std::vector<std::string> others;
  bool fresh = true;
  const Tally tally = count(votes, [&](const Value& value) {
    const auto reply = read_acquire(value, call, believed);
    if (!reply) return false;
    if (const auto* granted = std::get_if<Granted>(&*reply)) {
      tokens.push_back(granted->token);
      stores.push_back(granted->store);
      fresh = fresh && granted->fresh;
      return true;
    }
    if (const auto* busy = std::get_if<Busy>(&*reply)) others.push_back(busy->ahead);
    return false;
  });
  if (tally.unknown > 0) doubts().doubt(call.request);

  const Millis validity = ttl - drift(ttl);
  const bool in_time = BootClock::now() < started + validity;
  if (tally.yes >= quorum_->majority() && in_time) {
    const StoreId store = *most_common(stores);
    if (fresh && store != believed) store_.learn(store);
    return Granted{*std::max_element(tokens.begin(), tokens.end()), store, validity, fresh};
  }
  // Votes that may be there are left: the same request may find them again, or release them.
  if (tally.yes + tally.unknown >= quorum_->majority()) {
    return fail(too_few(votes, tally.answered(), true));
  }
  take_back(keys, call, votes, context);
  if (tally.answered() >= quorum_->majority()) return Busy{most_common(others).value_or("")};
  return fail(too_few(votes, tally.answered(), false));
}

// Without a majority: nobody must wait for what this request got of the votes.
void RedlockStore::take_back(const LockKeys& keys, const AcquireCall& call, const Answers& votes,
                             const CallContext& context) {
  const ReleaseCall release{call.lock, call.request};
  const std::int64_t number = numbers_.next();
  std::vector<std::size_t> sure;
  for (std::size_t node = 0; node < votes.size(); ++node) {
    if (votes[node].kind == Answer::Kind::unknown) {
      leftovers_.add(node, Question::of(release_call(keys, release, true, number)));
    } else if (votes[node].kind == Answer::Kind::given && is_grant(votes[node].value)) {
      sure.push_back(node);
    }
  }
  if (sure.empty()) return;
  const auto question = Question::of(release_call(keys, release, false, number));
  const Answers answers = quorum_->ask(question, context, options_.node_timeout, sure);
  for (const std::size_t node : sure) {
    if (answers[node].kind != Answer::Kind::given) leftovers_.add(node, question);
  }
}

// ---- renew and release ---------------------------------------------------------------------

Result<std::vector<RenewReply>> RedlockStore::do_renew(const std::vector<RenewCall>& calls,
                                                       const CallContext& context) {
  std::vector<RenewReply> replies;
  const Millis shortest =
      std::min_element(calls.begin(), calls.end(), [](const auto& a, const auto& b) {
        return a.ttl < b.ttl;
      })->ttl.length();
  const Answers answers = quorum_->ask(Question::of(renew_call(options_.prefix, calls)), context,
                                       node_time(options_.node_timeout, shortest));
  std::optional<Error> doubt;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const Tally tally = count(answers, [&](const Value& it) { return is_one(it.at(i)); });
    const bool renewed = tally.yes >= quorum_->majority();
    const bool may_live = tally.yes + tally.unanswered() >= quorum_->majority();
    if (!renewed && may_live) {
      doubt = too_few(answers, tally.answered(), true);
      replies.push_back(RenewReply::unknown);
      continue;
    }
    replies.push_back(renewed ? RenewReply::renewed : RenewReply::gone);
  }
  return unless_all_unknown(std::move(replies), std::move(doubt));
}

// What did not answer is asked again in the background.
void RedlockStore::insist(const Question& question, const Answers& answers) {
  for (std::size_t node = 0; node < answers.size(); ++node) {
    if (answers[node].kind != Answer::Kind::given) leftovers_.add(node, question);
  }
}

Result<ReleaseReply> RedlockStore::release_all(const Question& question,
                                               const CallContext& context) {
  const Answers answers = quorum_->ask(question, context, options_.node_timeout);
  const Tally tally = count(answers, is_one);
  const bool released = tally.yes >= quorum_->majority();
  const bool may_be = tally.yes + tally.unanswered() >= quorum_->majority();
  if (!released && may_be) {
    return fail(too_few(answers, tally.answered(), tally.yes + tally.unknown > 0));
  }
  insist(question, answers);
  return released ? ReleaseReply::released : ReleaseReply::not_held;
}

Result<ReleaseReply> RedlockStore::do_release(const ReleaseCall& call, const CallContext& context) {
  const auto keys = TRY(LockKeys::usable_of(options_.prefix, call.lock));
  return release_all(
      Question::of(release_call(keys, call, doubts().doubts(call.request), numbers_.next())),
      context);
}

Result<ReleaseReply> RedlockStore::do_force_release(const ForceReleaseCall& call,
                                                    const CallContext& context) {
  const auto keys = TRY(LockKeys::usable_of(options_.prefix, call.lock));
  return release_all(Question::of(force_release_call(keys, call.seen)), context);
}

// ---- looking -------------------------------------------------------------------------------

Result<LockStatus> RedlockStore::do_inspect(const InspectCall& call, const CallContext& context) {
  const LockName& lock = call.lock;
  const auto keys = TRY(LockKeys::usable_of(options_.prefix, lock));
  const Answers answers =
      quorum_->ask(Question::of(inspect_call(keys)), context, options_.node_timeout);
  LockStatus whole{.lock = lock,
                   .store = {},
                   .last_token = {},
                   .holders = {},
                   .waiters = {},
                   .known_as = keys.lock};
  std::map<RequestId, std::vector<LockStatus::Holder>> holders;
  std::vector<StoreId> stores;
  const Tally tally = count(answers, [&](const Value& value) {
    const auto seen = read_status(value, lock, keys);
    if (!seen) return false;
    if (seen->store) stores.push_back(*seen->store);
    if (seen->last_token) whole.last_token = std::max(whole.last_token, seen->last_token);
    for (const auto& holder : seen->holders) holders[holder.request].push_back(holder);
    return true;
  });
  if (tally.yes < quorum_->majority()) return fail(too_few(answers, tally.yes, false));
  whole.store = most_common(stores);
  for (auto& [request, votes] : holders) {
    if (votes.size() < quorum_->majority()) continue;
    std::sort(votes.begin(), votes.end(),
              [](const auto& a, const auto& b) { return a.remaining > b.remaining; });
    // It lasts as long as a majority does.
    whole.holders = {votes[quorum_->majority() - 1]};
  }
  return whole;
}

Result<std::set<LockName>> RedlockStore::used_locks(const CallContext& context) {
  std::set<LockName> all;
  Answers answers(quorum_->size());
  std::size_t answered = 0;
  for (std::size_t node = 0; node < quorum_->size(); ++node) {
    const auto names = find_used_locks(quorum_->server(node), options_.prefix, context);
    if (!names) {
      answers[node].error = names.error();
      continue;
    }
    ++answered;
    answers[node].kind = Answer::Kind::given;
    all.insert(names->begin(), names->end());
  }
  if (answered < quorum_->majority()) return fail(too_few(answers, answered, false));
  return all;
}

Result<std::vector<LockStatus>> RedlockStore::do_list(const CallContext& context) {
  const auto names = TRY(used_locks(context));
  std::vector<LockStatus> locks;
  for (const LockName& name : names) {
    auto status = TRY(do_inspect({name}, context));
    if (!status.holders.empty()) locks.push_back(std::move(status));
  }
  return locks;
}

// ---- store id and once ---------------------------------------------------------------------

Result<StoreId> RedlockStore::do_rotate_store_id(const CallContext& context) {
  const StoreId id = StoreId::random(system_random());
  const Answers answers =
      quorum_->ask(Question::of(rotate_call(id)), context, options_.node_timeout);
  const Tally tally = count(answers, [](const Value&) { return true; });
  if (tally.yes >= quorum_->majority()) return id;
  return fail(too_few(answers, tally.yes, tally.yes + tally.unknown > 0));
}

Result<std::optional<OnceRecord>> RedlockStore::do_recall(const RecallCall& call,
                                                          const CallContext& context) {
  const auto keys = TRY(LockKeys::usable_of(options_.prefix, call.lock));
  const Answers answers =
      quorum_->ask(Question{recall_command(keys, call.key)}, context, options_.node_timeout);
  std::vector<std::pair<std::string, std::string>> records;
  const Tally tally = count(answers, [&](const Value& value) {
    const auto found = read_recall(value);
    if (found && *found) records.emplace_back((*found)->parameters, (*found)->result);
    return found.has_value();
  });
  if (tally.yes < quorum_->majority()) return fail(too_few(answers, tally.yes, false));
  const auto most = most_common(records);
  if (!most) return std::nullopt;
  return OnceRecord{most->first, most->second};
}

Status RedlockStore::do_record(const RecordCall& call, const CallContext& context) {
  const auto keys = TRY(LockKeys::usable_of(options_.prefix, call.lock));
  const Answers answers =
      quorum_->ask(Question::of(record_call(keys, call.request, call.key, call.what)), context,
                   options_.node_timeout);
  const Tally tally = count(answers, is_one);
  if (tally.yes >= quorum_->majority()) return {};
  if (tally.yes + tally.unanswered() >= quorum_->majority()) {
    return fail(too_few(answers, tally.answered(), tally.yes + tally.unknown > 0));
  }
  return fail(not_recorded(call.lock));
}

// One node is enough for recall() to find it.
Result<std::vector<std::string>> RedlockStore::do_list_keys(const ListKeysCall& call,
                                                            const CallContext& context) {
  const auto keys = TRY(LockKeys::usable_of(options_.prefix, call.lock));
  const Answers answers =
      quorum_->ask(Question{list_keys_command(keys)}, context, options_.node_timeout);
  std::set<std::string> all;
  const Tally tally = count(answers, [&](const Value& value) {
    const auto some = read_keys(value);
    if (some) all.insert(some->begin(), some->end());
    return some.has_value();
  });
  if (tally.yes < quorum_->majority()) return fail(too_few(answers, tally.yes, false));
  return std::vector<std::string>(all.begin(), all.end());
}

Result<bool> RedlockStore::do_forget(const ForgetCall& call, const CallContext& context) {
  const auto keys = TRY(LockKeys::usable_of(options_.prefix, call.lock));
  const Question question{forget_command(keys, call.key)};
  const Answers answers = quorum_->ask(question, context, options_.node_timeout);
  const Tally tally = count(answers, is_one);
  if (tally.answered() < quorum_->majority()) {
    return fail(too_few(answers, tally.answered(), tally.yes + tally.unknown > 0));
  }
  insist(question, answers);
  return tally.yes > 0;
}

Result<std::unique_ptr<Store>> open_redlock(const Url& url, const OpenOptions& opening) {
  auto options = TRY(redlock_options(url));
  return RedlockStore::open(std::move(options), opening.begin());
}

}  // namespace leasehold::redis
