#include "queue.h"

#include <algorithm>

#include "kit/text/number.h"

namespace leasehold::zookeeper {

// ---- slots ----------------------------------------------------------------------------------

// "leasehold 2" and for each slot " <slot>:<number>".
std::optional<Slots> Slots::parse(std::string_view text) {
  Slots slots;
  if (!text.starts_with(kRecordMark)) return slots;
  text.remove_prefix(kRecordMark.size());
  if (kit::take_number<std::int64_t>(text) != kFormat) return std::nullopt;
  while (!text.empty()) {
    if (!text.starts_with(' ')) return std::nullopt;
    text.remove_prefix(1);
    const auto slot = kit::take_number<std::int64_t>(text);
    if (!slot || *slot < 0 || *slot >= Mode::kMostPermits || !text.starts_with(':')) {
      return std::nullopt;
    }
    text.remove_prefix(1);
    const auto number = kit::take_number<std::int64_t>(text);
    if (!number || !slots.put(*slot, *number)) return std::nullopt;
  }
  return slots;
}

std::string Slots::str() const {
  std::string text = std::string(kRecordMark) + std::to_string(kFormat);
  for (const auto& [slot, number] : by_slot_) {
    text.append(" ").append(std::to_string(slot)).append(":").append(std::to_string(number));
  }
  return text;
}

std::optional<Slot> Slots::of(std::int64_t number) const {
  const auto found = by_number_.find(number);
  return found == by_number_.end() ? std::nullopt : std::optional(Slot{found->second});
}

Slot Slots::give(std::int64_t number) {
  std::int64_t lowest = 0;
  for (const auto& [slot, taken_by] : by_slot_) {
    if (slot != lowest) break;
    ++lowest;
  }
  put(lowest, number);
  return Slot{lowest};
}

bool Slots::put(std::int64_t slot, std::int64_t number) {
  if (by_slot_.contains(slot) || by_number_.contains(number)) return false;
  by_slot_.emplace(slot, number);
  by_number_.emplace(number, slot);
  return true;
}

// ---- the queue ------------------------------------------------------------------------------

Queue::Queue(const std::vector<std::string>& names) : ordered_(names_in_order(names)) {
  for (const std::string& name : names) {
    if (const auto permits = permits_in(name)) set_permits_ = permits;
  }
}

std::optional<std::size_t> Queue::place_of(std::string_view name) const {
  const auto found = std::find(ordered_.begin(), ordered_.end(), name);
  if (found == ordered_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - ordered_.begin());
}

std::optional<Mode> Queue::use_before(std::size_t place) const {
  if (set_permits_) return Mode::permit_of(*set_permits_);
  return place == 0 ? std::nullopt : std::optional(mode(0));
}

std::int64_t Queue::permits(std::size_t place) const {
  return set_permits_.value_or(mode(0).is_permit() ? mode(0).permits() : mode(place).permits());
}

std::optional<std::size_t> Queue::last_other_before(std::size_t place) const {
  const Mode::Kind kind = mode(place).kind();
  while (place > 0) {
    --place;
    if (kind == Mode::Kind::exclusive || mode(place).kind() != kind) return place;
  }
  return std::nullopt;
}

bool Queue::fits(std::size_t place) const {
  if (place == 0) return true;
  if (last_other_before(place)) return false;
  return !mode(place).is_permit() || static_cast<std::int64_t>(place) < permits(place);
}

bool Queue::holds(std::size_t place, const Slots& slots) const {
  if (place == 0 || !mode(place).is_permit()) return fits(place);
  return slots.of(number(place)).has_value();
}

// Unless one of those who came when there were more may still take a slot by what it saw then.
bool Queue::has_one_permit() const {
  if (set_permits_) return set_permits_ == 1;
  return std::all_of(ordered_.begin(), ordered_.end(), [](std::string_view name) {
    const Mode mode = mode_of(name);
    return !mode.is_permit() || mode.permits() == 1;
  });
}

Slots Queue::with_slots_up_to(std::size_t place, const Slots& slots) const {
  std::vector<std::int64_t> without;
  Slots next;
  for (std::size_t i = 0; i < ordered_.size(); ++i) {
    if (const auto slot = slots.of(number(i))) {
      next.put(slot->number, number(i));
    } else if (i <= place) {
      without.push_back(number(i));
    }
  }
  for (const std::int64_t it : without) next.give(it);
  return next;
}

std::optional<std::size_t> Queue::waits_for(std::size_t place, const Slots& slots) const {
  if (const auto other = last_other_before(place)) return other;
  if (has_one_permit()) return place - 1;
  // Of permits, when anybody before it may let it in, or when all before it are in already, as
  // after a change of their number.
  const bool is_next = static_cast<std::int64_t>(place) <= permits(place);
  if (is_next || slots.of(number(place - 1))) return std::nullopt;
  return place - 1;
}

}  // namespace leasehold::zookeeper
