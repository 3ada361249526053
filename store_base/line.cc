#include "store_base/line.h"

#include <algorithm>
#include <iterator>
#include <system_error>
#include <utility>

namespace leasehold {
namespace {

void wake(const Line::Batch& batch) {
  const Rider* woken = nullptr;  // mostly they have one gong
  for (const auto& rider : batch) {
    if (woken != nullptr && rider->sleeps_beside(*woken)) continue;
    woken = rider.get();
    rider->wake();
  }
}

}  // namespace

bool Line::go_first(BootTime now) {
  MutexLock lock(mutex_);
  if (out_since_) return false;
  out_since_ = now;
  return true;
}

void Line::back() {
  MutexLock lock(mutex_);
  if (gathered_.empty()) return out_since_.reset();
  to_carry_ = true;
  handed_over_.notify_one();
}

bool Line::has_thread() {
  if (thread_.joinable()) return true;
  try {
    thread_ = std::thread([this] { run(); });
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

std::optional<BootTime> Line::gather(const std::shared_ptr<Rider>& rider, BootTime now) {
  MutexLock lock(mutex_);
  const bool is_free = !out_since_;
  const BootTime patient_until = out_since_.value_or(now) + patience_;
  if (now >= patient_until || !has_thread()) return std::nullopt;
  if (gathered_.size() % kMostRiders == 0) gong_ = std::make_shared<kit::Gong>();
  rider->gong_ = gong_;
  gathered_.push_back(rider);
  if (is_free) {  // the call before it came back a moment ago
    out_since_ = now;
    to_carry_ = true;
    handed_over_.notify_one();
  }
  return patient_until;
}

Line::Ride Line::ride(const std::shared_ptr<Rider>& rider, BootTime now) {
  using Stage = Rider::Stage;
  const auto patient_until = gather(rider, now);
  if (!patient_until) return Ride::on_its_own;
  const BootTime deadline = rider->context.deadline;
  const std::stop_token& stop = rider->context.stop;
  const std::stop_callback on_stop(stop, [&] { rider->gong_->strike(); });
  const auto wait_until = [&](BootTime when) {
    for (;;) {
      const auto strokes = rider->gong_->strokes();
      if (!rider->is_open() || stop.stop_requested() || BootClock::now() >= when) return;
      rider->gong_->await_stroke_after(strokes, when);
    }
  };

  const auto not_done = [&] { return rider->is_over() ? Ride::not_begun : Ride::on_its_own; };

  wait_until(std::min(*patient_until, deadline));
  if (rider->move(Stage::gathered, Stage::gone)) return not_done();
  wait_until(deadline);
  if (rider->move(Stage::begun, Stage::gone)) return Ride::not_finished;
  return rider->stage_ == Stage::answered ? Ride::answered : not_done();
}

bool Line::await_batch(Batch& batch) {
  batch.clear();
  MutexLock lock(mutex_);
  for (;;) {
    std::erase_if(gathered_, [](const auto& it) { return !it->is_open(); });
    if (to_carry_ && !gathered_.empty()) break;
    if (to_carry_) out_since_.reset();
    to_carry_ = false;
    handed_over_.wait(mutex_, [this]() LEASEHOLD_REQUIRES(mutex_) { return to_carry_ || closed_; });
    if (!to_carry_) return false;
  }
  out_since_ = BootClock::now();
  take(batch);
  return true;
}

bool Line::next_batch(Batch& batch) {
  MutexLock lock(mutex_);
  std::erase_if(gathered_, [](const auto& it) { return !it->is_open(); });
  const bool worth_it =
      gathered_.size() >= kEnoughRiders ||
      std::ranges::any_of(gathered_, [](const auto& it) { return it->context.urgent; });
  if (worth_it) take(batch);
  return worth_it;
}

void Line::take(Batch& batch) {
  std::stable_partition(gathered_.begin(), gathered_.end(),
                        [](const auto& it) { return it->context.urgent; });
  const auto end =
      gathered_.begin() + static_cast<std::ptrdiff_t>(std::min(gathered_.size(), kMostRiders));
  batch.assign(std::make_move_iterator(gathered_.begin()), std::make_move_iterator(end));
  gathered_.erase(gathered_.begin(), end);
}

void Line::out_since(BootTime when) {
  MutexLock lock(mutex_);
  out_since_ = when;
}

std::size_t Line::gathered() {
  MutexLock lock(mutex_);
  return gathered_.size();
}

void Line::run() {
  struct Out {
    Batch batch;
    std::unique_ptr<Trip> trip;
    BootTime since;
  };
  std::optional<Out> first;
  for (;;) {
    Out next;
    const bool departs =
        first ? first->trip->can_be_followed() && next_batch(next.batch) : await_batch(next.batch);
    if (departs) {
      next.since = BootClock::now();
      next.trip = depart_(next.batch);
      if (!next.trip) wake(next.batch);
    } else if (!first) {
      return;
    }
    if (first) {
      first->trip->arrive();
      wake(first->batch);
      first.reset();
    }
    if (next.trip) {
      out_since(next.since);
      first = std::move(next);
    }
  }
}

void Line::close() {
  std::thread ending;
  {
    MutexLock lock(mutex_);
    closed_ = true;
    handed_over_.notify_one();
    ending.swap(thread_);
  }
  if (ending.joinable()) ending.join();
}

}  // namespace leasehold
