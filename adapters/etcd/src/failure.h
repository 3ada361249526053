// How a call to etcd failed, and what that proves.
#pragma once

#include <string>

#include "leasehold/error.h"

namespace grpc {
class Status;
}

namespace leasehold::etcd {

struct Failure {
  enum class Kind {
    stopped,    // the caller's stop token came, and nothing was sent
    closed,     // the store is closed, and nothing was sent
    not_sent,   // no connection: nothing of it reached a server
    refused,    // the server said that it did not do it
    ambiguous,  // it may have been done, or may still be
  };
  Kind kind = Kind::ambiguous;
  bool silence = false;  // no answer came in time
  std::string words;

  // Of a call that a connection took: refused or ambiguous.
  static Failure of(const grpc::Status& status);

  bool ambiguous() const { return kind == Kind::ambiguous; }
  // It was taken, and what came back is not the server's word.
  bool connection_is_suspect() const { return ambiguous() && !words.starts_with("etcdserver: "); }
  bool lease_is_gone() const;
  // Refused, except that the transaction which fills the server up is applied, and then refused.
  bool out_of_space() const;
  bool token_is_refused() const;

  // `address` begins the sentence.
  Error error(const std::string& address) const;
};

// What a Failure that is out_of_space() has become. Whether its transaction was done is seen by
// looking: the server has finished with it before it answers.
bool is_full(const Error& error);
ErrorCode code_when_full(bool nothing_has_changed);

}  // namespace leasehold::etcd
