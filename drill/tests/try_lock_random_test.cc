// The search against histories whose answer is known: made by a lock, or judged by trying every
// order.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "leasehold/drill/try_lock.h"
#include "story.h"

namespace leasehold::drill {
namespace {

constexpr std::int64_t kForEver = 1'000'000'000;

// One operation on the lock, with the times at which it began, took effect and was answered.
struct Attempt {
  bool acquires = true;
  int request = 0;
  std::int64_t began = 0;
  std::int64_t effect = 0;
  std::int64_t ended = 0;
  Kind outcome = Kind::ok;
};

// What a right lock answers if `effect` tells when each took effect.
void answer(std::vector<Attempt>& attempts) {
  std::vector<Attempt*> order;
  for (Attempt& each : attempts) order.push_back(&each);
  std::sort(order.begin(), order.end(),
            [](const Attempt* one, const Attempt* other) { return one->effect < other->effect; });
  int holder = 0;
  for (Attempt* each : order) {
    const bool done = each->acquires ? holder == 0 : holder == each->request;
    each->outcome = done ? Kind::ok : Kind::fail;
    if (done) holder = each->acquires ? each->request : 0;
  }
}

// Without deadlines, a release that is too late cannot be: each request asks once, and gives back
// only afterwards.
std::vector<Attempt> random_attempts(std::mt19937_64& random, int requests) {
  std::vector<Attempt> attempts;
  const auto span = [&](std::int64_t most) {
    return 1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most));
  };
  for (int request = 1; request <= requests; ++request) {
    Attempt acquire{true, request, span(40), 0, 0, Kind::ok};
    acquire.effect = acquire.began + span(20);
    acquire.ended = acquire.effect + span(20);
    Attempt release{false, request, acquire.ended + span(20), 0, 0, Kind::ok};
    release.effect = release.began + span(20);
    release.ended = release.effect + span(20);
    attempts.push_back(acquire);
    attempts.push_back(release);
  }
  answer(attempts);
  std::erase_if(attempts, [](const Attempt& each) {  // nobody gives back what he did not get
    return !each.acquires && each.outcome == Kind::fail;
  });
  return attempts;
}

Answer search(const std::vector<Attempt>& attempts) {
  struct Moment {
    std::int64_t time;
    const Attempt* attempt;
    bool begins;
  };
  std::vector<Moment> moments;
  for (const Attempt& each : attempts) {
    moments.push_back({each.began, &each, true});
    if (each.outcome != Kind::unknown) moments.push_back({each.ended, &each, false});
  }
  std::stable_sort(moments.begin(), moments.end(), [](const Moment& one, const Moment& other) {
    if (one.time != other.time) return one.time < other.time;
    return one.begins && !other.begins;  // touching counts as overlapping
  });
  Story story;
  for (const Moment& each : moments) {
    const Operation operation = each.attempt->acquires ? Operation::acquire : Operation::release;
    const Kind kind = each.begins ? Kind::invoke : each.attempt->outcome;
    const bool granted = each.attempt->acquires && kind == Kind::ok;
    story.client(each.attempt->request, kind, operation, granted ? 1 : 0, granted ? kForEver : 0);
  }
  return check_try_lock(story.history, story.history.lock("a")).answer;
}

// By trying every order.
bool some_order_explains(const std::vector<Attempt>& attempts) {
  std::vector<std::size_t> order(attempts.size());
  std::iota(order.begin(), order.end(), 0);
  do {
    int holder = 0;
    bool right = true;
    for (std::size_t i = 0; right && i < order.size(); ++i) {
      const Attempt& each = attempts[order[i]];
      for (std::size_t later = i + 1; later < order.size(); ++later) {
        if (attempts[order[later]].ended < each.began) right = false;
      }
      const bool done = each.acquires ? holder == 0 : holder == each.request;
      right = right && done == (each.outcome == Kind::ok);
      if (done) holder = each.acquires ? each.request : 0;
    }
    if (right) return true;
  } while (std::next_permutation(order.begin(), order.end()));
  return false;
}

TEST(TryLockRandomTest, WhatALockAnsweredIsLinearizable) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 500; ++round) {
    EXPECT_EQ(search(random_attempts(random, 8)), Answer::yes) << round;
  }
}

TEST(TryLockRandomTest, UnknownOutcomesNeverMakeItWrong) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 500; ++round) {
    std::vector<Attempt> attempts = random_attempts(random, 8);
    for (Attempt& each : attempts) {
      if (random() % 6 == 0) each.outcome = Kind::unknown;
    }
    EXPECT_NE(search(attempts), Answer::no) << round;
  }
}

TEST(TryLockRandomTest, AgreesWithTryingEveryOrder) {
  std::mt19937_64 random(3);
  int right = 0;
  int wrong = 0;
  for (int round = 0; round < 2000; ++round) {
    std::vector<Attempt> attempts = random_attempts(random, 4);
    Attempt& lied_about = attempts[random() % attempts.size()];
    if (!lied_about.acquires) continue;
    lied_about.outcome = lied_about.outcome == Kind::ok ? Kind::fail : Kind::ok;
    const bool explained = some_order_explains(attempts);
    EXPECT_EQ(search(attempts), explained ? Answer::yes : Answer::no) << round;
    ++(explained ? right : wrong);
  }
  EXPECT_GT(right, 50);
  EXPECT_GT(wrong, 50);
}

}  // namespace
}  // namespace leasehold::drill
