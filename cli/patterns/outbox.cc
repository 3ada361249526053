#include <charconv>

#include "cli/command/arguments.h"
#include "cli/command/duration.h"
#include "cli/command/exit_status.h"
#include "cli/command/json.h"
#include "cli/command/output.h"
#include "cli/command/subcommand.h"
#include "cli/patterns/commands.h"
#include "cli/patterns/outbox_relay.h"
#include "leasehold/registry.h"
#include "leasehold/stores.h"

namespace leasehold::cli {
namespace {

constexpr const char* kOutboxUrlHelp =
    "The database with the outbox: postgres://user@host/db or sqlite:/var/lib/app/app.db";

Result<std::int64_t> parse_id(const std::string& text) {
  std::int64_t id = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, id);
  if (error == std::errc() && stop == end && id > 0) return id;
  return fail(
      ErrorCode::invalid,
      "'" + shown(text) + "' is not the id of a message; `leasehold outbox show URL` lists them");
}

std::vector<Table::Cell> row_of(const OutboxProblem& problem) {
  const OutboxMessage& message = problem.message;
  return {{std::to_string(message.id)},
          {message.key},
          {message.topic},
          {std::to_string(message.attempts)},
          {std::to_string(problem.behind)},
          {message.idempotency_key},
          {problem.last_error, Colour::yellow}};
}

std::string text_of(const OutboxStatus& status) {
  std::string text = "waiting " + std::to_string(status.waiting) + ", delivered " +
                     std::to_string(status.delivered) + ", skipped " +
                     std::to_string(status.skipped) + ", lag " + format_duration(status.lag) + "\n";
  if (status.set_aside.empty()) return text;
  Table table;
  table.add({{"ID", Colour::bold},
             {"KEY", Colour::bold},
             {"TOPIC", Colour::bold},
             {"ATTEMPTS", Colour::bold},
             {"BEHIND", Colour::bold},
             {"IDEMPOTENCY KEY", Colour::bold},
             {"LAST ERROR", Colour::bold}});
  for (const OutboxProblem& problem : status.set_aside) table.add(row_of(problem));
  return text + "\nset aside:\n" + table.str();
}

class OutboxCommand final : public Subcommand {
 public:
  void declare(Arguments& arguments) override {
    arguments.description(
        "Messages that a program wrote in the transaction of its work are relayed from here, at "
        "least once, and in order within each key.");
    arguments.example("leasehold outbox show postgres://app@db/shop",
                      "what waits, and for how long");
    declare_install(arguments.subcommand("install", "Create the outbox"));
    declare_relay(arguments.subcommand("relay", "Deliver what is in the outbox"));
    declare_show(arguments.subcommand("show", "Show progress, lag and what was set aside"));
    declare_retry(arguments.subcommand("retry", "Try a message again that was set aside"));
    declare_skip(arguments.subcommand("skip", "Never send a message that was set aside"));
  }

  int execute() override {
    if (relay_->chosen()) return relay_outbox(options_);
    auto outbox = open_outbox(options_.url);
    if (!outbox) return report(outbox.error());
    if (install_->chosen()) return install(**outbox);
    if (show_->chosen()) return show(**outbox);
    return resolve(**outbox);
  }

 private:
  void declare_install(Arguments& arguments) {
    install_ = &arguments;
    arguments.positional("URL", options_.url, kOutboxUrlHelp);
    arguments.example("leasehold outbox install sqlite:/var/lib/app/app.db",
                      "create table and fence; doing it again changes nothing");
  }

  void declare_show(Arguments& arguments) {
    show_ = &arguments;
    arguments.positional("URL", options_.url, kOutboxUrlHelp);
    arguments.flag("--json", json_, "For programs: one JSON object");
    arguments.example("leasehold outbox show sqlite:/var/lib/app/app.db --json | jq .lag_ms",
                      "for a monitor");
  }

  void declare_retry(Arguments& arguments) {
    retry_ = &arguments;
    arguments.positional("URL", options_.url, kOutboxUrlHelp);
    arguments.positional("ID", id_, "The message, as 'leasehold outbox show' lists it");
    arguments.example("leasehold outbox retry postgres://app@db/shop 4711",
                      "its key goes on from there");
  }

  void declare_skip(Arguments& arguments) {
    arguments.description(
        "The message is never sent, and its key goes on with the next one. This cannot be undone.");
    arguments.positional("URL", options_.url, kOutboxUrlHelp);
    arguments.positional("ID", id_, "The message, as 'leasehold outbox show' lists it");
    arguments.flag("--force", force_, "Really skip it");
    arguments.example("leasehold outbox skip postgres://app@db/shop 4711 --force",
                      "go on without it");
  }

  void declare_relay(Arguments& arguments);

