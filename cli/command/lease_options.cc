#include "cli/command/lease_options.h"

#include "cli/command/arguments.h"
#include "cli/command/duration.h"
#include "cli/command/output.h"
#include "cli/command/store_choice.h"
#include "kit/try.h"

namespace leasehold::cli {

namespace {

void declare_name(Arguments& arguments, LeaseOptions& into) {
  arguments.positional("NAME", into.name,
                       "The lock's name; one that begins with a dash stands after --");
  declare_store(arguments, into.store);
}

void declare_fenced(Arguments& arguments, LeaseOptions& into, const std::string& holder) {
  arguments.flag(
      "--fenced", into.fenced,
      "Give " + holder + " a token for a fence; refused by stores that cannot make safe ones");
}

}  // namespace

void declare_ttl(Arguments& arguments, LeaseOptions& into, const std::string& holder) {
  arguments.duration(
      "--ttl", into.ttl,
      "How long the lock stays taken if this machine dies; renewed while " + holder + " runs",
      kTtls);
}

void declare_labels(Arguments& arguments, LeaseOptions& into, const std::string& usual_owner) {
  arguments.option("--owner", "LABEL", into.owner,
                   "Who holds it, for people to read; default " + usual_owner);
  arguments.option("--note", "TEXT", into.note,
                   "What 'leasehold show' tells of this holder, as an address; at most 1024 bytes");
}

void declare_lease(Arguments& arguments, LeaseOptions& into, const std::string& holder,
                   const std::string& usual_owner) {
  declare_name(arguments, into);
  declare_ttl(arguments, into, holder);
  arguments.duration("--wait", into.wait,
                     "How long to wait for a busy lock, or for a store whose servers cannot be "
                     "reached yet; with 0 not at all");
  declare_fenced(arguments, into, holder);
  arguments.flag("--shared", into.shared,
                 "Hold it beside others who share it; who wants it alone waits for all of them");
  arguments.number("--permits", into.permits,
                   "Hold one of so many permits. All who use the lock name the same number",
                   kPermitCounts);
  declare_labels(arguments, into, usual_owner);
}

void declare_lease_alone(Arguments& arguments, LeaseOptions& into, const std::string& holder,
                         const std::string& usual_owner) {
  declare_name(arguments, into);
  declare_ttl(arguments, into, holder);
  declare_fenced(arguments, into, holder);
  declare_labels(arguments, into, usual_owner);
}

Result<Mode> chosen_mode(const LeaseOptions& options) {
  if (options.shared && options.permits) {
    return fail(ErrorCode::invalid,
                "--shared and --permits cannot be used together: a lock is shared by any number, "
                "or has so many permits");
  }
  if (options.permits) return Mode::permit_of(*options.permits);
  return options.shared ? Mode::shared() : Mode::exclusive();
}

// "host:pid:command" says more than "host:pid:leasehold".
Result<OwnerLabel> chosen_owner(const LeaseOptions& options, const std::string& program) {
  if (options.owner) return OwnerLabel::parse(*options.owner);
  const OwnerLabel own = default_owner_label();
  const std::string place = own.str().substr(0, own.str().rfind(':') + 1);
  auto label = OwnerLabel::parse(place + program.substr(program.rfind('/') + 1));
  return label ? *label : own;
}

namespace {

Result<TakenLease> taken(Client& client, const LockName& lock, const LeaseOptions& options,
                         const AcquireOptions& how) {
  if (!options.fenced) {
    auto lease = TRY(client.acquire(lock, how));
    return TakenLease{std::move(lease), std::nullopt};
  }
  auto lease = TRY(client.acquire_fenced(lock, how));
  Token token = lease.token();
  return TakenLease{std::move(static_cast<Lease&>(lease)), std::move(token)};
}

}  // namespace

Result<TakenLease> take_lease(Client& client, const LockName& lock, const LeaseOptions& options,
                              std::stop_token stop) {
  const Mode mode = TRY(chosen_mode(options));
  auto lease = taken(client, lock, options,
                     {.ttl = options.ttl,
                      .wait = options.wait,
                      .stop = std::move(stop),
                      .mode = mode,
                      .note = options.note.value_or("")});
  if (!lease) return lease;
  const Millis given = lease->lease.ttl();
  if (given < options.ttl / 2) {  // ZooKeeper may give a little less now and then
    note_now("this store gives a lease of " + format_duration(given) + " and not " +
             format_duration(options.ttl));
  }
  return lease;
}

void report_not_released(const Lease& lease, const Error& error, Millis kept_for) {
  report(error);
  note("lock " + in_quotes(lease.lock().str()) + " is free after " +
       format_duration(std::max(lease.ttl(), kept_for)) + " at the latest");
}

}  // namespace leasehold::cli
