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
  // What the server means. It has only words for it, which are read once, when they come.
  enum class Meaning { other, lease_gone, no_space, token_refused, not_accepted };
  Kind kind = Kind::ambiguous;
  bool silence = false;  // no answer came in time
  std::string words = {};
  Meaning meaning = Meaning::other;
  bool servers_word = false;  // not gRPC's

  // Of a call that a connection took: refused or ambiguous.
  static Failure of(const grpc::Status& status);
  // The answer is not one to what was asked.
  static Failure misfit() { return {.words = "the answer does not fit the transaction"}; }

  bool ambiguous() const { return kind == Kind::ambiguous; }
  // It was taken, and what came back is not the server's word.
  bool connection_is_suspect() const { return ambiguous() && !servers_word; }
  bool means(Meaning what) const { return kind == Kind::refused && meaning == what; }
  bool lease_is_gone() const { return means(Meaning::lease_gone); }
  // Refused, except that the transaction which fills the server up is applied, and then refused.
  bool out_of_space() const { return means(Meaning::no_space); }
  bool token_is_refused() const { return means(Meaning::token_refused); }
  // Because of what it was asked to do.
  bool is_the_callers() const { return means(Meaning::not_accepted); }

  Error error(const std::string& address) const;
};

// What a Failure that is out_of_space() has become. Whether its transaction was done is seen by
// looking: the server has finished with it before it answers.
bool is_full(const Error& error);
ErrorCode code_when_full(bool nothing_has_changed);

}  // namespace leasehold::etcd
