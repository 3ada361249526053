// What the members of a group do with its partitions, on every store with modes.
#include "leasehold/partitions.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <set>

#include "kit/threads/thread_safety.h"
#include "testing/partitions_conformance.h"
#include "testing/results.h"

namespace leasehold::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kPartitions = 12;

// Who works on what, of all members of a test.
class Floor {
 public:
  void begin(const std::string& member, const OwnedPartition& partition) {
    const MutexLock lock(mutex_);
    auto& at = work_[partition.number];
    EXPECT_TRUE(at.member.empty() || (!at.leaves && at.lease->state() == LeaseState::lost))
        << partition.number << " is " << at.member << "'s, and " << member << " begins";
    if (partition.token) {
      EXPECT_LT(at.token, partition.token->number.value());
      at.token = partition.token->number.value();
    }
    at.member = member;
    at.lease = &partition.lease;
    at.leaves = false;
    changed_.notify_all();
  }
  void leave(const std::string& member, int partition) {
    const MutexLock lock(mutex_);
    auto& at = work_[partition];
    at.leaves = at.member == member && at.lease->state() != LeaseState::lost;
  }
  void end(const std::string& member, int partition) {
    const MutexLock lock(mutex_);
    auto& at = work_[partition];
    if (at.member != member) return;
    at.member.clear();
    changed_.notify_all();
  }
  // Each partition is its who spread() says, of these members.
  void await(std::vector<std::string> members) {
    std::sort(members.begin(), members.end());
    const auto owners = spread(members, kPartitions);
    const MutexLock lock(mutex_);
    const auto all_settled = [&]() LEASEHOLD_REQUIRES(mutex_) {
      for (int i = 0; i < kPartitions; ++i) {
        if (work_[i].member != members[owners[static_cast<std::size_t>(i)]]) return false;
      }
      return true;
    };
    EXPECT_TRUE(changed_.wait_for(mutex_, 30s, all_settled)) << "they did not settle";
  }

 private:
  struct At {
    std::string member;
    const Lease* lease = nullptr;  // while it has a member
    bool leaves = false;           // while its lease is held
    std::int64_t token = 0;
  };
  Mutex mutex_;
  ConditionVariable changed_;
  std::map<int, At> work_ LEASEHOLD_GUARDED_BY(mutex_);
};

class Worker final : public PartitionWork {
 public:
  Worker(Floor& floor, std::string name) : floor_(floor), name_(std::move(name)) {}
  void gained(const OwnedPartition& partition) override {
    EXPECT_TRUE(mine_.insert(partition.number).second);
    floor_.begin(name_, partition);
  }
  void will_give_up(int partition) override {
    EXPECT_TRUE(mine_.contains(partition) && told_.insert(partition).second);
    floor_.leave(name_, partition);
  }
  void give_up(int partition) override {
    EXPECT_EQ(mine_.erase(partition), 1U);
    EXPECT_EQ(told_.erase(partition), 1U);
    floor_.end(name_, partition);
  }

 private:
  Floor& floor_;
  const std::string name_;
  std::set<int> mine_;
  std::set<int> told_;  // that it will give it up
};

PartitionsOptions options(const std::string& member) {
  return {.count = kPartitions,
          .member = member,
          .note = member + ".example:80",
          .ttl = 3s,
          .look_every = 100ms};
}

LockName group() {
  return LockName::parse("orders").value();
}

}  // namespace

TEST_P(PartitionsConformance, EachHasOneOwnerWhoeverJoinsAndLeaves) {
  Floor floor;
  Worker ann_work(floor, "ann");
  Worker bob_work(floor, "bob");
  Worker cid_work(floor, "cid");
  auto ann = Partitions::join(client(), group(), options("ann"), ann_work);
  ASSERT_TRUE(good(ann));
  floor.await({"ann"});
  auto bob = Partitions::join(client(), group(), options("bob"), bob_work);
  ASSERT_TRUE(good(bob));
  floor.await({"ann", "bob"});
  auto cid = Partitions::join(client(), group(), options("cid"), cid_work);
  ASSERT_TRUE(good(cid));
  floor.await({"ann", "bob", "cid"});
  EXPECT_THAT(cid->members(), ElementsAre("ann", "bob", "cid"));
  bob->leave();
  EXPECT_TRUE(bob->owned().empty());
  floor.await({"ann", "cid"});
  ann->leave();
  cid->leave();
  Client looker = client();
  EXPECT_TRUE(looker.inspect(group())->holders.empty());
  EXPECT_EQ(route(looker, group(), kPartitions, "order 1")->member, std::nullopt);
}

