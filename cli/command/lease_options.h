// What the commands that hold a lease have in common: their options, and taking it.
#pragma once

#include <optional>
#include <stop_token>
#include <string>

#include "cli/command/number.h"
#include "leasehold/client.h"

namespace leasehold::cli {

class Arguments;

struct LeaseOptions {
  std::string name;
  std::optional<std::string> store;
  Millis ttl = std::chrono::seconds(30);
  Millis wait{0};
  bool fenced = false;
  std::optional<std::string> owner;
  bool shared = false;
  std::optional<std::int64_t> permits;
  std::optional<std::string> note;
};

inline constexpr Range<std::int64_t> kPermitCounts{1, Mode::kMostPermits};

// Declares NAME, --store, --ttl, --wait, --fenced, --shared, --permits, --owner and --note.
// `holder`: who works while the lease is held, as in "the command"; `usual_owner`: the default of
// --owner, for the help.
void declare_lease(Arguments& arguments, LeaseOptions& into, const std::string& holder,
                   const std::string& usual_owner);

// The same without --wait, --shared and --permits: for who waits as long as it takes, and alone.
void declare_lease_alone(Arguments& arguments, LeaseOptions& into, const std::string& holder,
                         const std::string& usual_owner);

// Parts of it: --ttl alone, and --owner with --note.
void declare_ttl(Arguments& arguments, LeaseOptions& into, const std::string& holder);
void declare_labels(Arguments& arguments, LeaseOptions& into, const std::string& usual_owner);

// --owner, else host:pid:program.
[[nodiscard]] Result<OwnerLabel> chosen_owner(const LeaseOptions& options,
                                              const std::string& program);

struct TakenLease {
  Lease lease;
  std::optional<Token> token;  // with --fenced
};

// Of --shared and --permits, of which there can be one.
[[nodiscard]] Result<Mode> chosen_mode(const LeaseOptions& options);

// Fails as Client::acquire(), acquire_fenced() and chosen_mode() do. Says so if the store gives
// much less than was asked for.
[[nodiscard]] Result<TakenLease> take_lease(Client& client, const LockName& lock,
                                            const LeaseOptions& options, std::stop_token stop);

// For a release that got no answer; `kept_for`: what Lease::release_after() was told.
void report_not_released(const Lease& lease, const Error& error, Millis kept_for = {});

}  // namespace leasehold::cli
