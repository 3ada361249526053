#include "leasehold/partitions.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>
#include <thread>
#include <utility>
#include <variant>

#include "kit/text/visible_text.h"
#include "kit/threads/thread_safety.h"
#include "kit/try.h"

namespace leasehold {
namespace {

constexpr int kMostPartitions = 10'000;
constexpr std::size_t kMostMemberBytes = 128;
// How often to try for what another member has yet to give up.
constexpr Millis kTryEvery{250};

// FNV-1a, and splitmix64's last step so that every bit counts.
std::uint64_t hash(std::string_view text, std::uint64_t salt) {
  std::uint64_t mixed = 0xcbf29ce484222325 ^ salt;
  for (const char c : text) mixed = (mixed ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
  return mixed ^ (mixed >> 31);
}

// What a member says of itself in its notes: "member NAME of COUNT; NOTE".
struct Introduction {
  std::string member;
  int count = 0;
  std::string note = {};

  std::string str() const {
    return "member " + member + " of " + std::to_string(count) + (note.empty() ? "" : "; " + note);
  }
  static std::optional<Introduction> parse(std::string_view text) {
    constexpr std::string_view kBegin = "member ";
    constexpr std::string_view kOf = " of ";
    constexpr std::string_view kThen = "; ";
    if (!text.starts_with(kBegin)) return std::nullopt;
    text.remove_prefix(kBegin.size());
    Introduction found;
    found.member = text.substr(0, text.find(' '));
    text.remove_prefix(found.member.size());
    if (found.member.empty() || !text.starts_with(kOf)) return std::nullopt;
    text.remove_prefix(kOf.size());
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), found.count);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (failed != std::errc() || found.count < 1) return std::nullopt;
    if (text.empty()) return found;
    if (!text.starts_with(kThen)) return std::nullopt;
    found.note = text.substr(kThen.size());
    return found;
  }
};

Status check(const PartitionsOptions& options) {
  if (options.count < 1 || options.count > kMostPartitions) {
    return fail(ErrorCode::invalid, "the number of partitions is not from 1 to " +
                                        std::to_string(kMostPartitions) + ": " +
                                        std::to_string(options.count));
  }
  TRY(detail::check_text("member name", options.member, kMostMemberBytes));
  if (options.member.find(' ') != std::string::npos) {
    return fail(ErrorCode::invalid,
                "the member name " + kit::in_quotes(options.member) + " has a space");
  }
  return {};
}

AcquireOptions asking(const PartitionsOptions& options, Mode mode) {
  return {.ttl = options.ttl,
          .store_timeout = options.store_timeout,
          .stop = options.stop,
          .mode = mode,
          .note = Introduction{options.member, options.count, options.note}.str()};
}

// Of two who joined at the same time the later one goes: each sees all that were granted before it.
Status check_against(const LockName& group, const Introduction& other,
                     const PartitionsOptions& own) {
  if (other.count != own.count) {
    return fail(ErrorCode::invalid, "the members of " + kit::in_quotes(group.str()) + " have " +
                                        std::to_string(other.count) + " partitions, not " +
                                        std::to_string(own.count));
  }
  if (other.member == own.member) {
    return fail(ErrorCode::invalid, "there is a member of " + kit::in_quotes(group.str()) +
                                        " already whose name is " + kit::in_quotes(own.member));
  }
  return {};
}

}  // namespace

int partition_of(std::string_view key, int count) {
  return static_cast<int>(hash(key, 0) % static_cast<std::uint64_t>(std::max(count, 1)));
}

std::vector<std::size_t> spread(const std::vector<std::string>& members, int count) {
  std::vector<std::size_t> owners;
  if (members.empty()) return owners;
  for (int partition = 0; partition < count; ++partition) {
    const auto weight = [&](const std::string& member) {
      return std::pair(hash(member, hash({}, static_cast<std::uint64_t>(partition) + 1)), member);
    };
    const auto most = std::max_element(
        members.begin(), members.end(),
        [&](const auto& one, const auto& other) { return weight(one) < weight(other); });
    owners.push_back(static_cast<std::size_t>(most - members.begin()));
  }
  return owners;
}

Result<LockName> partition_lock(const LockName& group, int partition) {
  return LockName::parse(group.str() + "/" + std::to_string(partition));
}

