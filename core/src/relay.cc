#include "leasehold/relay.h"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>

namespace leasehold {
namespace {

constexpr int kBatch = 100;
constexpr std::size_t kMostPaused = 1000;
constexpr int kMostDoublings = 16;
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
  };

  Status round();
  Status handle(const OutboxMessage& message);
  Status delivered(const OutboxMessage& message);
  Status failed(const OutboxMessage& message, const Error& error);
  void pause(const std::string& key);
  Status forget();
  void wait();
  std::vector<std::string> paused_keys() const;
  void tell(RelayEvent::Kind kind, const OutboxMessage& message, const Error* error = nullptr) {
    if (options_.tell) options_.tell({kind, message, error});
  }

  Outbox& outbox_;
  OutboxTarget& target_;
  const FencedLease& lease_;
  const RelayOptions& options_;
  std::map<std::string, Pause> pauses_;  // by key; stays until a delivery of the key succeeds
  bool idle_ = false;                    // the last round found nothing
  bool left_out_ = false;                // and did not ask for keys that pause
  std::optional<BootTime> forget_at_;
  RelayReport report_;
};

Result<RelayReport> Relay::run() {
  if (auto ok = outbox_.enter(lease_.token()); !ok) return fail(std::move(ok.error()));
  for (;;) {
    if (options_.stop.stop_requested()) return report_;
    if (auto ok = lease_.require(); !ok) return fail(std::move(ok.error()));
    if (auto ok = round(); !ok) return fail(std::move(ok.error()));
    if (auto ok = forget(); !ok) return fail(std::move(ok.error()));
    if (!idle_) continue;
    if (options_.until_empty && !left_out_) return report_;
    wait();
  }
}

std::vector<std::string> Relay::paused_keys() const {
  std::vector<std::string> keys;
  const BootTime now = BootClock::now();
  for (const auto& [key, pause] : pauses_) {
    if (pause.until > now) keys.push_back(key);
  }
  return keys;
}

Status Relay::round() {
  const auto paused = paused_keys();
  left_out_ = !paused.empty();
  idle_ = paused.size() >= kMostPaused;
  if (idle_) return {};
  auto batch = outbox_.next(kBatch, paused);
  if (!batch) return fail(std::move(batch.error()));
  idle_ = batch->empty();
  if (idle_) return {};
  // A commit of this relay's own: what it has read is on the disk then, also if those who put it
  // there did not wait for that.
  if (auto ok = outbox_.enter(lease_.token()); !ok) return ok;
  std::set<std::string> stopped;
  for (const OutboxMessage& message : *batch) {
    if (options_.stop.stop_requested()) return {};
    if (stopped.contains(message.key)) continue;
    const auto before = report_.delivered;
    if (auto ok = handle(message); !ok) return ok;
    if (report_.delivered == before) stopped.insert(message.key);
  }
  return {};
}

Status Relay::handle(const OutboxMessage& message) {
  if (auto ok = lease_.require(); !ok) return ok;
  const Delivery delivery{lease_.token(), {BootClock::now() + options_.timeout, lease_.lost()}};
  const auto done = target_.deliver(message, delivery);
  if (done) return delivered(message);
  // Whatever the target says, it may be because it was told to stop.
  if (options_.stop.stop_requested()) return {};
  if (auto ok = lease_.require(); !ok) return ok;
  return failed(message, done.error());
}

Status Relay::delivered(const OutboxMessage& message) {
  if (auto ok = outbox_.delivered(lease_.token(), message.id); !ok) return ok;
  pauses_.erase(message.key);
  ++report_.delivered;
  tell(RelayEvent::Kind::delivered, message);
  return {};
}

Status Relay::failed(const OutboxMessage& message, const Error& error) {
  pause(message.key);
  if (error.code == ErrorCode::unavailable || error.code == ErrorCode::outcome_unknown) {
    tell(RelayEvent::Kind::not_now, message, &error);
    return {};
  }
  const std::string why =
      error.message + (error.store_words.empty() ? "" : " (" + error.store_words + ")");
  auto set_aside = outbox_.failed(lease_.token(), message.id, why, options_.attempts);
  if (!set_aside) return fail(std::move(set_aside.error()));
  ++report_.failed;
  if (*set_aside) {
    pauses_.erase(message.key);
    ++report_.set_aside;
  }
  tell(*set_aside ? RelayEvent::Kind::set_aside : RelayEvent::Kind::failed, message, &error);
  return {};
}

void Relay::pause(const std::string& key) {
  Pause& pause = pauses_[key];
  const int doublings = std::min(pause.failures++, kMostDoublings);
  pause.until =
      BootClock::now() + std::min(options_.first_pause * (1 << doublings), options_.longest_pause);
}

Status Relay::forget() {
  const BootTime now = BootClock::now();
  if (forget_at_ && now < *forget_at_) return {};
  auto gone = outbox_.forget(lease_.token(), options_.keep);
  if (!gone) return fail(std::move(gone.error()));
  if (*gone < kMany) forget_at_ = now + kForgetEvery;
  return {};
}

// Until the next look, the end of a pause, the loss of the lease or the order to stop.
void Relay::wait() {
  BootClock::duration span = options_.poll;
  const BootTime now = BootClock::now();
  for (const auto& [key, pause] : pauses_) {
    if (pause.until > now) span = std::min(span, pause.until - now);
  }
  std::mutex mutex;
  std::condition_variable_any over;
  std::stop_source either;
  const std::stop_callback on_stop(options_.stop, [&] { either.request_stop(); });
  const std::stop_callback on_loss(lease_.lost(), [&] { either.request_stop(); });
  std::unique_lock lock(mutex);
  over.wait_for(lock, either.get_token(), span, [] { return false; });
}

}  // namespace

Result<RelayReport> relay(Outbox& outbox, OutboxTarget& target, const FencedLease& lease,
                          const RelayOptions& options) {
  return Relay(outbox, target, lease, options).run();
}

}  // namespace leasehold