TEST_P(PartitionsConformance, WhatAFrozenMemberHadIsTakenWhenItsLeasesHaveRunOut) {
  Floor floor;
  Worker ann_work(floor, "ann");
  Worker bob_work(floor, "bob");
  const auto faults = std::make_shared<Faults>();
  auto ann = Partitions::join(faulty_client(faults), group(), options("ann"), ann_work);
  ASSERT_TRUE(good(ann));
  floor.await({"ann"});
  auto bob = Partitions::join(client(), group(), options("bob"), bob_work);
  ASSERT_TRUE(good(bob));
  floor.await({"ann", "bob"});
  for (const auto operation : {Operation::acquire, Operation::renew, Operation::release}) {
    faults->always(operation, Fault::lose_request);
  }
  floor.await({"bob"});  // and none began before ann's lease was over
  for (const auto operation : {Operation::acquire, Operation::renew, Operation::release}) {
    faults->never(operation);
  }
  floor.await({"ann", "bob"});  // it has joined again
}

TEST_P(PartitionsConformance, WhoDoesNotAgreeIsRefusedAndLeavesNothing) {
  Floor floor;
  Worker work(floor, "ann");
  auto ann = Partitions::join(client(), group(), options("ann"), work);
  ASSERT_TRUE(good(ann));
  floor.await({"ann"});
  Worker none(floor, "nobody");
  auto other = options("bob");
  other.count = kPartitions + 1;
  const auto counts = Partitions::join(client(), group(), other, none);
  ASSERT_TRUE(bad(counts, ErrorCode::invalid));
  EXPECT_THAT(counts.error().message, HasSubstr("have 12 partitions, not 13"));
  const auto names = Partitions::join(client(), group(), options("ann"), none);
  ASSERT_TRUE(bad(names, ErrorCode::invalid));
  EXPECT_THAT(names.error().message, HasSubstr("already whose name is 'ann'"));
  Client looker = client();
  EXPECT_EQ(looker.inspect(group())->holders.size(), 1U);
  EXPECT_EQ(ann->owned().size(), static_cast<std::size_t>(kPartitions));
}

TEST_P(PartitionsConformance, WrongOptionsAreRefusedBeforeAnythingIsAsked) {
  Floor floor;
  Worker none(floor, "nobody");
  const auto refused = [&](auto change) {
    auto wrong = options("ann");
    change(wrong);
    return bad(Partitions::join(client(), group(), wrong, none), ErrorCode::invalid);
  };
  EXPECT_TRUE(refused([](auto& it) { it.count = 0; }));
  EXPECT_TRUE(refused([](auto& it) { it.count = 10'001; }));
  EXPECT_TRUE(refused([](auto& it) { it.member = ""; }));
  EXPECT_TRUE(refused([](auto& it) { it.member = "two words"; }));
  EXPECT_TRUE(refused([](auto& it) { it.member = std::string(129, 'a'); }));
  EXPECT_TRUE(refused([](auto& it) { it.note = std::string(1024, 'a'); }));
  EXPECT_TRUE(refused([](auto& it) { it.note = "\n"; }));
  Client looker = client();
  EXPECT_TRUE(looker.inspect(group())->holders.empty());
}

TEST_P(PartitionsConformance, RouteTellsTheOwnerItsNoteAndToken) {
  Floor floor;
  Worker work(floor, "ann");
  auto ann = Partitions::join(client(), group(), options("ann"), work);
  ASSERT_TRUE(good(ann));
  floor.await({"ann"});
  Client looker = client();
  const auto found = route(looker, group(), kPartitions, "order 1");
  ASSERT_TRUE(good(found));
  EXPECT_EQ(found->partition, partition_of("order 1", kPartitions));
  EXPECT_EQ(found->member, "ann");
  EXPECT_EQ(found->note, "ann.example:80");
  EXPECT_TRUE(found->token);
}

}  // namespace leasehold::testing
