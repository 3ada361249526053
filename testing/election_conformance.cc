#include "testing/election_conformance.h"

#include <charconv>
#include <chrono>
#include <future>

#include "fence/rule.h"
#include "kit/threads/thread_safety.h"
#include "leasehold/election.h"
#include "testing/results.h"
#include "testing/worker.h"

namespace leasehold::testing {

using namespace std::chrono_literals;

namespace {

LockName office() {
  return LockName::parse("leader").value();
}

// Who is seen at the lead, for a test to wait for.
class Seen {
 public:
  LeaderObserver observer() {
    return [this](const Result<std::optional<Leader>>& now) {
      const MutexLock lock(mutex_);
      if (now) leader_ = *now;
      changed_.notify_all();
    };
  }
  // Nothing after half a minute without such a leader.
  std::optional<Leader> wait_for(const std::function<bool(const std::optional<Leader>&)>& meant) {
    const MutexLock lock(mutex_);
    const bool came =
        changed_.wait_for(mutex_, 30s, [&]() LEASEHOLD_REQUIRES(mutex_) { return meant(leader_); });
    return came ? leader_ : std::nullopt;
  }
  bool wait_until_leads(const RequestId& request) {
    return wait_for([&](const auto& it) { return it && it->request == request; }).has_value();
  }

 private:
  Mutex mutex_;
  ConditionVariable changed_;
  std::optional<Leader> leader_ LEASEHOLD_GUARDED_BY(mutex_);
};

// What only a leader may write to, behind the rule of every fence.
class FencedResource {
 public:
  bool write(const Token& token) {
    const auto verdict = fence::judge(mark_, {.token = token, .writes = true});
    const auto* enter = std::get_if<fence::Enter>(&verdict);
    if (enter == nullptr) return false;
    mark_ = enter->next;
    return true;
  }

 private:
  fence::Mark mark_;
};

std::int64_t number_in(const std::string& line) {
  std::int64_t number = 0;
  std::from_chars(line.data() + line.rfind(' ') + 1, line.data() + line.size(), number);
  return number;
}

}  // namespace

TEST_P(ElectionConformance, OneLeadsAndAllSeeWhoAndTheNextOneFollows) {
  Election mine(client(), office());
  Election other(client(), office());
  Election beside(client(), office());
  Seen seen;
  const auto watch = beside.observe(seen.observer());
  ASSERT_TRUE(watch);
  EXPECT_EQ(beside.leader().value().has_value(), false);

  const bool notes = client().store().modes;
  auto first = mine.campaign({.note = notes ? "db-1:5432" : ""});
  ASSERT_TRUE(good(first));
  EXPECT_TRUE(seen.wait_until_leads(first->lease().request()));
  const auto leader = beside.leader();
  ASSERT_TRUE(good(leader));
  ASSERT_TRUE(*leader);
  EXPECT_EQ((*leader)->note, notes ? "db-1:5432" : "");
  EXPECT_TRUE(bad(other.campaign({.wait = 0ms}), ErrorCode::busy));

  auto campaign = std::async(std::launch::async, [&] { return other.campaign(); });
  ASSERT_EQ(first->resign().value(), ReleaseOutcome::released);
  auto second = campaign.get();
  ASSERT_TRUE(good(second));
  EXPECT_TRUE(seen.wait_until_leads(second->lease().request()));
  EXPECT_EQ(first->token().has_value(), second->token().has_value());
  if (first->token()) {
    EXPECT_LT(first->token()->number, second->token()->number);
  }
  ASSERT_TRUE(second->resign());
  EXPECT_EQ(beside.leader().value().has_value(), false);
}

TEST_P(ElectionConformance, WhoHasFinishedAndKeepsTheLockDoesNotLead) {
  Client mine = client();
  auto lease = mine.acquire(office());
  ASSERT_TRUE(good(lease));
  const auto kept = lease->release_after(1min);
  if (!mine.store().keeps_after_release) {
    EXPECT_TRUE(bad(kept, ErrorCode::unsupported));
    return;
  }
  ASSERT_TRUE(good(kept));
  Election election(std::move(mine), office());
  EXPECT_TRUE(bad(election.campaign({.wait = 0ms}), ErrorCode::busy));
  EXPECT_EQ(election.leader().value().has_value(), false);
}

TEST_P(ElectionConformance, AStopEndsACampaignAndNothingIsLeftOfIt) {
  Election mine(client(), office());
  Election other(client(), office());
  auto leads = mine.campaign();
  ASSERT_TRUE(good(leads));
  std::stop_source stop;
  auto campaign =
      std::async(std::launch::async, [&] { return other.campaign({.stop = stop.get_token()}); });
  stop.request_stop();
  EXPECT_TRUE(bad(campaign.get(), ErrorCode::cancelled));
  ASSERT_TRUE(leads->resign());
  EXPECT_TRUE(good(mine.campaign({.wait = 30s})));
}

TEST_P(ElectionConformance, AFrozenLeaderIsFollowedAndItsLateWriteIsRefused) {
  Election election(client(), office());
  Seen seen;
  const auto watch = election.observe(seen.observer());
  ASSERT_TRUE(watch);
  Worker frozen = Worker::hold(store->url(), office().str(), 1s);
  ASSERT_EQ(frozen.line(), "asking");
  const std::string held = frozen.line();
  ASSERT_EQ(held.substr(0, 4), "held");
  const auto before = seen.wait_for([](const auto& it) { return it.has_value(); });
  ASSERT_TRUE(before);
  frozen.freeze();

  auto leads = election.campaign({.wait = 60s});
  ASSERT_TRUE(good(leads));
  EXPECT_TRUE(seen.wait_until_leads(leads->lease().request()));
  if (const auto& token = leads->token()) {
    FencedResource resource;
    const Token late{TokenNumber::of(number_in(held)).value(), token->lineage, before->request};
    EXPECT_TRUE(resource.write(late)) << "while it led";
    EXPECT_TRUE(resource.write(*token));
    EXPECT_FALSE(resource.write(late)) << "it woke up, and does not know yet";
    EXPECT_TRUE(resource.write(*token));
  }
  frozen.thaw();
  EXPECT_EQ(frozen.line(), "lost");
}

}  // namespace leasehold::testing
