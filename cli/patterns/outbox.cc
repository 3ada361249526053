#include "cli/command/arguments.h"
#include "cli/command/duration.h"
#include "cli/command/json.h"
#include "cli/command/output.h"
#include "cli/command/subcommand.h"
#include "cli/command/url_help.h"
#include "cli/patterns/outbox_relay.h"
#include "leasehold/registry.h"
#include "leasehold/stores.h"

namespace leasehold::cli {
namespace {

void declare_url(Arguments& arguments, std::string& into) {
  arguments.positional("URL", into, "The database with the outbox: " + example_urls(Outbox::kOffer),
                       url_beginnings(Outbox::kOffer));
}

Result<std::int64_t> parse_id(const std::string& text) {
  auto id = parse_number(text, {1, kAnyNumber.most});
  if (id) return id;
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

std::string outbox_json(const OutboxStatus& status) {
  Json set_aside = Json::array();
  for (const OutboxProblem& problem : status.set_aside) {
    set_aside.push_back({{"id", problem.message.id},
                         {"key", problem.message.key},
                         {"topic", problem.message.topic},
                         {"idempotency_key", problem.message.idempotency_key},
                         {"attempts", problem.message.attempts},
                         {"last_error", problem.last_error},
                         {"behind", problem.behind}});
  }
  return json_text({{"waiting", status.waiting},
                    {"delivered", status.delivered},
                    {"skipped", status.skipped},
                    {"lag_ms", status.lag.count()},
                    {"set_aside", set_aside}});
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
    arguments.uses_store();
    arguments.example("leasehold outbox show postgres://app@db/shop",
                      "what waits, and for how long");
    declare_install(arguments.subcommand("install", "Create the outbox"));
    declare_relay(arguments.subcommand("relay", "Deliver what is in the outbox"));
    declare_show(arguments.subcommand("show", "Show progress, lag and what was set aside"));
    declare_retry(arguments.subcommand("retry", "Try a message again that was set aside"));
    declare_skip(arguments.subcommand("skip", "Never send a message that was set aside"));
  }

  Ending execute() override {
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
    declare_url(arguments, options_.url);
    arguments.example("leasehold outbox install sqlite:/var/lib/app/app.db",
                      "create table and fence; doing it again changes nothing");
  }

  void declare_show(Arguments& arguments) {
    show_ = &arguments;
    declare_url(arguments, options_.url);
    arguments.flag("--json", json_, "For programs: one JSON object");
    arguments.example("leasehold outbox show sqlite:/var/lib/app/app.db --json | jq .lag_ms",
                      "for a monitor");
  }

  void declare_retry(Arguments& arguments) {
    retry_ = &arguments;
    declare_url(arguments, options_.url);
    arguments.positional("ID", id_, "The message, as 'leasehold outbox show' lists it");
    arguments.example("leasehold outbox retry postgres://app@db/shop 4711",
                      "its key goes on from there");
  }

  void declare_skip(Arguments& arguments) {
    arguments.description(
        "The message is never sent, and its key goes on with the next one. This cannot be undone.");
    declare_url(arguments, options_.url);
    arguments.positional("ID", id_, "The message, as 'leasehold outbox show' lists it");
    arguments.flag("--force", force_, "Really skip it");
    arguments.example("leasehold outbox skip postgres://app@db/shop 4711 --force",
                      "go on without it");
  }

  void declare_relay(Arguments& arguments);

  static ExitStatus install(Outbox& outbox) {
    if (const auto done = outbox.install(); !done) return report(done.error());
    return print("the outbox is installed\n");
  }

  ExitStatus show(Outbox& outbox) const {
    const auto status = outbox.status();
    if (!status) return report(status.error());
    return print(json_ ? outbox_json(*status) : text_of(*status));
  }

  ExitStatus resolve(Outbox& outbox) const {
    const auto id = parse_id(id_);
    if (!id) return report(id.error());
    if (!retry_->chosen() && !force_) {
      note("a message that is skipped is never sent; if that is what you want, add --force");
      return ExitStatus::wrong_input;
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
  arguments.ends_with(kSetAside, "with --until-empty: messages are set aside");
  arguments.ends_with(
      kNotEmpty, "with --until-empty: ended by a signal or --give-up-after, and messages wait");
  arguments.ends_with(ExitStatus::busy, "busy: another relay is at work");
  arguments.ends_with(ExitStatus::lost, "the lease was lost, or the fence refused");
  declare_url(arguments, o.url);
  arguments.shell_command("--command,-c", "COMMAND", o.command,
                          "Run by the shell for each message; one argument");
  arguments.option(
      "--to", "URL", o.target,
      "Instead of a command: https://host/path, POSTed with the header Idempotency-Key "
      "by curl(1), 2xx means delivered; or a stream, as in " +
          example_urls(OutboxTarget::kOffer),
      url_beginnings(OutboxTarget::kOffer));
  arguments.option("--content-type", "TYPE", o.content_type,
                   "Of an http request; default application/octet-stream");
  arguments.option("--lock", "NAME", o.lock, "The lock of the relays; default leasehold/outbox");
  arguments.option("--lock-store", "URL", o.lock_store,
                   "Where that lock lives; default: in the same PostgreSQL database; for SQLite a "
                   "file beside the database, with -locks behind its name");
  arguments.duration("--ttl", o.ttl, "How long the lock stays taken if this machine dies", kTtls);
  arguments.duration("--wait", o.wait,
                     "How long to wait while another relay works; with 0 not at all");
  arguments.number("--attempts", o.relay.attempts, "Failures until a message is set aside",
                   {1, 1'000'000});
  arguments.duration("--timeout", o.relay.timeout, "How long one delivery may take", kAboveZero);
  arguments.duration("--poll", o.relay.poll, "How often to look for new messages", kAboveZero);
  arguments.duration("--pause", o.relay.first_pause,
                     "How long a key pauses after a failure; doubled with each, up to 1m",
                     kAboveZero);
  arguments.duration("--keep", o.relay.keep,
                     "How long delivered messages stay in the table, where their idempotency keys "
                     "cannot be used again");
  arguments.flag("--until-empty", o.relay.until_empty,
                 "End when nothing waits: with status 65 if messages are set aside, 66 if it was "
                 "ended before");
  arguments.duration("--give-up-after", o.relay.give_up_after,
                     "With --until-empty: also end, with status 66, once all that waits has failed "
                     "and nothing was delivered for this long",
                     kAnyDuration, "go on trying");
  arguments.flag("--verbose,-v", o.verbose, "Report deliveries too, not only failures, and when");
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

SubcommandEntry outbox_command() {
  return {"outbox", "Relay messages that were written in a transaction", make<OutboxCommand>};
}

}  // namespace leasehold::cli
