// What was done once under a key of a lock.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "store_file.h"

namespace leasehold::sqlite {

// The table `once`, as OnceRecords. What it answers is on disk. Not thread safe; outside of every
// transaction.
//
// A record, and that one is forgotten, is stored first and testified when it is known to be on
// disk. Until then its column on_disk has a number by which the testimony knows it: another process
// may have put another record in its place.
class RecordTable {
 public:
  explicit RecordTable(StoreFile& file);

  [[nodiscard]] Result<std::optional<OnceRecord>> recall(const LockName& lock,
                                                         const std::string& key);
  [[nodiscard]] Status record(const LockName& lock, const RequestId& request,
                              const std::string& key, const OnceRecord& what);
  [[nodiscard]] Result<std::vector<std::string>> list_keys(const LockName& lock);
  [[nodiscard]] Result<bool> forget(const LockName& lock, const std::string& key);

 private:
  // Its on_disk, or that of the record which was there before.
  Result<std::int64_t> store(const LockName& lock, const RequestId& request, const std::string& key,
                             const OnceRecord& what);
  Result<std::optional<std::int64_t>> on_disk_of(const LockName& lock, const std::string& key);
  Status settle(Prepared& testimony, const LockName& lock, const std::string& key,
                std::int64_t on_disk);
  Result<Statement*> sql(Prepared& statement) { return statement.in(file_.connection()); }

  StoreFile& file_;
  Prepared recall_;
  Prepared record_;
  Prepared stored_;
  Prepared is_on_disk_;
  Prepared mark_;
  Prepared remove_;
  Prepared holds_;
};

}  // namespace leasehold::sqlite
