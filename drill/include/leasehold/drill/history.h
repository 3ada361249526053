// What happened: records of many processes on one machine's clock, in memory.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "leasehold/drill/record.h"
#include "leasehold/error.h"
#include "leasehold/id.h"

namespace leasehold::drill {

// Append-only. Not thread safe; nothing blocks.
class History {
 public:
  // The number that stands for a name or an id; the same for the same. More than 65,535 processes
  // or stores, or 2^32 - 1 of the others, throw std::length_error.
  ProcessRef process(std::string_view name);
  LockRef lock(std::string_view name);
  StoreRef store(const StoreId& id);
  RequestRef request(const RequestId& id);

  // What a number stands for; "-" or an id of zeros for 0.
  const std::string& process_name(ProcessRef ref) const { return processes_.names[ref]; }
  const std::string& lock_name(LockRef ref) const { return locks_.names[ref]; }
  const StoreId& store_id(StoreRef ref) const { return stores_.ids[ref]; }
  const RequestId& request_id(RequestRef ref) const { return requests_.ids[ref]; }
  std::size_t process_count() const { return processes_.names.size(); }
  std::size_t lock_count() const { return locks_.names.size(); }
  std::size_t store_count() const { return stores_.ids.size(); }
  std::size_t request_count() const { return requests_.ids.size(); }

  // Adds a record as the next of its process, and gives it its index. The references must come
  // from this history. Its time must not be earlier than that of the same process's last record.
  // Fails with `invalid` otherwise; the history is then unchanged.
  [[nodiscard]] Status append(Record record);

  // Merges the processes by time. The order within a process stays.
  void sort();
  bool sorted() const { return sorted_; }

  const std::deque<Record>& records() const { return records_; }

 private:
  struct Names {
    std::uint64_t limit;
    std::vector<std::string> names{"-"};
    std::unordered_map<std::string, std::uint32_t> refs{};
    std::uint32_t ref(std::string_view name);
  };
  template <class Id>
  struct Ids {
    std::uint64_t limit;
    std::vector<Id> ids{Id(typename Id::Bytes{})};
    std::unordered_map<Id, std::uint32_t> refs{};
    std::uint32_t ref(const Id& id);
  };
  struct Last {
    std::int64_t time = 0;
    std::uint32_t index = 0;
  };

  Names processes_{UINT16_MAX};
  Names locks_{UINT32_MAX};
  Ids<StoreId> stores_{UINT16_MAX};
  Ids<RequestId> requests_{UINT32_MAX};
  std::vector<Last> last_{Last{}};  // by process
  std::deque<Record> records_;      // a vector would need half as much again while it grows
  bool sorted_ = true;
};

// "#12 1.500 s client-1 ok acquire lock=a token=7 request=00c0ffee…"; `at` is a position in
// records().
std::string describe(const History& history, std::size_t at);

}  // namespace leasehold::drill
