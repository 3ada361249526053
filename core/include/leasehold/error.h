// What can go wrong, and how it is told.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <tl/expected.hpp>

namespace leasehold {

enum class ErrorCode {
  busy,                    // somebody else holds the lock; an answer, not a fault
  timeout,                 // waited as long as asked, and somebody else still holds it
  cancelled,               // the caller's stop token was requested
  unavailable,             // the store did not do it, and says so (or cannot be reached)
  outcome_unknown,         // it may or may not have been done: the reply was lost
  fenced_out,              // the resource refused a stale token: another holder has entered
  lost,                    // this lease has ended, or has less time left than asked for
  unsafe_for_correctness,  // the store cannot promise what was asked of it
  invalid,                 // the caller's input; the message names the field and the limit
  unsupported,             // this store or this machine cannot do that
  internal,                // a defect of Leasehold
};

// The code's name as written above. Never fails.
std::string_view to_string(ErrorCode code);

// What a fence refused, and why.
struct Refusal {
  enum class Reason {
    foreign,     // a token of another lineage
    swept,       // at or below the floor, where the resource has no mark
    unknown,     // marks were swept, and the fence knew none of this token's store
    adopted,     // lower than the number that the operator adopted
    lower,       // another holder has entered since
    twice,       // the same number from another request
    again,       // it has entered already, and wants to enter only if it has not
    late,        // a later write of the same holder was done before
    reused,      // its sequence number was used for another write
    unnumbered,  // the holder numbers its writes, and this one has no number
  };
  std::int64_t offered = 0;  // the token's number
  std::int64_t mark = 0;     // the number that it was compared with
  Reason why = Reason::lower;
  std::string lineage = {};  // that the fence follows; empty: not told
  std::string adopt = {};    // `leasehold fence adopt URL` and this would let a foreign token in
};
std::string_view to_string(Refusal::Reason why);

// A failure: a code for the program, a sentence for a person, and what the store itself said.
// No field ever holds a password. What a program decides by is never in a sentence.
struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string message;
  std::string store_words;
  std::string address;     // of the store or resource that failed; empty: none did
  std::string store_code;  // how the store names its failure, e.g. an SQLSTATE; empty: it did not
  std::optional<Refusal> refusal;

  Error(ErrorCode kind, std::string sentence, std::string words = {})
      : code(kind), message(std::move(sentence)), store_words(std::move(words)) {}
};

// The same failure, at this address.
inline Error error_at(std::string address, Error error) {
  error.address = std::move(address);
  return error;
}

// For people, on one line: "sqlite:/tmp/locks.db: the file cannot be written (disk I/O error)".
// `url` stands in a command that it advises to run.
std::string sentence(const Error& error, std::string_view url = "URL");
// The same after the code: "busy: lock 'x' is not free: web-1:4711 holds it or is next".
std::string to_string(const Error& error);

template <class T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

inline tl::unexpected<Error> fail(ErrorCode code, std::string message,
                                  std::string store_words = {}) {
  return tl::unexpected<Error>(Error(code, std::move(message), std::move(store_words)));
}
inline tl::unexpected<Error> fail(Error error) {
  return tl::unexpected<Error>(std::move(error));
}

}  // namespace leasehold
