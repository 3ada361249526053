// The pieces that transactions are made of.
#pragma once

#include <string>
#include <vector>

#include "wire.pb.h"

namespace leasehold::etcd {

// All keys from `begin` on that lie before `end`.
struct KeyRange {
  std::string begin;
  std::string end;
};
KeyRange below(const std::string& prefix);
// What is below `outer`, but not below `inner`, which is a part of it.
std::vector<KeyRange> below_but(const std::string& outer, const std::string& inner);
std::vector<KeyRange> below_but_key(const std::string& outer, const std::string& key);

// ---- if

// No key: revision 0.
wire::Compare created_at(const std::string& key, std::int64_t revision);
wire::Compare is_there(const std::string& key);
wire::Compare modified_at(const std::string& key, std::int64_t revision);
// It is missing, or has no lease.
wire::Compare without_lease(const std::string& key);
wire::Compare has_value(const std::string& key, std::string value);
wire::Compare nothing_in(const KeyRange& range);
wire::Compare nothing_in(const std::string& folder);
// There are keys, and none was created before `revision`.
wire::Compare nothing_before(const KeyRange& range, std::int64_t revision);
// No key of the folder was created after `revision`.
wire::Compare nothing_after(const std::string& folder, std::int64_t revision);

// ---- then

wire::RequestOp get(const std::string& key);
wire::RequestOp get_without_value(const std::string& key);
wire::RequestOp put(const std::string& key, std::string value, std::int64_t lease);
// Puts what is there on another lease.
wire::RequestOp put_on(const std::string& key, std::int64_t lease);
wire::RequestOp erase(const std::string& key);
wire::RequestOp erase(const KeyRange& range);
// Only if it has this value.
wire::RequestOp erase_if(const std::string& key, std::string value);
wire::RequestOp all_in(const std::string& folder);  // in the order of creation
wire::RequestOp all_without_values(const std::string& folder);
wire::RequestOp first_in(const std::string& folder);
// The `count` newest, newest first, without values.
wire::RequestOp newest_in(const KeyRange& range, std::int64_t count);
// The newest that was created before `revision`.
wire::RequestOp newest_before(const KeyRange& range, std::int64_t revision);

// ---- the whole

// As the server counts them for its --max-txn-ops: of its three lists the longest, and on top of
// that the most that one of the transactions in it has.
int operations_in(const wire::TxnRequest& request);
// In any of its branches.
bool puts_something(const wire::TxnRequest& request);
bool changes_something(const wire::TxnRequest& request);

// ---- what came back

// What a transaction must be answered with. A server, or whatever sits between, that answers
// anything else must not be taken at its word.
class ExpectedAnswer {
 public:
  explicit ExpectedAnswer(const wire::TxnRequest& request);
  bool is(const wire::TxnResponse& response) const;

 private:
  std::vector<int> on_success_;  // which kind of operation, one after the other
  std::vector<int> on_failure_;
};

// Of a range; null: no such key, or no such response.
const wire::KeyValue* first_kv(const wire::TxnResponse& response, int index);

// Of a range of the key at a lock's name: a key with a lease is another program's lock, one without
// is somebody's data.
const wire::KeyValue* lock_at_name(const wire::TxnResponse& response, int index);
// Which one has the lock: the first key in its folder, or the lock at its name. Null if there is
// neither. Both have it if the other program came after the first.
const wire::KeyValue* holder_of(const wire::KeyValue* first, const wire::KeyValue* at_name);

}  // namespace leasehold::etcd
