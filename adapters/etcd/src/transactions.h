// The pieces that transactions are made of.
#pragma once

#include <string>
#include <vector>

#include "wire.pb.h"

namespace leasehold::etcd {

// ---- if

// No key: revision 0.
wire::Compare created_at(const std::string& key, std::int64_t revision);
wire::Compare modified_at(const std::string& key, std::int64_t revision);
wire::Compare nothing_in(const std::string& folder);
// No key of the folder was created before `revision`.
wire::Compare nothing_before(const std::string& folder, std::int64_t revision);

// ---- then

wire::RequestOp get(const std::string& key);
wire::RequestOp get_without_value(const std::string& key);
wire::RequestOp put(const std::string& key, std::string value, std::int64_t lease);
wire::RequestOp erase(const std::string& key);
wire::RequestOp all_in(const std::string& folder);  // in the order of creation
wire::RequestOp first_in(const std::string& folder);
// The `count` newest, newest first, without values.
wire::RequestOp newest_in(const std::string& folder, std::int64_t count);
// The newest that was created before `revision`.
wire::RequestOp newest_before(const std::string& folder, std::int64_t revision);

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

}  // namespace leasehold::etcd
