// Who stands in a lock's folder, who of them holds, and what the others wait for.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "leasehold/mode.h"
#include "node_names.h"

namespace leasehold::zookeeper {

// Which permit has which slot, as it stands in the data of the lock's folder: by the number in the
// name of the permit's node. The slot of a node that has gone is free.
class Slots {
 public:
  // What another program has put there counts as none; nothing if a later version of ours has.
  static std::optional<Slots> parse(std::string_view text);
  std::string str() const;

  std::optional<Slot> of(std::int64_t number) const;
  // The lowest that is free.
  Slot give(std::int64_t number);
  // False if the slot is taken, or the number has one.
  bool put(std::int64_t slot, std::int64_t number);

 private:
  std::map<std::int64_t, std::int64_t> by_slot_;
  std::unordered_map<std::int64_t, std::int64_t> by_number_;
};

// Refers to the names. A place in it is an index.
class Queue {
 public:
  explicit Queue(const std::vector<std::string>& names);

  std::size_t size() const { return ordered_.size(); }
  std::string_view name(std::size_t place) const { return ordered_[place]; }
  Mode mode(std::size_t place) const { return mode_of(ordered_[place]); }
  std::int64_t number(std::size_t place) const { return sequence_in(ordered_[place]).value_or(0); }
  std::optional<std::size_t> place_of(std::string_view name) const;
  // By an operator.
  std::optional<std::int64_t> set_permits() const { return set_permits_; }

  // How the lock was used when this one came; nothing: not at all.
  std::optional<Mode> use_before(std::size_t place) const;
  // Beside all before it. A permit needs a slot besides.
  bool fits(std::size_t place) const;
  // With the slots as they were when the names were read.
  bool holds(std::size_t place, const Slots& slots) const;
  // For one that fits: a slot for each up to it that has none, in the order of the queue, whose
  // tokens are in that order too. Those who have gone give theirs back.
  Slots with_slots_up_to(std::size_t place, const Slots& slots) const;

  // There is one permit, and no doubt of it: its slot is 0, and need not be written down.
  bool has_one_permit() const;
  // Of one that holds as a permit.
  Slot slot_of(std::size_t place, const Slots& slots) const {
    return slots.of(number(place)).value_or(Slot{0});
  }

  // For one that does not fit: whose end, or whose grant, may let it in. Nothing: anybody's end.
  std::optional<std::size_t> waits_for(std::size_t place, const Slots& slots) const;

 private:
  std::int64_t permits(std::size_t place) const;
  // The last one before that is not of its kind.
  std::optional<std::size_t> last_other_before(std::size_t place) const;

  std::vector<std::string_view> ordered_;
  std::optional<std::int64_t> set_permits_;
};

}  // namespace leasehold::zookeeper
