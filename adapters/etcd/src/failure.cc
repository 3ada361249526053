#include "failure.h"

#include <grpcpp/support/status.h>

namespace leasehold::etcd {
namespace {

constexpr std::string_view kNoSpace = "space exceeded";

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
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
      return status.error_message().starts_with("etcdserver: ") || too_large(status);
    default:
      return false;
  }
}

}  // namespace

Failure Failure::of(const grpc::Status& status) {
  return {.kind = proves_refusal(status) ? Kind::refused : Kind::ambiguous,
          .silence = status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED,
          .words = status.error_message()};
}

bool Failure::lease_is_gone() const {
  return kind == Kind::refused && contains(words, "requested lease not found");
}

bool Failure::out_of_space() const {
  return kind == Kind::refused && contains(words, kNoSpace);
}

bool is_full(const Error& error) {
  return error.code == ErrorCode::unavailable && contains(error.store_words, kNoSpace);
}

ErrorCode code_when_full(bool nothing_has_changed) {
  return nothing_has_changed ? ErrorCode::unavailable : ErrorCode::outcome_unknown;
}

bool Failure::token_is_refused() const {
  return kind == Kind::refused &&
         (contains(words, "invalid auth token") || contains(words, "user name is empty") ||
          contains(words, "revision of auth store is old"));
}

Error Failure::error(const std::string& address) const {
  switch (kind) {
    case Kind::stopped:
      return Error(ErrorCode::cancelled, address + ": stopped before anything was sent");
    case Kind::closed:
      return Error(ErrorCode::unavailable, address + ": the store is closed");
    case Kind::not_sent:
      return Error(ErrorCode::unavailable, address + ": no etcd server can be reached", words);
    case Kind::refused:
      return Error(ErrorCode::unavailable, address + ": etcd refused", words);
    case Kind::ambiguous:
      break;
  }
  return Error(ErrorCode::outcome_unknown, address + ": etcd did not say whether it was done",
               words);
}

}  // namespace leasehold::etcd
