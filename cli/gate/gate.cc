#include "leasehold/gate/gate.h"

#include <poll.h>
#include <sys/resource.h>

#include <thread>

#include "cli/command/arguments.h"
#include "cli/command/duration.h"
#include "cli/command/events.h"
#include "cli/command/exit_status.h"
#include "cli/command/output.h"
#include "cli/command/signals.h"
#include "cli/command/subcommand.h"

namespace leasehold::cli {
namespace {

using gate::GateOptions;
using gate::SafeMethods;

// A client takes two files, and the usual limit is 1024.
void raise_limit_of_files() {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
}

Status serve(gate::Gate& gate, Signals& signals) {
  Status result;
  Flag ended;
  std::thread server([&] {
    result = gate.run();
    ended.raise();
  });
  for (;;) {
    pollfd events[] = {{ended.fd(), POLLIN, 0}, {signals.fd(), POLLIN, 0}};
    if (poll(events, std::size(events), -1) < 0) continue;
    if (events[0].revents != 0) break;
    if (!signals.take_end_request()) continue;
    note_now("stopping");
    gate.stop();
  }
  server.join();
  return result;
}

class Gate final : public Subcommand {
 public:
  void declare(Arguments& arguments) override;
  Ending execute() override;

 private:
  ExitStatus clear() const;
  ExitStatus list() const;
  ExitStatus run();
  Status read_options();

