#include "failure.h"

#include <grpcpp/support/status.h>

namespace leasehold::etcd {
namespace {

constexpr const char* kNoSpace = "NOSPACE";  // as etcd names the alarm

using Meaning = Failure::Meaning;

struct Phrase {
  std::string_view part;
  Meaning meaning;
};
constexpr Phrase kPhrases[] = {
    {"requested lease not found", Meaning::lease_gone},
    {"space exceeded", Meaning::no_space},
    {"invalid auth token", Meaning::token_refused},
    {"user name is empty", Meaning::token_refused},
    {"revision of auth store is old", Meaning::token_refused},
    {"too many operations", Meaning::not_accepted},
    {"duplicate key", Meaning::not_accepted},
    {"request is too large", Meaning::not_accepted},
    {"larger than max", Meaning::not_accepted},
    {"key is not provided", Meaning::not_accepted},
};

Meaning meaning_of(const std::string& words) {
  for (const auto& [part, meaning] : kPhrases) {
    if (words.find(part) != std::string::npos) return meaning;
  }
  return Meaning::other;
}

bool is_servers_word(const grpc::Status& status) {
  return status.error_message().starts_with("etcdserver: ");
}

// As the server's side of gRPC says it; ours begins with a capital.
bool too_large(const grpc::Status& status) {
  return status.error_message().starts_with("grpc: received message larger than max");
}

// The server decides these before it proposes anything, or when it applies nothing. What it says
// as UNAVAILABLE (no leader, leader changed, timed out, stopped) can come after the proposal.
bool proves_refusal(const grpc::Status& status) {
  switch (status.error_code()) {
    case grpc::StatusCode::UNIMPLEMENTED:
      return true;
    case grpc::StatusCode::NOT_FOUND:
    case grpc::StatusCode::INVALID_ARGUMENT:
    case grpc::StatusCode::FAILED_PRECONDITION:
    case grpc::StatusCode::PERMISSION_DENIED:
    case grpc::StatusCode::UNAUTHENTICATED:
    case grpc::StatusCode::OUT_OF_RANGE:
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      // gRPC itself uses some of these too, when the answer cannot be read.
      return is_servers_word(status) || too_large(status);
    default:
      return false;
  }
}

}  // namespace

Failure Failure::of(const grpc::Status& status) {
  return {.kind = proves_refusal(status) ? Kind::refused : Kind::ambiguous,
          .silence = status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED,
          .words = status.error_message(),
          .meaning = meaning_of(status.error_message()),
          .servers_word = is_servers_word(status)};
}

bool is_full(const Error& error) {
  return error.store_code == kNoSpace;
}

ErrorCode code_when_full(bool nothing_has_changed) {
  return nothing_has_changed ? ErrorCode::unavailable : ErrorCode::outcome_unknown;
}

Error Failure::error(const std::string& address) const {
  switch (kind) {
    case Kind::stopped:
      return error_at(address, Error(ErrorCode::cancelled, "stopped before anything was sent"));
    case Kind::closed:
      return error_at(address, Error(ErrorCode::unavailable, "the store is closed"));
    case Kind::not_sent:
      return error_at(address,
                      Error(ErrorCode::unavailable, "no etcd server can be reached", words));
    case Kind::refused: {
      Error error(ErrorCode::unavailable, "etcd refused", words);
      if (out_of_space()) error.store_code = kNoSpace;
      return error_at(address, std::move(error));
    }
    case Kind::ambiguous:
      break;
  }
  return error_at(address,
                  Error(ErrorCode::outcome_unknown, "etcd did not say whether it was done", words));
}

}  // namespace leasehold::etcd
