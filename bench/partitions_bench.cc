// How many partitions move when a member of a group joins, leaves or is killed, and how long until
// each has its owner: 20 members, 1,000 partitions.
//
//   partitions_bench [EVENTS]
//
// The member that is killed is this program again:  partitions_bench --member URL
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "bench/report.h"
#include "kit/threads/thread_safety.h"
#include "leasehold/partitions.h"
#include "leasehold/process/child.h"
#include "leasehold/stores.h"
#include "rig/temp_folder.h"

namespace {

using namespace leasehold;
using namespace leasehold::bench;
using namespace std::chrono_literals;
using Seconds = std::chrono::duration<double>;

constexpr int kMembers = 20;
constexpr int kPartitions = 1'000;
constexpr Millis kTtl = 10s;

std::string name_of(int member) {
  return "member-" + std::to_string(member);
}

PartitionsOptions options_of(const std::string& name) {
  return {.count = kPartitions, .member = name, .ttl = kTtl};
}

LockName group() {
  return must(LockName::parse("bench"));
}

// Who owns what, of the members of this process.
class Board {
 public:
  void gained(int partition, int member) {
    const MutexLock lock(mutex_);
    owners_[partition] = member;
    ++moves_;
    changed_.notify_all();
  }
  void gave_up(int partition, int member) {
    const MutexLock lock(mutex_);
    const auto found = owners_.find(partition);
    if (found != owners_.end() && found->second == member) owners_.erase(found);
    changed_.notify_all();
  }
  // Until each partition is its who it should be among these members.
  void await(const std::map<int, int>& wanted) {
    const MutexLock lock(mutex_);
    const auto settled = [&]() LEASEHOLD_REQUIRES(mutex_) { return owners_ == wanted; };
    if (!changed_.wait_for(mutex_, 5min, settled)) stop("the members did not settle");
  }
  int moves() const {
    const MutexLock lock(mutex_);
    return moves_;
  }

 private:
  mutable Mutex mutex_;
  ConditionVariable changed_;
  std::map<int, int> owners_ LEASEHOLD_GUARDED_BY(mutex_);
  int moves_ LEASEHOLD_GUARDED_BY(mutex_) = 0;
};

struct Work final : PartitionWork {
  Work(Board& all, int own) : board(all), member(own) {}
  void gained(const OwnedPartition& partition) override { board.gained(partition.number, member); }
  void give_up(int partition) override { board.gave_up(partition, member); }
  Board& board;
  const int member;
};

class Fleet {
 public:
  explicit Fleet(std::string url) : url_(std::move(url)) {}

  // How long it took until all had settled.
  Seconds join(int member) {
    auto client = must(connect(url_));
    auto& one = members_[member];
    one.work = std::make_unique<Work>(board_, member);
    const auto began = BootClock::now();
    one.member = must(Partitions::join(client, group(), options_of(name_of(member)), *one.work));
    return settled_since(began);
  }
  Seconds leave(int member) {
    const auto began = BootClock::now();
    members_.at(member).member->leave();
    members_.erase(member);
    return settled_since(began);
  }
  Seconds settled_since(BootTime began) {
    board_.await(wanted());
    return BootClock::now() - began;
  }

  // Of all partitions, those of one member if these and it are there.
  int share_of(int member) const {
    int share = 0;
    auto names = names_beside(name_of(member));
    for (const std::size_t owner : spread(names, kPartitions)) {
      share += names[owner] == name_of(member) ? 1 : 0;
    }
    return share;
  }
  int moves() const { return board_.moves(); }

 private:
  struct Member {
    std::unique_ptr<Work> work;
    std::optional<Partitions> member;
  };
  std::vector<std::string> names_beside(const std::string& other) const {
    std::vector<std::string> names;
    for (const auto& [number, member] : members_) {
      if (name_of(number) != other) names.push_back(name_of(number));
    }
    if (!other.empty()) names.push_back(other);
    return names;
  }
  std::map<int, int> wanted() const {
    std::map<int, int> owners;
    const auto names = names_beside("");
    std::vector<int> numbers;
    for (const auto& [number, member] : members_) numbers.push_back(number);
    const auto spread_out = spread(names, kPartitions);
    for (int i = 0; i < kPartitions && !names.empty(); ++i) {
      owners[i] = numbers[spread_out[static_cast<std::size_t>(i)]];
    }
    return owners;
  }

  const std::string url_;
  Board board_;
  std::map<int, Member> members_;
};

void report_settled(const std::string& what, std::vector<double> seconds) {
  const double worst = percentile(seconds, 1);
  const double target = Seconds(kTtl + 2s).count();
  report({"partitions: settled after a " + what + ", worst", format(worst, "%.2f s"),
          format(target, "<= %.0f s"), worst <= target});
}

// Says when it owns all that is its beside the other 19, and goes on until it is killed.
int be_a_member(const std::string& url) {
  Board board;
  Work work(board, 0);
  auto client = must(connect(url));
  const auto member =
      must(Partitions::join(client, group(), options_of(name_of(kMembers - 1)), work));
  std::vector<std::string> all;
  for (int i = 0; i < kMembers; ++i) all.push_back(name_of(i));
  const auto owners = spread(all, kPartitions);
  const auto share = std::ranges::count(owners, all.size() - 1);
  while (std::ssize(member.owned()) < share) std::this_thread::sleep_for(10ms);
  (void)process::write_all(1, "ready\n");
  for (;;) std::this_thread::sleep_for(1h);
}

process::Child start_victim(const std::string& url) {
  process::Command command;
  command.argv = {"/proc/self/exe", "--member", url};
  command.out = process::Piped{};
  command.parent_death_signal = SIGKILL;
  return must(process::Child::start(command));
}

void measure(const std::string& url, int events) {
  Fleet fleet(url);
  for (int member = 0; member + 1 < kMembers; ++member) (void)fleet.join(member);
  std::vector<double> joins;
  std::vector<double> leaves;
  int fewest = 0;
  // The last of 20 joins, and one of 20 leaves, in turns.
  const int before = fleet.moves();
  for (int event = 0; event < events; ++event) {
    const int member = event == 0 ? kMembers - 1 : event - 1;
    fewest += fleet.share_of(member);
    joins.push_back(fleet.join(member).count());
    fewest += fleet.share_of(event);
    leaves.push_back(fleet.leave(event).count());
  }
  const int moves = fleet.moves() - before;
  report({"partitions: moves beside the fewest, join and leave",
          format(1.0 * moves / fewest, "%.3f x"), "<= 1.1 x", moves <= fewest * 1.1});
  report_settled("join", joins);
  report_settled("leave", leaves);
  (void)fleet.join(events - 1);  // as at the beginning, without the last
  (void)fleet.leave(kMembers - 1);

  std::vector<double> crashes;
  for (int round = 0; round < 3; ++round) {
    process::Child victim = start_victim(url);
    if (process::read_until(victim.out().get(), "ready\n").empty()) stop("the victim did not join");
    const auto began = BootClock::now();
    victim.signal(SIGKILL);
    victim.wait();
    crashes.push_back(fleet.settled_since(began).count());
  }
  report_settled("SIGKILL", crashes);
}

}  // namespace

int main(int argc, char** argv) {
  register_stores();
  if (argc > 2 && std::string_view(argv[1]) == "--member") return be_a_member(argv[2]);
  const rig::TempFolder folder;
  measure("sqlite:" + folder.file("locks.db"), argc > 1 ? std::stoi(argv[1]) : kMembers - 1);
  return 0;
}
