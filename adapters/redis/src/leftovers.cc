#include "leftovers.h"

#include <chrono>
#include <set>

namespace leasehold::redis {

using namespace std::chrono_literals;

namespace {

constexpr Millis kPause = 300ms;
constexpr Millis kNodeMayTake = 1s;
constexpr Millis kForgetAfter = 10min;
constexpr std::size_t kMost = 10'000;

}  // namespace

void Leftovers::add(std::size_t node, Question release) {
  MutexLock lock(mutex_);
  if (closed_) return;
  if (items_.size() == kMost) items_.pop_front();  // it ends with its TTL
  items_.push_back({node, std::move(release), BootClock::now() + kForgetAfter});
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  changed_.notify_all();
}

void Leftovers::close() {
  std::thread ending;
  {
    MutexLock lock(mutex_);
    closed_ = true;
    changed_.notify_all();
    ending.swap(thread_);
  }
  if (ending.joinable()) ending.join();
}

// Empty when it is over.
std::deque<Leftovers::Item> Leftovers::take_all() {
  MutexLock lock(mutex_);
  changed_.wait(mutex_, [this]() LEASEHOLD_REQUIRES(mutex_) { return closed_ || !items_.empty(); });
  if (closed_) return {};
  return std::exchange(items_, {});
}

void Leftovers::put_back(std::vector<Item> items) {
  MutexLock lock(mutex_);
  for (Item& item : items) items_.push_back(std::move(item));
  if (items_.empty()) return;
  changed_.wait_for(mutex_, kPause, [this]() LEASEHOLD_REQUIRES(mutex_) { return closed_; });
}

bool Leftovers::try_again(const Item& item) try {
  const CallContext context{BootClock::now() + kNodeMayTake, {}};
  const Answers answers = quorum_.ask(item.release, context, kNodeMayTake, {item.node});
  return answers[item.node].kind == Answer::Kind::given;
} catch (const std::exception&) {
  return false;  // out of memory, for one; nobody above this thread could be told
}

void Leftovers::run() {
  for (;;) {
    std::deque<Item> items = take_all();
    if (items.empty()) return;
    std::vector<Item> again;
    std::set<std::size_t> silent;
    for (Item& item : items) {
      bool done = BootClock::now() >= item.forget_at;
      if (!done && silent.count(item.node) == 0) {
        done = try_again(item);
        if (!done) silent.insert(item.node);
      }
      if (!done) again.push_back(std::move(item));
    }
    put_back(std::move(again));
  }
}

}  // namespace leasehold::redis
