#include "transactions.h"

#include <algorithm>

#include "keys.h"

namespace leasehold::etcd {
namespace {

wire::RangeRequest& range_in(wire::RequestOp& op, const KeyRange& keys,
                             wire::RangeRequest::Order order, std::int64_t limit) {
  wire::RangeRequest& range = *op.mutable_range();
  range.set_key(keys.begin);
  range.set_range_end(keys.end);
  range.set_sort_target(wire::RangeRequest::CREATE);
  range.set_sort_order(order);
  range.set_limit(limit);
  return range;
}

}  // namespace

KeyRange below(const std::string& prefix) {
  return {prefix, end_of_prefix(prefix)};
}

std::vector<KeyRange> below_but(const std::string& outer, const std::string& inner) {
  return {{outer, inner}, {end_of_prefix(inner), end_of_prefix(outer)}};
}

std::vector<KeyRange> below_but_key(const std::string& outer, const std::string& key) {
  return {{outer, key}, {key + '\0', end_of_prefix(outer)}};
}

wire::Compare created_at(const std::string& key, std::int64_t revision) {
  wire::Compare compare;
  compare.set_target(wire::Compare::CREATE);
  compare.set_result(wire::Compare::EQUAL);
  compare.set_key(key);
  compare.set_create_revision(revision);
  return compare;
}

wire::Compare is_there(const std::string& key) {
  wire::Compare compare = created_at(key, 0);
  compare.set_result(wire::Compare::GREATER);
  return compare;
}

wire::Compare modified_at(const std::string& key, std::int64_t revision) {
  wire::Compare compare;
  compare.set_target(wire::Compare::MOD);
  compare.set_result(wire::Compare::EQUAL);
  compare.set_key(key);
  compare.set_mod_revision(revision);
  return compare;
}

wire::Compare without_lease(const std::string& key) {
  wire::Compare compare;
  compare.set_target(wire::Compare::LEASE);
  compare.set_result(wire::Compare::EQUAL);
  compare.set_key(key);
  compare.set_lease(0);
  return compare;
}

wire::Compare has_value(const std::string& key, std::string value) {
  wire::Compare compare;
  compare.set_target(wire::Compare::VALUE);
  compare.set_result(wire::Compare::EQUAL);
  compare.set_key(key);
  compare.set_text(std::move(value));
  return compare;
}

wire::Compare nothing_in(const KeyRange& range) {
  wire::Compare compare = created_at(range.begin, 0);
  compare.set_range_end(range.end);
  return compare;
}

wire::Compare nothing_in(const std::string& folder) {
  return nothing_in(below(folder));
}

wire::Compare nothing_before(const KeyRange& range, std::int64_t revision) {
  wire::Compare compare = created_at(range.begin, revision - 1);
  compare.set_result(wire::Compare::GREATER);
  compare.set_range_end(range.end);
  return compare;
}

wire::Compare nothing_after(const std::string& folder, std::int64_t revision) {
  wire::Compare compare = created_at(folder, revision + 1);
  compare.set_result(wire::Compare::LESS);
  compare.set_range_end(end_of_prefix(folder));
  return compare;
}

wire::RequestOp get(const std::string& key) {
  wire::RequestOp op;
  op.mutable_range()->set_key(key);
  return op;
}

wire::RequestOp get_without_value(const std::string& key) {
  wire::RequestOp op = get(key);
  op.mutable_range()->set_keys_only(true);
  return op;
}

wire::RequestOp put(const std::string& key, std::string value, std::int64_t lease) {
  wire::RequestOp op;
  op.mutable_put()->set_key(key);
  op.mutable_put()->set_value(std::move(value));
  op.mutable_put()->set_lease(lease);
  return op;
}

wire::RequestOp put_on(const std::string& key, std::int64_t lease) {
  wire::RequestOp op = put(key, "", lease);
  op.mutable_put()->set_ignore_value(true);
  return op;
}

wire::RequestOp erase(const std::string& key) {
  wire::RequestOp op;
  op.mutable_delete_range()->set_key(key);
  return op;
}

wire::RequestOp erase(const KeyRange& range) {
  wire::RequestOp op = erase(range.begin);
  op.mutable_delete_range()->set_range_end(range.end);
  return op;
}

wire::RequestOp erase_if(const std::string& key, std::string value) {
  wire::RequestOp op;
  *op.mutable_txn()->add_compare() = has_value(key, std::move(value));
  *op.mutable_txn()->add_success() = erase(key);
  return op;
}

wire::RequestOp all_in(const std::string& folder) {
  wire::RequestOp op;
  range_in(op, below(folder), wire::RangeRequest::ASCEND, 0);
  return op;
}

wire::RequestOp all_without_values(const std::string& folder) {
  wire::RequestOp op = all_in(folder);
  op.mutable_range()->set_keys_only(true);
  return op;
}

wire::RequestOp first_in(const std::string& folder) {
  wire::RequestOp op;
  range_in(op, below(folder), wire::RangeRequest::ASCEND, 1);
  return op;
}

wire::RequestOp newest_in(const KeyRange& range, std::int64_t count) {
  wire::RequestOp op;
  range_in(op, range, wire::RangeRequest::DESCEND, count).set_keys_only(true);
  return op;
}

wire::RequestOp newest_before(const KeyRange& range, std::int64_t revision) {
  wire::RequestOp op = newest_in(range, 1);
  op.mutable_range()->set_max_create_revision(revision - 1);
  return op;
}

namespace {

using Operations = google::protobuf::RepeatedPtrField<wire::RequestOp>;

// Whether one of its operations, or of those nested in it, is so.
template <class Is>
bool any_in(const wire::TxnRequest& request, Is is) {
  const auto any = [&](const Operations& operations) {
    return std::any_of(operations.begin(), operations.end(), [&](const wire::RequestOp& op) {
      return op.has_txn() ? any_in(op.txn(), is) : is(op);
    });
  };
  return any(request.success()) || any(request.failure());
}

}  // namespace

int operations_in(const wire::TxnRequest& request) {
  int nested = 0;
  for (const Operations* branch : {&request.success(), &request.failure()}) {
    for (const wire::RequestOp& op : *branch) {
      if (op.has_txn()) nested = std::max(nested, operations_in(op.txn()));
    }
  }
  return std::max({request.compare_size(), request.success_size(), request.failure_size()}) +
         nested;
}

bool puts_something(const wire::TxnRequest& request) {
  return any_in(request, [](const wire::RequestOp& op) { return op.has_put(); });
}

bool changes_something(const wire::TxnRequest& request) {
  return any_in(request, [](const wire::RequestOp& op) { return !op.has_range(); });
}

namespace {

// The numbers of the fields are the same in request and response.
std::vector<int> kinds_of(const Operations& operations) {
  std::vector<int> kinds;
  for (const wire::RequestOp& op : operations) kinds.push_back(op.request_case());
  return kinds;
}

bool has_real_keys(const wire::ResponseOp& response) {
  const auto& kvs = response.range().kvs();
  return std::all_of(kvs.begin(), kvs.end(), [](const wire::KeyValue& kv) {
    return kv.create_revision() > 0 && kv.mod_revision() > 0 && !kv.key().empty();
  });
}

}  // namespace

ExpectedAnswer::ExpectedAnswer(const wire::TxnRequest& request)
    : on_success_(kinds_of(request.success())), on_failure_(kinds_of(request.failure())) {}

bool ExpectedAnswer::is(const wire::TxnResponse& response) const {
  const std::vector<int>& kinds = response.succeeded() ? on_success_ : on_failure_;
  const auto fits = [](const wire::ResponseOp& answer, int kind) {
    return answer.response_case() == kind && has_real_keys(answer);
  };
  return response.header().revision() > 0 &&
         std::equal(response.responses().begin(), response.responses().end(), kinds.begin(),
                    kinds.end(), fits);
}

const wire::KeyValue* first_kv(const wire::TxnResponse& response, int index) {
  if (index >= response.responses_size()) return nullptr;
  const wire::RangeResponse& range = response.responses(index).range();
  return range.kvs_size() == 0 ? nullptr : &range.kvs(0);
}

const wire::KeyValue* lock_at_name(const wire::TxnResponse& response, int index) {
  const wire::KeyValue* kv = first_kv(response, index);
  return kv != nullptr && kv->lease() != 0 ? kv : nullptr;
}

const wire::KeyValue* holder_of(const wire::KeyValue* first, const wire::KeyValue* at_name) {
  if (first == nullptr || at_name == nullptr) return first == nullptr ? at_name : first;
  const auto value = OwnValue::parse(first->value());
  return value && value->state == OwnValue::State::waits ? at_name : first;
}

}  // namespace leasehold::etcd
