#include "leasehold/relay.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <set>

#include "kit/threads/thread_safety.h"
#include "kit/try.h"

namespace leasehold {
namespace {

constexpr std::size_t kBatch = 100;
constexpr int kFailedRetries = 10;  // between two batches, if they are quick
constexpr Millis kRetriesTake = std::chrono::seconds(1);
constexpr int kMostPauseDoublings = 16;
constexpr int kLeftToBegin = 6;       // of a lease, this part
constexpr std::int64_t kMany = 1000;  // forgotten at once: there may be more
constexpr Millis kForgetEvery = std::chrono::minutes(1);

class Relay {
 public:
  Relay(Outbox& outbox, OutboxTarget& target, const FencedLease& lease, const RelayOptions& options)
      : outbox_(outbox), target_(target), lease_(lease), options_(options) {}

  Result<RelayReport> run();

 private:
  struct Pause {
    BootTime until;
    int failures = 0;
    std::int64_t id = 0;  // the message that failed, the first of its key
  };

  Status round();
  Status first_tries();
  Status try_each(const std::vector<OutboxMessage>& batch);
  bool searches();
  void end_search();
  Status retries();
  Status retry(const std::string& key);
  Status handle(const OutboxMessage& message);
  Status delivered(const OutboxMessage& message);
  Status failed(const OutboxMessage& message, const Error& error);
  void pause(const OutboxMessage& message);
  void resume(const std::string& key);
  Status forget();
  void wait();
  bool gives_up() const;
  std::vector<std::string> failing_keys_ahead() const;
  std::vector<std::string> due_keys() const;
  void tell(RelayEvent::Kind kind, const OutboxMessage& message, const Error* error = nullptr) {
    if (options_.tell) options_.tell({kind, message, error});
  }

  Outbox& outbox_;
  OutboxTarget& target_;
  const FencedLease& lease_;
  const RelayOptions& options_;
  std::map<std::string, Pause> pauses_;  // by key; stays until a delivery of the key succeeds
  bool idle_ = false;                    // the last round found nothing to do yet
  bool only_failing_ = false;            // the last search found nothing but keys that have failed

