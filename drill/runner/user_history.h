// The history of a drill of the user's own program, as far as it can be seen from outside.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "leasehold/drill/history.h"
#include "leasehold/store.h"

namespace leasehold::drill {

// Each call is something that was seen just now. Not thread safe.
class UserHistory {
 public:
  explicit UserHistory(std::string lock) : lock_(std::move(lock)) {}

  void took(const std::string& who, const LockStatus& status);
  void still_has(const std::string& who, const LockStatus& status);
  void gave_back(const std::string& who, Kind answer);
  // The resource has changed: `who` has read what was there, and replaced it.
  void wrote(const std::string& who);
  // The same by somebody whose lease is over.
  void wrote_late(const std::string& who);
  void was_refused(const std::string& who);
  void froze(const std::string& who);
  void thawed(const std::string& who);

  History take();

 private:
  struct Held {
    RequestRef request = 0;
    StoreRef store = 0;
    std::int64_t token = 0;
  };
  void client(const std::string& who, Kind kind, Operation operation, std::int64_t deadline = 0);
  void resource(const std::string& who, Kind kind, Operation operation);
  void nemesis(const std::string& who, Kind kind);
  void add(Record record, const std::string& process, Kind kind, Operation operation);

  const std::string lock_;
  History history_;
  std::map<std::string, Held> held_;
  std::uint64_t value_ = 0;
};

}  // namespace leasehold::drill
