#include "rota.h"

#include <algorithm>
#include <utility>

#include "ledger.h"

namespace leasehold::drill {

Rota::Rota(Diary diary) : diary_(std::move(diary)), last_word_(now()) {}

void Rota::gained(const OwnedPartition& partition) {
  const Grant grant = grant_of(partition.lease, partition.token, last_word_);
  last_word_ = grant.told;
  const Status written = diary_.granted(grant);
  const MutexLock lock(mutex_);
  if (!written) written_ = written;
  mine_.emplace(partition.number, Mine{grant, &partition.lease});
  changed_.notify_all();
}

void Rota::give_up(int partition) {
  const MutexLock lock(mutex_);
  const Grant grant = mine_.extract(partition).mapped().grant;
  changed_.wait(mutex_, [&]() LEASEHOLD_REQUIRES(mutex_) { return in_hand_ != partition; });
  const Status written = diary_.gives_back(grant);
  last_word_ = now();
  if (!written) written_ = written;
}

std::map<int, Rota::Mine>::iterator Rota::next() {
  return std::min_element(mine_.begin(), mine_.end(), [](const auto& one, const auto& other) {
    return one.second.last_turn < other.second.last_turn;
  });
}

Result<std::optional<Rota::Turn>> Rota::take_up(Millis wait_for_new) {
  const MutexLock lock(mutex_);
  const auto has_new = [this]() LEASEHOLD_REQUIRES(mutex_) {
    const auto first = next();
    return !written_ || (first != mine_.end() && first->second.last_turn == 0);
  };
  changed_.wait_for(mutex_, wait_for_new, has_new);
  if (!written_) return fail(written_.error());
  const auto first = next();
  if (first == mine_.end()) return std::nullopt;
  Mine& mine = first->second;
  mine.last_turn = ++turns_;
  if (!mine.lease->require()) return std::nullopt;
  in_hand_ = first->first;
  Turn turn{first->first, mine.grant};
  ++mine.grant.pass.sequence;
  return turn;
}

void Rota::put_down() {
  const MutexLock lock(mutex_);
  in_hand_.reset();
  changed_.notify_all();
}

}  // namespace leasehold::drill
