#include <unistd.h>

#include "cli/command/arguments.h"
#include "cli/command/json.h"
#include "cli/command/output.h"
#include "cli/command/subcommand.h"
#include "cli/command/url_help.h"
#include "cli/command/waiting.h"
#include "cli/patterns/delivery_process.h"
#include "leasehold/registry.h"
#include "leasehold/serial_queue_admin.h"
#include "leasehold/serial_work.h"
#include "leasehold/stores.h"

namespace leasehold::cli {
namespace {

// Operations are set aside.
constexpr ExitStatus kSetAsideThere{65};

// Runs `sh -c command` for each operation: the payload on stdin, the rest in the environment.
class CommandWork {
 public:
  CommandWork(const QueueName& queue, std::string command, Millis timeout, Waiting& waiting,
              const Signals& signals)
      : queue_(queue),
        command_(std::move(command)),
        timeout_(timeout),
        waiting_(waiting),
        signals_(signals) {}

  Status operator()(const Operation& operation, std::stop_token lost) const {
    process::Command command{.argv = {"/bin/sh", "-c", command_}};
    const std::string id = std::to_string(operation.id);
    command.environment = {{"LEASEHOLD_SERIAL_QUEUE", queue_.str()},
                           {"LEASEHOLD_SERIAL_ENTITY", operation.entity.str()},
                           {"LEASEHOLD_SERIAL_ID", id},
                           {"LEASEHOLD_SERIAL_ATTEMPTS", std::to_string(operation.attempts)},
                           {"LEASEHOLD_IDEMPOTENCY_KEY", queue_.str() + "/" + id}};
    const CallContext context{BootClock::now() + timeout_, std::move(lost)};
    const auto end = run_delivery(std::move(command), operation.payload, context, signals_);
    if (end && end->status.success()) return {};
    waiting_.look();  // whoever ends this program may have ended the command too
    if (!end) return fail(end.error());
    return fail(ErrorCode::invalid, "the command " + end->status.describe());
  }

 private:
  const QueueName& queue_;
  const std::string command_;
  const Millis timeout_;
  Waiting& waiting_;
  const Signals& signals_;
};

std::string line_of(const Handled& handled) {
  const std::string which = "operation " + std::to_string(handled.operation->id) + " of " +
                            in_quotes(handled.operation->entity.str());
  const std::string why = handled.error ? ": " + sentence(*handled.error) : "";
  switch (handled.what) {
    case Handled::What::nothing:
      return "";
    case Handled::What::done:
      return which + " was done";
    case Handled::What::failed:
      return which + " failed, and will be tried again" + why;
    case Handled::What::set_aside:
      return which + " failed, and is set aside with its entity" + why;
    case Handled::What::lost:
      return which + " is done again by another worker" + why;
  }
  return "";
}

Json json_of(const QueueName& queue, const SerialWork::Overview& found) {
  Json aside = Json::array();
  for (const SerialWork::Problem& problem : found.set_aside) {
    aside.push_back({{"entity", problem.entity.str()}, {"error", problem.last_error}});
  }
  return {{"queue", queue.str()},
          {found.counts_entities ? "waiting_entities" : "waiting_operations", found.waiting},
          {"set_aside", aside}};
}

std::string page(const QueueName& queue, const SerialWork::Overview& found) {
  std::string text = "queue " + in_quotes(queue.str()) + ": " + std::to_string(found.waiting) +
                     (found.counts_entities ? " entities wait" : " operations wait") + "\n";
  if (found.set_aside.empty()) return text;
  Table table;
  table.add({{"SET ASIDE", Colour::bold}, {"ERROR", Colour::bold}});
  for (const SerialWork::Problem& problem : found.set_aside) {
    table.add({{pasteable(problem.entity.str())}, {problem.last_error}});
  }
  return text + table.str();
}

class SerialCommand final : public Subcommand {
 public:
  void declare(Arguments& arguments) override {
    arguments.description(
        "Serial queues in your own database: the operations of one entity run one after the other, "
        "many entities side by side. docs/serial-queue.md has how to push and to work.");
    arguments.uses_store();
    arguments.example("leasehold serial install postgres://app@db/shop",
                      "create what the queues need; doing it again changes nothing");
    declare_install(arguments.subcommand("install", "Create what the queues need"));
    declare_push(arguments.subcommand("push", "Add an operation"));
    declare_work(arguments.subcommand("work", "Run a command for each operation"));
    declare_show(arguments.subcommand("show", "Show how much waits, and what is set aside"));
    declare_retry(arguments.subcommand("retry", "Try what is set aside again"));
    declare_skip(arguments.subcommand("skip", "Never do what is set aside"));
  }

