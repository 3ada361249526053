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

// The two numbers of a refusal at a fence.
struct Refusal {
  std::int64_t offered = 0;
  std::int64_t mark = 0;
};

// A failure: a code for the program, a sentence for a person, and what the store itself said.
// No field ever holds a password.
struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string message;
  std::string store_words;
  std::optional<Refusal> refusal;

  Error(ErrorCode kind, std::string sentence, std::string words = {})
      : code(kind), message(std::move(sentence)), store_words(std::move(words)) {}
};

// "busy: lock 'x' is held by web-1:4711 (database is locked)". One line.
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