  // One search goes through all that waits, a batch in each round.
  std::int64_t after_ = 0;  // the id up to which it has come
  bool found_ = false;      // something, so far
  bool again_ = false;      // a key has recovered since it began, and what is behind may be sent
  BootTime search_at_ = BootClock::now();  // when the next begins
  BootTime progress_at_ = BootClock::now();
  std::optional<BootTime> forget_at_;
  RelayReport report_;
};

Result<RelayReport> Relay::run() {
  TRY(outbox_.enter(lease_.token()));
  for (;;) {
    if (options_.stop.stop_requested()) return report_;
    TRY(lease_.require());
    TRY(round());
    TRY(forget());
    report_.emptied = idle_ && pauses_.empty();
    if (options_.until_empty && (report_.emptied || gives_up())) return report_;
    if (idle_) wait();
  }
}

// Not by whether it is idle: with many keys, or slow failures, one of them is always due.
bool Relay::gives_up() const {
  return options_.give_up_after && only_failing_ &&
         BootClock::now() - progress_at_ >= detail::within_reason(*options_.give_up_after);
}

// Those whose message the search has not come by yet; the others are left out by that message.
std::vector<std::string> Relay::failing_keys_ahead() const {
  std::vector<std::string> keys;
  for (const auto& [key, pause] : pauses_) {
    if (pause.id > after_) keys.push_back(key);
  }
  return keys;
}

// The keys whose pause is over, the one that waited longest first.
std::vector<std::string> Relay::due_keys() const {
  std::vector<std::map<std::string, Pause>::const_iterator> due;
  const BootTime now = BootClock::now();
  for (auto it = pauses_.begin(); it != pauses_.end(); ++it) {
    if (it->second.until <= now) due.push_back(it);
  }
  std::sort(due.begin(), due.end(),
            [](const auto& a, const auto& b) { return a->second.until < b->second.until; });
  std::vector<std::string> keys;
  for (const auto& it : due) keys.push_back(it->first);
  return keys;
}

// Keys that fail are asked for by themselves, and a few at a time: however many they are, and
// however slowly they fail, the others come in between. Those that succeed again are not few at a
// time: after an outage they may be all that there are.
Status Relay::round() {
  idle_ = true;
  TRY(first_tries());
  return retries();
}

// A search passes by every key that fails. So one that finds nothing else is not begun again
// between any two retries: with many such keys their number would count twice.
bool Relay::searches() {
  const bool goes_on = after_ > 0;
  if (!goes_on && !pauses_.empty() && BootClock::now() < search_at_) return false;
  if (!goes_on) again_ = false;
  return true;
}

void Relay::end_search() {
  only_failing_ = !found_;
  idle_ = idle_ && !found_;
  search_at_ = BootClock::now();
  if (!found_ && !again_) search_at_ += detail::within_reason(options_.poll);
  after_ = 0;
  found_ = false;
}

Status Relay::first_tries() {
  if (!searches()) return {};
  auto batch = TRY(outbox_.next(static_cast<int>(kBatch), failing_keys_ahead(), after_));
  const bool is_last = batch.size() < kBatch;
  if (!batch.empty()) {
    idle_ = false;
    only_failing_ = false;
    found_ = true;
    after_ = batch.back().id;
    TRY(try_each(batch));
  }
  if (is_last) end_search();
  return {};
}

Status Relay::try_each(const std::vector<OutboxMessage>& batch) {
  // A commit of this relay's own: what it has read is on the disk then, also if those who put it
  // there did not wait for that.
  TRY(outbox_.enter(lease_.token()));
  std::set<std::string> stopped;
  for (const OutboxMessage& message : batch) {
    if (options_.stop.stop_requested()) return {};
    if (stopped.contains(message.key)) continue;
    const auto before = report_.delivered;
    TRY(handle(message));
    if (report_.delivered == before) stopped.insert(message.key);
  }
  return {};
}

Status Relay::retries() {
  const BootTime until = BootClock::now() + kRetriesTake;
  int failed = 0;
  for (const std::string& key : due_keys()) {
    if (options_.stop.stop_requested()) return {};
    idle_ = false;
    TRY(retry(key));
    if (pauses_.contains(key)) ++failed;
    if (failed == kFailedRetries || BootClock::now() >= until) return {};
  }
  if (again_) search_at_ = BootClock::now();
  return {};
}

Status Relay::retry(const std::string& key) {
  auto message = TRY(outbox_.find(pauses_.at(key).id));
  if (message) return handle(*message);
  resume(key);  // somebody else has removed it: the key starts over
  return {};
}

Status Relay::handle(const OutboxMessage& message) {
  // What would be told to stop at once is not begun.
  TRY(lease_.require(lease_.ttl() / kLeftToBegin));
  const Delivery delivery{lease_.token(), {BootClock::now() + options_.timeout, lease_.lost()}};
  const auto done = target_.deliver(message, delivery);
  if (done) return delivered(message);
  // Whatever the target says, it may be because it was told to stop.
  if (options_.stop.stop_requested()) return {};
  TRY(lease_.require());
  return failed(message, done.error());
}

Status Relay::delivered(const OutboxMessage& message) {
  TRY(outbox_.delivered(lease_.token(), message.id));
  resume(message.key);
  progress_at_ = BootClock::now();
  ++report_.delivered;
  tell(RelayEvent::Kind::delivered, message);
  return {};
}

Status Relay::failed(const OutboxMessage& message, const Error& error) {
  pause(message);
  if (error.code == ErrorCode::unavailable || error.code == ErrorCode::outcome_unknown) {
    tell(RelayEvent::Kind::not_now, message, &error);
    return {};
  }
  const std::string why = sentence(error);
  auto set_aside = TRY(outbox_.failed(lease_.token(), message.id, why, options_.attempts));
  ++report_.failed;
  if (set_aside) {
    pauses_.erase(message.key);
    progress_at_ = BootClock::now();
    ++report_.set_aside;
  }
  tell(set_aside ? RelayEvent::Kind::set_aside : RelayEvent::Kind::failed, message, &error);
  return {};
}

void Relay::resume(const std::string& key) {
  if (pauses_.erase(key) > 0) again_ = true;
}

void Relay::pause(const OutboxMessage& message) {
  Pause& pause = pauses_[message.key];
  pause.id = message.id;
  const int doublings = std::min(pause.failures++, kMostPauseDoublings);
  const Millis first = detail::within_reason(options_.first_pause);
  pause.until = BootClock::now() + std::min(first * (1 << doublings), options_.longest_pause);
}

Status Relay::forget() {
  const BootTime now = BootClock::now();
  if (forget_at_ && now < *forget_at_) return {};
  auto gone = TRY(outbox_.forget(lease_.token(), options_.keep));
  if (gone < kMany) forget_at_ = now + kForgetEvery;
  return {};
}

// Until the next look, the end of a pause, the loss of the lease or the order to stop.
void Relay::wait() {
  const BootTime now = BootClock::now();
  BootClock::duration span = search_at_ - now;
  for (const auto& [key, pause] : pauses_) {
    if (pause.until > now) span = std::min(span, pause.until - now);
  }
  Mutex mutex;
  ConditionVariable over;
  std::stop_source either;
  const std::stop_callback on_stop(options_.stop, [&] { either.request_stop(); });
  const std::stop_callback on_loss(lease_.lost(), [&] { either.request_stop(); });
  MutexLock lock(mutex);
  over.wait_for(mutex, either.get_token(), span, [] { return false; });
}

}  // namespace

Result<RelayReport> relay(Outbox& outbox, OutboxTarget& target, const FencedLease& lease,
                          const RelayOptions& options) {
  return Relay(outbox, target, lease, options).run();
}

}  // namespace leasehold