  Ending execute() override {
    register_stores();
    if (install_->chosen()) return install();
    const auto queue = QueueName::parse(queue_);
    if (!queue) return report(queue.error());
    const auto queues = Registry::standard().open<SerialWork>(url_);
    if (!queues) return report(queues.error());
    if (push_->chosen()) return push(**queues, *queue);
    if (work_->chosen()) return work(**queues, *queue);
    return show_->chosen() ? show(**queues, *queue) : resolve(**queues, *queue);
  }

 private:
  void declare_url(Arguments& arguments, std::string_view offer) {
    arguments.positional("URL", url_, "The database of the work: " + example_urls(offer),
                         url_beginnings(offer));
  }
  void declare_queue(Arguments& arguments) {
    declare_url(arguments, SerialWork::kOffer);
    arguments.positional("QUEUE", queue_, "The queue's name");
  }
  void declare_entity(Arguments& arguments) {
    declare_queue(arguments);
    arguments.positional("ENTITY", entity_, "The entity's name");
  }

  void declare_install(Arguments& arguments) {
    install_ = &arguments;
    declare_url(arguments, SerialQueueAdmin::kOffer);
    arguments.example("leasehold serial install postgres://app@db/shop",
                      "create table and functions; doing it again changes nothing");
  }

  void declare_push(Arguments& arguments) {
    push_ = &arguments;
    arguments.description(
        "The payload is read from standard input, at most 1 MiB. Prints the operation's id. To "
        "push "
        "in the transaction of your own writes, use SQL: leasehold_serial.push().");
    declare_entity(arguments);
    arguments.example("echo ship | leasehold serial push redis://cache orders order/1234",
                      "one more operation of that order");
  }

  void declare_work(Arguments& arguments) {
    work_ = &arguments;
    arguments.description(
        "Takes one operation after the other. The command gets its payload on standard input, and "
        "LEASEHOLD_SERIAL_ENTITY, LEASEHOLD_SERIAL_ID, LEASEHOLD_SERIAL_QUEUE, "
        "LEASEHOLD_SERIAL_ATTEMPTS and LEASEHOLD_IDEMPOTENCY_KEY. Exit status 0 means done; any "
        "other is a failure, and is tried again after a pause. What fails --attempts times is set "
        "aside with its entity; other entities go on. Start as many workers as you like. SIGTERM "
        "ends one after the operation that it is at.");
    declare_queue(arguments);
    arguments.shell_command("--command,-c", "COMMAND", command_,
                            "Run by the shell for each operation; one argument");
    arguments.duration("--timeout", timeout_, "How long one operation may take", kAboveZero);
    arguments.number("--attempts", options_.attempts, "Failures until it is set aside",
                     {1, 1'000'000});
    arguments.duration("--pause", options_.first_pause,
                       "How long an entity pauses after a failure; doubled with each, up to 1m",
                       kAboveZero);
    arguments.flag("--until-empty", until_empty_, "End as soon as nothing is due");
    arguments.flag("--verbose,-v", verbose_,
                   "Report what was done too, not only failures, and when");
    arguments.example("leasehold serial work postgres://app@db/shop orders -c ./ship.sh",
                      "as a service");
  }

