// A lock with permits as one transaction saw it, and what follows for one request.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "keys.h"
#include "slots.h"
#include "transactions.h"

namespace leasehold::etcd {

class PermitView {
 public:
  // What the transaction must ask, at the end of one of its branches.
  static void ask(google::protobuf::RepeatedPtrField<wire::RequestOp>& operations, const Keys& keys,
                  const LockName& lock, const RequestId& request);
  // `response` must outlive it.
  PermitView(const wire::TxnResponse& response, const Keys& keys, const LockName& lock,
             const RequestId& request, Mode mode);

  std::int64_t revision() const { return revision_; }
  const wire::KeyValue* lineage() const { return lineage_; }
  const wire::KeyValue* at_name() const { return at_name_; }  // a lock there
  bool is_withdrawn() const { return withdrawn_; }
  const wire::KeyValue* own() const { return own_ ? requests_[*own_].kv : nullptr; }
  // Who may be told to be in the way: if no other request is, a slot whose owner cannot be read.
  // Null if nobody is.
  const wire::KeyValue* holder() const;

  // Set by an operator.
  std::optional<std::int64_t> set() const { return set_; }
  struct Use {
    Mode mode;
    bool set;  // by an operator
  };
  // How the lock is used, if that does not go with this request.
  std::optional<Use> conflict() const;

  // Whether it fits beside all who have a slot and all who came before.
  bool fits() const;
  // The lowest that is free, if each who came before and has none yet takes one. If it fits.
  Slot lowest_free_slot() const;
  // The one that it has.
  std::optional<Slot> own_slot() const;
  std::int64_t created(Slot slot) const { return slots_.created(slot); }
  // It is free, but its key is still there: when that was modified, else 0.
  std::int64_t left_over(Slot slot) const;

  // The key of who came last before it, if that one waits too. Nothing: it is the first who waits.
  std::optional<std::string> waits_behind() const;

 private:
  struct Request {
    const wire::KeyValue* kv;
    std::string_view leaf;
    Mode mode;
    std::optional<Slot> slot;
  };
  // How many of them came before it; all, if it has no place.
  std::size_t before() const { return own_.value_or(requests_.size()); }
  bool is_taken(Slot slot) const;
  std::int64_t permits() const;

  const Mode mode_;
  const std::int64_t revision_;
  std::vector<Request> requests_;  // in the order of creation
  Slots slots_;
  std::optional<std::int64_t> set_;
  std::optional<std::size_t> own_;
  const wire::KeyValue* at_name_;
  const wire::KeyValue* holder_;
  const wire::KeyValue* unknown_ = nullptr;  // the first slot that is taken by nobody knows whom
  const wire::KeyValue* lineage_;
  const bool withdrawn_;
};

}  // namespace leasehold::etcd
