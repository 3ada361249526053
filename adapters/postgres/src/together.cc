#include "together.h"

#include <algorithm>
#include <variant>

#include "common_store.h"

namespace leasehold::postgres {

Together::Together(std::span<const AnyAsked> batch, Doubts& doubts) : doubts_(doubts) {
  for (const AnyAsked& one : batch) {
    std::visit([this](auto* asked) { add(*asked); }, one);
  }
}

void Together::add(AskedAcquire& asked) {
  const bool is_first = locks_.insert(asked.call.lock.str()).second;
  if (is_first && asked.call.mode.is_exclusive()) acquires_.push_back(&asked);
}

void Together::add(AskedRelease& asked) {
  const bool is_first = locks_.insert(asked.call.lock.str()).second;
  const bool is_plain = asked.call.keep_for <= Millis(0) && !doubts_.doubts(asked.call.request);
  if (is_first && is_plain) releases_.push_back(&asked);
}

// A renewal may wait for a row. It goes on its own at once, so that nobody waits with it, nor it
// with them.
void Together::add(AskedRenew& asked) {
  asked.left_behind();
  asked.wake();
}

Together::Arguments Together::begin() {
  std::erase_if(acquires_, [](AskedAcquire* asked) { return !asked->begin(); });
  std::erase_if(releases_, [](AskedRelease* asked) { return !asked->begin(); });
  Arguments all;
  for (const AskedAcquire* asked : acquires_) {
    all.locks.add(asked->call.lock.str());
    all.requests.add(asked->call.request.hex());
    all.owners.add(asked->call.owner.str());
    all.ttls.add(number(asked->call.ttl.length()));
    all.notes.add(asked->call.note.str());
  }
  for (const AskedRelease* asked : releases_) {
    all.released_locks.add(asked->call.lock.str());
    all.released_requests.add(asked->call.request.hex());
  }
  return all;
}

void Together::answer(const Rows& rows) {
  for (int row = 0; row < rows.count(); ++row) {
    const auto place = static_cast<std::size_t>(rows.number(0, row)) - 1;
    if (rows.is_null(1, row)) {
      releases_.at(place)->answer(ReleaseReply::released);
      continue;
    }
    AskedAcquire& asked = *acquires_.at(place);
    const auto token = TokenNumber::of(rows.number(1, row));
    const auto store = rows.id<StoreId>(2, row);
    if (!token || !store) {
      asked.answer(fail(ErrorCode::outcome_unknown, "the server gave no token"));
    } else {
      asked.answer(Granted{*token, *store, asked.call.ttl.length(), /*fresh=*/true});
    }
  }
}

void Together::answer(const Error& error) {
  for (AskedAcquire* asked : acquires_) asked->answer(fail(error));
  for (AskedRelease* asked : releases_) asked->answer(fail(error));
}

}  // namespace leasehold::postgres