  void declare_show(Arguments& arguments) {
    show_ = &arguments;
    declare_queue(arguments);
    arguments.flag("--json", json_, "For programs: one JSON object");
    arguments.ends_with(kSetAsideThere, "operations are set aside");
    arguments.example("leasehold serial show postgres://app@db/shop orders",
                      "how much waits, and what is set aside with which error");
  }

  void declare_retry(Arguments& arguments) {
    retry_ = &arguments;
    declare_entity(arguments);
    arguments.example("leasehold serial retry postgres://app@db/shop orders order/1234",
                      "after its cause was mended");
  }

  void declare_skip(Arguments& arguments) {
    declare_entity(arguments);
    arguments.flag("--force", force_, "Really never do it");
    arguments.example("leasehold serial skip postgres://app@db/shop orders order/1234 --force",
                      "let the entity go on without its first operation");
  }

  ExitStatus install() const {
    const auto done = Registry::standard().open<SerialQueueAdmin>(url_).and_then(
        [](const auto& queues) { return queues->install(); });
    return done ? print("the serial queues are installed\n") : report(done.error());
  }

  ExitStatus push(SerialWork& queues, const QueueName& queue) const {
    const auto entity = EntityName::parse(entity_);
    if (!entity) return report(entity.error());
    const auto id = queues.push(queue, *entity, process::read_all(STDIN_FILENO));
    return id ? print(std::to_string(*id) + "\n") : report(id.error());
  }

  ExitStatus work(SerialWork& queues, const QueueName& queue) const {
    if (!command_) {
      return report(Error(ErrorCode::invalid, "--command is missing: what to run per operation"));
    }
    if (verbose_) tell_time_in_notes();
    Signals signals;
    Waiting waiting(signals);
    const CommandWork run(queue, *command_, timeout_, waiting, signals);
    const auto one = [&] { return queues.handle_one(queue, run, timeout_, options_); };
    const auto tell = [this](const Handled& handled) {
      if (handled.what == Handled::What::nothing) return;
      if (verbose_ || handled.what != Handled::What::done) note_now(line_of(handled));
    };
    const auto done =
        work_loop(one, {.stop = waiting.stop(), .until_empty = until_empty_, .tell = tell});
    return done ? ExitStatus::done : report(done.error());
  }

  ExitStatus show(SerialWork& queues, const QueueName& queue) const {
    const auto found = queues.look_at(queue);
    if (!found) return report(found.error());
    const ExitStatus printed =
        print(json_ ? json_text(json_of(queue, *found)) : page(queue, *found));
    return printed == ExitStatus::done && !found->set_aside.empty() ? kSetAsideThere : printed;
  }

  ExitStatus resolve(SerialWork& queues, const QueueName& queue) const {
    const auto entity = EntityName::parse(entity_);
    if (!entity) return report(entity.error());
    if (!retry_->chosen() && !force_) {
      note("an operation that is skipped is never done; if that is what you want, add --force");
      return ExitStatus::wrong_input;
    }
    const auto done = retry_->chosen() ? queues.retry(queue, *entity) : queues.skip(queue, *entity);
    if (!done) return report(done.error());
    return print(in_quotes(entity_) + (retry_->chosen()
                                           ? " is tried again\n"
                                           : " goes on without its first operation\n"));
  }

  Arguments* install_ = nullptr;
  Arguments* push_ = nullptr;
  Arguments* work_ = nullptr;
  Arguments* show_ = nullptr;
  Arguments* retry_ = nullptr;
  std::string url_;
  std::string queue_;
  std::string entity_;
  std::optional<std::string> command_;
  Millis timeout_{300'000};
  HandleOptions options_;
  bool until_empty_ = false;
  bool verbose_ = false;
  bool json_ = false;
  bool force_ = false;
};

}  // namespace

SubcommandEntry serial_command() {
  return {"serial", "Work at serial queues, and prepare a database for them", make<SerialCommand>};
}

}  // namespace leasehold::cli