class Partitions::Core {
 public:
  Core(Client client, LockName group, PartitionsOptions options, PartitionWork& work)
      : client_(std::move(client)),
        group_(std::move(group)),
        options_(std::move(options)),
        work_(work) {}
  ~Core() { leave(); }
  Core(const Core&) = delete;

  Status join() {
    TRY(check(options_));
    TRY(partition_lock(group_, options_.count - 1));
    TRY(enter_group());
    options_.stop = {};  // it was join()'s
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
    return {};
  }

  void leave() {
    if (!thread_.joinable()) return;
    thread_.request_stop();
    thread_.join();
  }

  std::vector<int> owned() const {
    MutexLock lock(mutex_);
    return shown_;
  }
  std::vector<std::string> members() const {
    MutexLock lock(mutex_);
    return members_;
  }
  std::optional<Error> trouble() const {
    MutexLock lock(mutex_);
    return trouble_;
  }

 private:
  // A lease whose loss wakes the thread.
  struct Kept {
    using Either = std::variant<Lease, FencedLease>;
    struct Wake {
      Core& core;
      void operator()() const { core.wake(); }
    };
    Kept(Either taken, Core& core)
        : either(std::move(taken)), on_loss(lease().lost(), Wake{core}) {}
    Lease& lease() {
      return std::visit([](Lease& it) -> Lease& { return it; }, either);
    }
    bool is_lost() { return lease().state() == LeaseState::lost; }

    Either either;
    std::stop_callback<Wake> on_loss;
  };

  // ---- the group ---------------------------------------------------------------------------

  Status enter_group() {
    auto lease = TRY(client_.acquire(group_, asking(options_, Mode::shared())));
    const auto fits = look(&lease.request());
    if (!fits) {
      (void)lease.release(options_.store_timeout);
      return fits;
    }
    membership_ = std::make_unique<Kept>(std::move(lease), *this);
    return {};
  }

  // With `own`: fails if a member that was there before does not agree.
  Status look(const RequestId* own) {
    const auto status = TRY(client_.inspect(group_, {.store_timeout = options_.store_timeout}));
    std::vector<std::string> names;
    for (const LockStatus::Holder& holder : status.holders) {
      if (own != nullptr && holder.request == *own) own = nullptr;  // what follows came later
      const auto said = Introduction::parse(holder.note);
      if (!said) continue;
      if (own != nullptr) TRY(check_against(group_, *said, options_));
      names.push_back(said->member);
    }
    if (own != nullptr) return fail(ErrorCode::lost, "the membership was lost at once");
    std::sort(names.begin(), names.end());
    const MutexLock lock(mutex_);
    members_ = std::move(names);
    return {};
  }

  // ---- the thread --------------------------------------------------------------------------

