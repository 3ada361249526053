// The partitions that a member owns, and which of them comes next.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "diary.h"
#include "kit/threads/thread_safety.h"
#include "leasehold/partitions.h"

namespace leasehold::drill {

// Between the thread of the pattern, which gains and gives up, and one that works.
class Rota final : public PartitionWork {
 public:
  // `diary`: of the pattern's thread.
  explicit Rota(Diary diary);

  struct Turn {
    int partition;
    Grant grant;
  };
  // The partition that has waited longest; one that is new comes first, and is waited for, at most
  // so long. Nothing: none is owned now. It is not given up before put_down(). Fails as the diary
  // has.
  [[nodiscard]] Result<std::optional<Turn>> take_up(Millis wait_for_new);
  void put_down();

  void gained(const OwnedPartition& partition) override;
  void give_up(int partition) override;

 private:
  struct Mine {
    Grant grant;
    const Lease* lease;
    std::uint64_t last_turn = 0;  // 0: it is new
  };
  std::map<int, Mine>::iterator next() LEASEHOLD_REQUIRES(mutex_);

  // Of the pattern's thread. It asks for all that it gets after its last word here.
  Diary diary_;
  std::int64_t last_word_;

  Mutex mutex_;
  ConditionVariable changed_;
  std::map<int, Mine> mine_ LEASEHOLD_GUARDED_BY(mutex_);
  std::optional<int> in_hand_ LEASEHOLD_GUARDED_BY(mutex_);
  std::uint64_t turns_ LEASEHOLD_GUARDED_BY(mutex_) = 0;
  Status written_ LEASEHOLD_GUARDED_BY(mutex_);
};

}  // namespace leasehold::drill
