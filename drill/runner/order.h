// In which order a resource must have done what its clients were told.
//
// A resource of another program keeps no log for the drill. But every write has a value of its own
// and names the value that it was made from, and every read tells which one it saw. So the order
// follows, as far as there is one: an access comes after the write that it saw, and after what had
// been answered before it was asked for. A write whose answer was lost was done if somebody saw its
// value. Tokens tell who entered first; of claims, which overlap where leases do, the resource's
// own answers tell it: who was let write had entered last, and who was refused had been followed.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "leasehold/drill/history.h"

namespace leasehold::drill {

struct ResourceLog {
  // `accept` and `refuse`, by resource and in order, with the references of the history. The
  // process is not set.
  std::vector<Record> records;
  std::uint64_t writes = 0;          // acknowledged
  std::uint64_t lost = 0;            // of these: not among what led to the last value
  std::uint64_t foreign_values = 0;  // resources whose last value was never written
};

// Reads the accesses of clients; the history is sorted first. `last` is what each resource held in
// the end, by its name: that of the lock, or NAME#slot.
ResourceLog order_accesses(History& history,
                           const std::unordered_map<std::string, std::uint64_t>& last);

}  // namespace leasehold::drill