  void run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      const auto settled = round(stop);
      tell(settled);
      pause(stop, settled && *settled ? options_.look_every : kTryEvery);
    }
    give_up_if([](Kept&, int) { return true; });
    tell(true);
    if (membership_) (void)membership_->lease().release(options_.store_timeout);
    membership_.reset();
  }

  // Whether this member owns all that is its.
  Result<bool> round(const std::stop_token& stop) {
    give_up_if([](Kept& kept, int) { return kept.is_lost(); });
    if (membership_ && membership_->is_lost()) membership_.reset();
    if (!membership_) TRY(enter_group());
    TRY(look(nullptr));
    const std::vector<bool> mine = own_share();
    give_up_if([&](Kept&, int partition) { return !mine[static_cast<std::size_t>(partition)]; });
    return take(mine, stop);
  }

  std::vector<bool> own_share() const {
    const auto all = members();
    std::vector<bool> mine;
    for (const std::size_t owner : spread(all, options_.count)) {
      mine.push_back(all[owner] == options_.member);
    }
    mine.resize(static_cast<std::size_t>(options_.count));
    return mine;
  }

  Result<bool> take(const std::vector<bool>& mine, const std::stop_token& stop) {
    bool settled = true;
    for (int partition = 0; partition < options_.count; ++partition) {
      if (!mine[static_cast<std::size_t>(partition)] || owned_.contains(partition)) continue;
      if (stop.stop_requested()) return false;
      const bool taken = TRY(take_one(partition));
      settled = settled && taken;
    }
    return settled;
  }

  // False: its owner has not given it up yet.
  Result<bool> take_one(int partition) {
    const LockName lock = TRY(partition_lock(group_, partition));
    const AcquireOptions how = asking(options_, Mode::exclusive());
    if (client_.store().guarantee == Guarantee::correctness) {
      return gained(partition, client_.acquire_fenced(lock, how));
    }
    return gained(partition, client_.acquire(lock, how));
  }

  static std::optional<Token> token_of(const Lease&) { return std::nullopt; }
  static std::optional<Token> token_of(const FencedLease& lease) { return lease.token(); }

  template <class Taken>
  Result<bool> gained(int partition, Result<Taken> lease) {
    if (!lease && lease.error().code == ErrorCode::busy) return false;
    if (!lease) return fail(std::move(lease.error()));
    const auto token = token_of(*lease);
    Kept& kept =
        *owned_.emplace(partition, std::make_unique<Kept>(std::move(*lease), *this)).first->second;
    show_owned();
    work_.gained({partition, kept.lease(), token});
    return true;
  }

  void give_up_if(auto condition) {
    std::vector<int> leaving;
    for (auto& [partition, kept] : owned_) {
      if (condition(*kept, partition)) leaving.push_back(partition);
    }
    for (const int partition : leaving) work_.will_give_up(partition);
    for (const int partition : leaving) give_up(partition);
  }

  // The lease goes last: until then nobody else has it.
  void give_up(int partition) {
    work_.give_up(partition);
    const auto kept = std::move(owned_.extract(partition).mapped());
    show_owned();
    (void)kept->lease().release(options_.store_timeout);  // what fails runs out
  }

  // ---- between the thread and the others ---------------------------------------------------

  void show_owned() LEASEHOLD_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    shown_.clear();
    for (const auto& [partition, kept] : owned_) shown_.push_back(partition);
  }
  void tell(const Result<bool>& settled) LEASEHOLD_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    trouble_ = settled ? std::nullopt : std::optional(settled.error());
  }
  void wake() LEASEHOLD_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    woken_ = true;
    changed_.notify_one();
  }
  void pause(const std::stop_token& stop, Millis span) LEASEHOLD_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    changed_.wait_for(mutex_, stop, span, [this]() LEASEHOLD_REQUIRES(mutex_) { return woken_; });
    woken_ = false;
  }

  Client client_;
  const LockName group_;
  PartitionsOptions options_;
  PartitionWork& work_;

  // The thread's.
  std::unique_ptr<Kept> membership_;
  std::map<int, std::unique_ptr<Kept>> owned_;

  mutable Mutex mutex_;
  ConditionVariable changed_;
  bool woken_ LEASEHOLD_GUARDED_BY(mutex_) = false;
  std::vector<int> shown_ LEASEHOLD_GUARDED_BY(mutex_);
  std::vector<std::string> members_ LEASEHOLD_GUARDED_BY(mutex_);
  std::optional<Error> trouble_ LEASEHOLD_GUARDED_BY(mutex_);
  std::jthread thread_;
};

Partitions::Partitions(std::unique_ptr<Core> core) : core_(std::move(core)) {}
Partitions::Partitions(Partitions&&) noexcept = default;
Partitions& Partitions::operator=(Partitions&&) noexcept = default;
Partitions::~Partitions() = default;

Result<Partitions> Partitions::join(Client client, const LockName& group, PartitionsOptions options,
                                    PartitionWork& work) {
  auto core = std::make_unique<Core>(std::move(client), group, std::move(options), work);
  TRY(core->join());
  return Partitions(std::move(core));
}

void Partitions::leave() {
  if (core_) core_->leave();
}
std::vector<int> Partitions::owned() const {
  return core_->owned();
}
std::vector<std::string> Partitions::members() const {
  return core_->members();
}
std::optional<Error> Partitions::trouble() const {
  return core_->trouble();
}

Result<Route> route(Client& client, const LockName& group, int count, std::string_view key,
                    CallOptions options) {
  Route found{.partition = partition_of(key, count)};
  const LockName lock = TRY(partition_lock(group, found.partition));
  const auto status = TRY(client.inspect(lock, std::move(options)));
  const auto holder = status.holder();
  const auto said = holder ? Introduction::parse(holder->note) : std::nullopt;
  if (!said || holder->kept) return found;
  found.member = said->member;
  found.note = said->note;
  found.token = holder->token;
  return found;
}

}  // namespace leasehold
