// The locks that more than one may hold.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "store_file.h"
#include "sweep.h"

namespace leasehold::sqlite {

// Who holds a lock beside others: table `holder`, with a row for each. A lock with one exclusive
// holder has none; it is a row of table `lock`.
//
// Not thread safe. Each call is inside a transaction of its caller, unless it says otherwise.
class ManyHolders {
 public:
  explicit ManyHolders(StoreFile& file);

  struct Holder {
    RequestId request;
    Mode mode;
    std::optional<Slot> slot;
    TokenNumber token;
    StoreId store;  // as it was at the grant
    std::string owner;
    std::string note;
    std::int64_t granted_at;
    std::int64_t expires_at;
    std::int64_t ttl;
    bool kept;

    // What one who waits, or a message, calls it.
    std::string label() const;
  };

  // Of a request that is granted; nothing if it is not, or is kept after its release.
  [[nodiscard]] Result<std::optional<Holder>> find(const RequestId& request, std::int64_t at);
  // Any of those who hold the lock now: they all hold it in modes that mix.
  [[nodiscard]] Result<std::optional<Holder>> any(const LockName& lock, std::int64_t at);
  // All of them, by slots. Those whose time is over are taken out. Only here is it seen that one
  // was made or renewed in a time to come: see LockTable::count_from.
  [[nodiscard]] Result<std::vector<Holder>> all(const LockName& lock, std::int64_t at);
  // The same, by tokens, for somebody who only looks; needs no transaction.
  [[nodiscard]] Result<std::vector<Holder>> look(const LockName& lock, std::int64_t at);

  [[nodiscard]] Status add(const AcquireCall& call, const Granted& granted, std::int64_t at);
  // False if it is not granted.
  [[nodiscard]] Result<bool> renew(const RenewCall& call, std::int64_t at);
  [[nodiscard]] Result<bool> keep(const ReleaseCall& call, std::int64_t at);
  // Also true if it was released here before, a moment ago: a retry whose first answer was lost.
  [[nodiscard]] Result<bool> release(const RequestId& request, std::int64_t at);
  [[nodiscard]] Result<bool> force_release(const RequestId& seen, std::int64_t at);

  [[nodiscard]] Status sweep_step(std::int64_t at) { return sweep_.step(at); }

 private:
  Result<bool> run(Statement& statement);
  Result<Holder> read(const Statement& row) const;
  Result<std::vector<Holder>> read_all(Prepared& which, const LockName& lock, std::int64_t at);
  void remember_release(const RequestId& request);
  Result<Statement*> sql(Prepared& statement) { return statement.in(file_.connection()); }

  StoreFile& file_;
  Sweep sweep_;
  std::deque<RequestId> released_;
  Prepared find_;
  Prepared any_;
  Prepared drop_ended_;
  Prepared count_from_;
  Prepared all_;
  Prepared look_;
  Prepared add_;
  Prepared renew_;
  Prepared keep_;
  Prepared release_;
};

}  // namespace leasehold::sqlite
