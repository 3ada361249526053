#include "leasehold/drill/history.h"

#include <algorithm>
#include <cstdio>
#include <stdexcept>
#include <tuple>

namespace leasehold::drill {
namespace {

bool comes_before(const Record& one, const Record& other) {
  return std::tie(one.time, one.process, one.index) <
         std::tie(other.time, other.process, other.index);
}

void check_room(std::size_t used, std::uint64_t limit) {
  if (used > limit) throw std::length_error("a history has too many different names");
}

std::string seconds(std::int64_t nanoseconds) {
  char text[40];
  std::snprintf(text, sizeof text, "%.6f s", static_cast<double>(nanoseconds) / 1e9);
  return text;
}

}  // namespace

std::uint32_t History::Names::ref(std::string_view name) {
  const auto [found, added] =
      refs.try_emplace(std::string(name), static_cast<std::uint32_t>(names.size()));
  if (added) {
    check_room(names.size(), limit);
    names.emplace_back(name);
  }
  return found->second;
}

template <class Id>
std::uint32_t History::Ids<Id>::ref(const Id& id) {
  const auto [found, added] = refs.try_emplace(id, static_cast<std::uint32_t>(ids.size()));
  if (added) {
    check_room(ids.size(), limit);
    ids.push_back(id);
  }
  return found->second;
}

ProcessRef History::process(std::string_view name) {
  const auto ref = static_cast<ProcessRef>(processes_.ref(name));
  if (ref == last_.size()) last_.emplace_back();
  return ref;
}

LockRef History::lock(std::string_view name) {
  return locks_.ref(name);
}

StoreRef History::store(const StoreId& id) {
  return static_cast<StoreRef>(stores_.ref(id));
}

RequestRef History::request(const RequestId& id) {
  return requests_.ref(id);
}

Status History::append(Record record) {
  if (record.process == 0 || record.process >= last_.size()) {
    return fail(ErrorCode::invalid, "the record names no process of this history");
  }
  if (record.lock >= lock_count() || record.store >= store_count() ||
      record.request >= request_count()) {
    return fail(ErrorCode::invalid, "the record refers to a name that this history does not have");
  }
  if (!Mode::from_code(record.mode) || (record.slot != 0 && !record.is_permit())) {
    return fail(ErrorCode::invalid,
                "the record has a mode that there is not, or a slot without a permit");
  }
  Last& last = last_[record.process];
  if (record.time < last.time) {
    return fail(ErrorCode::invalid, "time of '" + process_name(record.process) +
                                        "' goes back from " + std::to_string(last.time) + " to " +
                                        std::to_string(record.time));
  }
  last.time = record.time;
  record.index = ++last.index;
  if (!records_.empty() && record.time < records_.back().time) sorted_ = false;
  records_.push_back(record);
  return {};
}

void History::sort() {
  if (!sorted_) std::sort(records_.begin(), records_.end(), comes_before);
  sorted_ = true;
}

std::string describe(const History& history, std::size_t at) {
  const Record& record = history.records()[at];
  std::string text = "#" + std::to_string(at) + " " + seconds(record.time) + " " +
                     history.process_name(record.process) + " ";
  text += to_string(record.kind);
  if (record.operation != Operation::none) {
    text += " ";
    text += to_string(record.operation);
  }
  const auto add = [&text](std::string_view name, const std::string& what) {
    text += " ";
    text += name;
    text += "=" + what;
  };
  if (record.lock != 0) add("lock", history.lock_name(record.lock));
  if (record.token != 0) add("token", std::to_string(record.token));
  if (record.request != 0) add("request", history.request_id(record.request).hex().substr(0, 8));
  if (record.sequence != 0) add("sequence", std::to_string(record.sequence));
  if (record.deadline != 0) add("deadline", seconds(record.deadline));
  if (record.value != 0) add("value", std::to_string(record.value));
  if (record.base != 0) add("base", std::to_string(record.base));
  if (record.store != 0) add("store", history.store_id(record.store).hex().substr(0, 8));
  if (record.epoch != 0) add("epoch", std::to_string(record.epoch));
  if (record.mode != 0) add("mode", to_string(*Mode::from_code(record.mode)));
  if (record.slot != 0) add("slot", std::to_string(record.slot - 1));
  return text;
}

}  // namespace leasehold::drill
