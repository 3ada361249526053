// One line of a history: something that a client, a store, a resource or a fault did.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "leasehold/mode.h"

namespace leasehold::drill {

enum class Kind : std::uint8_t {
  // a client, about an operation of its own
  invoke,   // it begins
  ok,       // it was done
  fail,     // it was not done
  unknown,  // it may have been done, or may still be
  // a store, at the moment of its decision
  grant,
  renew,
  expire,   // a grant ended by time
  release,  // a grant ended by request, or by an operator (operation `none`); with a deadline:
            // it ends then
  queue,    // a request has taken a place among those who wait
  leave,    // it has given that up, or was passed over, or the store has forgotten it
  // a resource, at the moment of its decision
  accept,
  refuse,
  sweep,  // with a lock: the marks of this resource are gone; without: those that have none refuse
          // the tokens of this store up to this one from now on
  // the nemesis; `process` is whom it hits
  fault,
  heal,
};

enum class Operation : std::uint8_t {
  none,
  acquire,
  renew,  // of a client: `ok` tells a new deadline, `fail` that the lease is lost
  release,
  read,   // enters the fence and reads
  write,  // passes the fence and writes
  pause,
  crash,
  disconnect,
  storm,  // messages are lost, repeated, late and out of order
  clock,  // the wall clock is set
};

std::string_view to_string(Kind kind);
std::string_view to_string(Operation operation);
std::optional<Kind> parse_kind(std::string_view text);
std::optional<Operation> parse_operation(std::string_view text);

// Names are kept once, in the History; 0 means none.
using ProcessRef = std::uint16_t;
using StoreRef = std::uint16_t;
using LockRef = std::uint32_t;
using RequestRef = std::uint32_t;

// Zero in any field means that the record does not say.
struct Record {
  std::int64_t time = 0;      // nanoseconds on the machine's boot clock
  std::int64_t deadline = 0;  // a client: when it ends its lease; a store: when the grant ends
  std::int64_t token = 0;
  std::uint64_t value = 0;  // what was read or written; each write has a value of its own
  std::uint64_t base = 0;   // of a write: the value that it was made from
  std::uint32_t index = 0;  // position in the log of its process, from 1
  RequestRef request = 0;   // a store's renew or release: who asked, not whom it hit
  LockRef lock = 0;         // the lock NAME, or the resource that it guards: with a slot NAME#slot
  std::uint32_t sequence = 0;  // of a write: orders the writes of one holder
  ProcessRef process = 0;
  StoreRef store = 0;  // lineage
  std::uint16_t epoch = 0;
  Kind kind = Kind::invoke;
  Operation operation = Operation::none;
  // Mode::code() of the request, of a grant with as many permits as the lock then has. Of an entry:
  // shared if it is only to read, beside others.
  std::int16_t mode = 0;
  std::uint16_t slot = 0;  // of a permit: its number + 1

  bool is_shared() const { return mode == Mode::shared().code(); }
  bool is_permit() const { return mode > 0; }
  void set_mode(Mode of_it, std::optional<Slot> its_slot = {}) {
    mode = static_cast<std::int16_t>(of_it.code());
    slot = its_slot ? static_cast<std::uint16_t>(its_slot->number + 1) : 0;
  }

  bool operator==(const Record&) const = default;
};
static_assert(sizeof(Record) == 72,
              "ten million of them must fit into a gibibyte with the checker");

}  // namespace leasehold::drill