  static int install(Outbox& outbox) {
    if (const auto done = outbox.install(); !done) return report(done.error());
    return print("the outbox is installed\n");
  }

  int show(Outbox& outbox) const {
    const auto status = outbox.status();
    if (!status) return report(status.error());
    return print(json_ ? outbox_json(*status) : text_of(*status));
  }

  int resolve(Outbox& outbox) const {
    const auto id = parse_id(id_);
    if (!id) return report(id.error());
    if (!retry_->chosen() && !force_) {
      note("a message that is skipped is never sent; if that is what you want, say --force");
      return kExitUsage;
    }
    const auto done = retry_->chosen() ? outbox.retry(*id) : outbox.skip(*id);
    if (!done) return report(done.error());
    return print("message " + id_ +
                 (retry_->chosen() ? " will be tried again\n" : " will never be sent\n"));
  }

  Arguments* install_ = nullptr;
  Arguments* relay_ = nullptr;
  Arguments* show_ = nullptr;
  Arguments* retry_ = nullptr;
  OutboxRelayOptions options_;
  std::string id_;
  bool json_ = false;
  bool force_ = false;
};

void OutboxCommand::declare_relay(Arguments& arguments) {
  relay_ = &arguments;
  OutboxRelayOptions& o = options_;
  arguments.description(
      "Takes a fenced lease, so that one relay works at a time, and delivers one message after the "
      "other. A command gets the payload on its standard input, and LEASEHOLD_IDEMPOTENCY_KEY, "
      "LEASEHOLD_OUTBOX_KEY, LEASEHOLD_OUTBOX_TOPIC, LEASEHOLD_OUTBOX_ID, LEASEHOLD_TOKEN, "
      "LEASEHOLD_LINEAGE and LEASEHOLD_REQUEST. Exit status 0 means delivered, 75 not now (tried "
      "again and not counted), any other a failure. A message that fails --attempts times is set "
      "aside with its key; the other keys go on. SIGTERM ends the relay after the delivery that "
      "is going on.");
  arguments.positional("URL", o.url, kOutboxUrlHelp);
  arguments.shell_command("--command,-c", "COMMAND", o.command,
                          "Run by the shell for each message; one argument");
  arguments.option(
      "--to", "URL", o.target,
      "Instead of a command: https://host/path, POSTed with the header Idempotency-Key "
      "by curl(1), 2xx means delivered; or redis://host/0?stream=NAME, a stream");
  arguments.option("--content-type", "TYPE", o.content_type,
                   "Of an http request; default application/octet-stream");
  arguments.option("--lock", "NAME", o.lock, "The lock of the relays; default leasehold/outbox");
  arguments.option("--lock-store", "URL", o.lock_store,
                   "Where that lock lives; default: in the same PostgreSQL database; for SQLite a "
                   "file beside the database, with -locks behind its name");
  arguments.duration("--ttl", o.ttl,
                     "How long the lock stays taken if this machine dies; default 30s",
                     "from 100 ms to 24 h");
  arguments.duration("--wait", o.wait,
                     "How long to wait while another relay works; default 0: only try");
  arguments.number("--attempts", 1, 1'000'000, o.relay.attempts,
                   "Failures until a message is set aside; default 10");
  arguments.duration("--timeout", o.relay.timeout, "Of one delivery; default 30s");
  arguments.duration("--poll", o.relay.poll, "How often to look for new messages; default 1s");
  arguments.duration("--pause", o.relay.first_pause,
                     "Of a key after a failure, doubled with each, up to 1m; default 1s");
  arguments.duration("--keep", o.relay.keep,
                     "How long delivered messages stay in the table, where their idempotency keys "
                     "cannot be used again; default 24h");
  arguments.flag("--until-empty", o.relay.until_empty,
                 "End when nothing waits: with status 65 if messages are set aside, 66 if it was "
                 "ended before");
  arguments.duration("--give-up-after", o.relay.give_up_after,
                     "With --until-empty: end too, with status 66, when all that waits has failed "
                     "and nothing was delivered for so long; default: go on trying");
  arguments.flag("--verbose,-v", o.verbose, "Tell of deliveries too, not only of failures");
  arguments.example("leasehold outbox relay postgres://app@db/shop --wait 24h -c ./send-event.sh",
                    "as a service; a second one waits for the first to die");
  arguments.example("leasehold outbox relay sqlite:app.db --to 'redis://cache/0?stream=events'",
                    "into a Redis stream");
}

}  // namespace

Result<std::unique_ptr<Outbox>> open_outbox(const std::string& url) {
  register_stores();
  return Registry::standard().open<Outbox>(url);
}

std::unique_ptr<Subcommand> make_outbox() {
  return std::make_unique<OutboxCommand>();
}

}  // namespace leasehold::cli
