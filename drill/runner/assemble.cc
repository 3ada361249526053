#include "assemble.h"

#include <algorithm>

#include "kit/try.h"

namespace leasehold::drill {
namespace {

// Translates records of one history into another.
class Merge {
 public:
  explicit Merge(const History& from) : resource_(into_.process("resource")) {
    for (std::size_t i = 1; i < from.process_count(); ++i) {
      processes_.push_back(into_.process(from.process_name(static_cast<ProcessRef>(i))));
    }
    for (std::size_t i = 1; i < from.lock_count(); ++i) {
      locks_.push_back(into_.lock(from.lock_name(static_cast<LockRef>(i))));
    }
    for (std::size_t i = 1; i < from.store_count(); ++i) {
      stores_.push_back(into_.store(from.store_id(static_cast<StoreRef>(i))));
    }
    for (std::size_t i = 1; i < from.request_count(); ++i) {
      requests_.push_back(into_.request(from.request_id(static_cast<RequestRef>(i))));
    }
  }

  void client(Record record) {
    record.process = processes_[record.process];
    add(translated(record));
  }
  void resource(Record record) {
    record.process = resource_;
    add(translated(record));
  }
  void nemesis(const Blow& blow) {
    Record record;
    record.time = blow.time;
    record.kind = blow.kind;
    record.operation = blow.operation;
    record.process = into_.process(blow.victim);
    if (!blow.lock.empty()) record.lock = into_.lock(blow.lock);
    add(record);
  }

  Result<History> take() {
    std::stable_sort(records_.begin(), records_.end(),
                     [](const Record& a, const Record& b) { return a.time < b.time; });
    for (const Record& record : records_) {
      TRY(into_.append(record));
    }
    into_.sort();
    return std::move(into_);
  }

 private:
  Record translated(Record record) const {
    record.lock = locks_[record.lock];
    record.store = stores_[record.store];
    record.request = requests_[record.request];
    return record;
  }
  void add(const Record& record) { records_.push_back(record); }

  History into_;
  const ProcessRef resource_;
  std::vector<ProcessRef> processes_{0};
  std::vector<LockRef> locks_{0};
  std::vector<StoreRef> stores_{0};
  std::vector<RequestRef> requests_{0};
  std::vector<Record> records_;
};

}  // namespace

Result<History> assemble(const History& clients, const ResourceLog& resource,
                         const std::vector<Blow>& blows) {
  Merge merge(clients);
  for (const Record& record : clients.records()) merge.client(record);
  for (const Record& record : resource.records) merge.resource(record);
  for (const Blow& blow : blows) merge.nemesis(blow);
  return merge.take();
}

}  // namespace leasehold::drill