  GateOptions options_;
  std::optional<std::string> listen_;
  std::optional<std::string> upstream_;
  std::optional<std::string> resource_;
  std::optional<std::string> field_prefix_;
  std::optional<std::string> clear_;
  bool list_ = false;
};

void Gate::declare(Arguments& arguments) {
  GateOptions& o = options_;
  arguments.usage("--state FOLDER --listen ADDRESS --upstream URL [OPTIONS]");
  arguments.description(
      "A reverse proxy for a service that cannot compare tokens itself. Each request carries its "
      "token in the fields Leasehold-Token, Leasehold-Lineage and Leasehold-Request; a stale one "
      "is answered 409 and never reaches the service. A higher token waits until the requests of "
      "the lower one are answered. If an answer is missing, or the gate was killed before it, the "
      "resource answers 503 until it is cleared, because the request may still take effect. All "
      "writers must go through the gate: the service must not be reachable otherwise. HTTP/1.1, "
      "no TLS. SIGTERM lets requests in flight end and exits with 0.");
  arguments.uses_store();
  arguments.required_option("--state", "FOLDER", o.state,
                            "Where the marks are kept; one gate at a time");
  arguments.option("--listen", "ADDRESS", listen_, "Where clients connect, as in 127.0.0.1:8080");
  arguments.option("--upstream", "URL", upstream_, "The service, as in http://127.0.0.1:9000");
  arguments.option("--resource", "PATTERN", resource_,
                   "Where a path names the resource: {resource} takes a segment, * passes over "
                   "one; default /{resource}");
  arguments.option("--resource-field", "NAME", o.resource_field,
                   "The header field that names the resource instead, percent-encoded");
  arguments.flag("--encoded-slashes", o.encoded_slashes,
                 "%2F in a path is part of a name; only for services that do the same");
  arguments.option("--field-prefix", "WORD", field_prefix_,
                   "Of -Token, -Lineage, -Request, -Sequence and -Entry; default Leasehold");
  arguments.choice<SafeMethods>(
      "--safe-methods",
      {{"enter", SafeMethods::enter},
       {"as-writes", SafeMethods::as_writes},
       {"pass", SafeMethods::pass}},
      o.safe_methods,
      "GET and HEAD need a token (enter, the default); and are waited for like "
      "writes (as-writes); or pass without one, as OPTIONS then does (pass)");
  arguments.flag("--forwarded", o.add_forwarded, "Add Via and X-Forwarded-For");
  arguments.option("--admin", "ADDRESS", o.admin,
                   "Answer GET /-/health and /-/unanswered there too");
  arguments.option("--probe", "PATH", o.probe,
                   "A path of the service with {resource}: after a missing answer it is asked "
                   "every second, and 200 or 204 clears the resource");
  arguments.duration("--answer-timeout", o.answer_timeout,
                     "How long the service may be silent before its answer counts as missing");
  arguments.duration("--connect-timeout", o.connect_timeout,
                     "How long connecting to the service may take");
  arguments.duration("--client-timeout", o.client_timeout,
                     "How long a client may pause within a body");
  arguments.duration("--idle-timeout", o.idle_timeout,
                     "How long a client may pause between two requests");
  arguments.duration("--pool-timeout", o.pool_timeout,
                     "How long an idle connection to the service is kept; less than the service "
                     "keeps it");
  arguments.duration("--drain-timeout", o.drain_timeout,
                     "How long requests in flight may take after SIGTERM");
  arguments.number("--max-connections", o.max_connections, "More clients than this have to wait",
                   {1, 100'000});
  arguments.number("--max-resources", o.max_resources,
                   "How many are remembered; requests for more are answered with 503",
                   {1, 100'000'000});
  arguments.flag("--unanswered", list_, "Only print the resources that wait to be cleared");
  arguments.option("--clear", "RESOURCE", clear_,
                   "Only clear this resource: you are certain that nothing forwarded to it can "
                   "still take effect");
  arguments.example(
      "leasehold gate --listen 127.0.0.1:8080 --upstream http://127.0.0.1:9000 "
      "--state /var/lib/gate --resource /accounts/{resource}",
      "fence the accounts of a service");
  arguments.example("leasehold gate --state /var/lib/gate --clear 42",
                    "after a missing answer, once the service is known to be quiet");
  arguments.example("leasehold fence show gate:/var/lib/gate", "marks and refusals");
}

Status Gate::read_options() {
  if (!listen_) return fail(ErrorCode::invalid, "--listen is missing, as in 127.0.0.1:8080");
  if (!upstream_) {
    return fail(ErrorCode::invalid, "--upstream is missing, as in http://127.0.0.1:9000");
  }
  options_.listen = *listen_;
  options_.upstream = *upstream_;
  if (resource_ && options_.resource_field) {
    return fail(ErrorCode::invalid, "--resource and --resource-field exclude each other");
  }
  if (resource_) options_.resource_path = *resource_;
  if (field_prefix_) options_.field_prefix = *field_prefix_;
  options_.log = [](std::string_view line) { note_now(line); };
  return {};
}

Ending Gate::execute() {
  if (list_ && clear_) {
    return report(Error(ErrorCode::invalid, "--unanswered and --clear exclude each other"));
  }
  if (list_) return list();
  if (clear_) return clear();
  return run();
}

ExitStatus Gate::list() const {
  const auto names = gate::unanswered(options_.state);
  if (!names) return report(names.error());
  std::string text;
  for (const ResourceName& name : *names) text += pasteable(name.str()) + "\n";
  return print(text);
}

ExitStatus Gate::clear() const {
  const auto resource = ResourceName::parse(*clear_);
  if (!resource) return report(resource.error());
  if (const auto done = gate::clear_unanswered(options_.state, *resource); !done) {
    return report(done.error());
  }
  return print(in_quotes(resource->str()) + " is cleared\n");
}

ExitStatus Gate::run() {
  if (const auto ok = read_options(); !ok) return report(ok.error());
  raise_limit_of_files();
  Signals signals;
  auto gate = gate::Gate::open(std::move(options_));
  if (!gate) {
    // Waiting for the other gate to give way is not what 75 invites to.
    const ExitStatus status = report(gate.error());
    return gate.error().code == ErrorCode::busy ? ExitStatus::unavailable : status;
  }
  if ((*gate)->is_new()) note("no mark is known yet");
  note("listening on " + (*gate)->address());
  if (const auto admin = (*gate)->admin_address()) note("health is on " + *admin);
  const auto served = serve(**gate, signals);
  return served ? ExitStatus::done : report(served.error());
}

}  // namespace

SubcommandEntry gate_command() {
  return {"gate", "Fence an HTTP service with a reverse proxy", make<Gate>};
}

}  // namespace leasehold::cli
