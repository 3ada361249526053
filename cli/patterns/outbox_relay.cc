#include "cli/patterns/outbox_relay.h"

#include "cli/command/output.h"
#include "cli/command/signals.h"
#include "cli/command/store_choice.h"
#include "cli/command/url_help.h"
#include "cli/command/waiting.h"
#include "cli/patterns/command_target.h"
#include "cli/patterns/http_target.h"
#include "kit/try.h"
#include "leasehold/registry.h"
#include "leasehold/url.h"

namespace leasehold::cli {
namespace {

constexpr const char* kUsualContentType = "application/octet-stream";

Status check(const OutboxRelayOptions& options) {
  if (options.command && options.target) {
    return fail(ErrorCode::invalid,
                "--command and --to do not go together: all messages go to one place");
  }
  if (!options.command && !options.target) {
    return fail(ErrorCode::invalid, "say where to deliver: with --command or --to");
  }
  const bool to_http = options.target && is_http_url(*options.target);
  if (options.target && !to_http && !can_be_used(*options.target, OutboxTarget::kOffer)) {
    return fail(ErrorCode::invalid, "--to takes an http:// or https:// URL, or " +
                                        example_urls(OutboxTarget::kOffer) +
                                        "; for anything else there is --command");
  }
  if (options.content_type && !to_http) {
    return fail(ErrorCode::invalid, "--content-type is for --to with an http or https URL");
  }
  if (options.relay.give_up_after && !options.relay.until_empty) {
    return fail(ErrorCode::invalid, "--give-up-after is for --until-empty");
  }
  return {};
}

// A file of the user's keeps no locks, so that they go into a file beside it.
Result<std::string> lock_store_of(const OutboxRelayOptions& options) {
  if (options.lock_store) return *options.lock_store;
  auto url = TRY(Url::parse(options.url));
  const auto technology = Registry::standard().technology_of(url.scheme);
  if (!technology || !technology->one_machine) return options.url;
  url.path += "-locks";
  return url.redacted();
}

Result<std::unique_ptr<OutboxTarget>> open_target(const OutboxRelayOptions& options,
                                                  const Signals& signals) {
  if (options.command) return std::make_unique<CommandTarget>(*options.command, signals);
  if (!is_http_url(*options.target))
    return Registry::standard().open<OutboxTarget>(*options.target);
  return HttpTarget::open(*options.target, options.content_type.value_or(kUsualContentType),
                          signals);
}

std::string line_of(const RelayEvent& event) {
  const OutboxMessage& message = event.message;
  const std::string which = "message " + std::to_string(message.id) + " (key " +
                            in_quotes(message.key) + ", topic " + in_quotes(message.topic) + ")";
  const std::string why = event.error == nullptr ? "" : ": " + event.error->message;
  switch (event.kind) {
    case RelayEvent::Kind::delivered:
      return which + " was delivered";
    case RelayEvent::Kind::not_now:
      return which + " could not be delivered now, and will be tried again" + why;
    case RelayEvent::Kind::failed:
      return which + " failed" + why;
    case RelayEvent::Kind::set_aside:
      return which + " failed too often and is set aside with its key" + why;
  }
  return which;
}

// What waits, and not behind a message that is set aside.
std::int64_t deliverable(const OutboxStatus& status) {
  std::int64_t count = status.waiting;
  for (const OutboxProblem& problem : status.set_aside) count -= 1 + problem.behind;
  return count;
}

// A delivery may have failed because whoever ends this program has ended the command too. So the
// signal is heard before the failure is.
class HearsSignals final : public OutboxTarget {
 public:
  HearsSignals(OutboxTarget& target, Waiting& signals) : target_(target), signals_(signals) {}

  Status deliver(const OutboxMessage& message, const Delivery& delivery) override {
    Status done = target_.deliver(message, delivery);
    if (!done) signals_.look();
    return done;
  }

 private:
  OutboxTarget& target_;
  Waiting& signals_;
};

// What came after the outbox was empty does not count.
ExitStatus end_of(Outbox& outbox, const OutboxRelayOptions& options, bool emptied) {
  if (!options.relay.until_empty) return ExitStatus::done;
  const auto status = outbox.status();
  if (!status) return report(status.error());
  const std::int64_t left = emptied ? 0 : deliverable(*status);
  if (left > 0) {
    note("the outbox is not empty: " + std::to_string(left) +
         (left == 1 ? " message still waits" : " messages still wait"));
    return kNotEmpty;
  }
  if (status->set_aside.empty()) return ExitStatus::done;
  const std::size_t count = status->set_aside.size();
  note(std::to_string(count) + (count == 1 ? " message is" : " messages are") +
       " set aside; see 'leasehold outbox show " + shown(options.url) + "'");
  return kSetAside;
}

class RelaySession {
 public:
  RelaySession(const OutboxRelayOptions& options, LockName lock, Client client, Signals& signals)
      : options_(options), lock_(std::move(lock)), client_(std::move(client)), signals_(signals) {}

  ExitStatus go(Outbox& outbox, OutboxTarget& target);

 private:
  Result<FencedLease> take();
  ExitStatus after(Outbox& outbox, const Result<RelayReport>& report);

  const OutboxRelayOptions& options_;
  const LockName lock_;
  Client client_;
  Signals& signals_;
  bool asked_to_end_ = false;
};

Result<FencedLease> RelaySession::take() {
  Waiting waiting(signals_,
                  options_.verbose ? std::optional(Waiting::For{client_, lock_}) : std::nullopt);
  auto lease = client_.acquire_fenced(
      lock_, {.ttl = options_.ttl, .wait = options_.wait, .stop = waiting.stop()});
  asked_to_end_ = waiting.end();
  return lease;
}

ExitStatus RelaySession::go(Outbox& outbox, OutboxTarget& target) {
  if (options_.verbose) tell_time_in_notes();
  auto lease = take();
  if (asked_to_end_) return end_of(outbox, options_, false);
  if (!lease) return report(lease.error());
  if (options_.verbose) {
    note_now("relays under " + in_quotes(lock_.str()) + ", token " +
             std::to_string(lease->token().number.value()));
  }
  Waiting until_signal(signals_);
  RelayOptions how = options_.relay;
  how.stop = until_signal.stop();
  how.tell = [this](const RelayEvent& event) {
    const bool worth_telling = event.kind != RelayEvent::Kind::delivered;
    if (options_.verbose || worth_telling) note_now(line_of(event));
  };
  HearsSignals hearing(target, until_signal);
  const auto report = relay(outbox, hearing, *lease, how);
  const ExitStatus status = after(outbox, report);
  if (const auto released = lease->release(); !released) cli::report(released.error());
  return status;
}

ExitStatus RelaySession::after(Outbox& outbox, const Result<RelayReport>& report) {
  if (!report) return report_at(options_.url, report.error());
  if (options_.verbose) {
    note_now("ends: " + std::to_string(report->delivered) + " delivered, " +
             std::to_string(report->failed) + " failed");
  }
  return end_of(outbox, options_, report->emptied);
}

}  // namespace

ExitStatus relay_outbox(const OutboxRelayOptions& options) {
  if (const auto ok = check(options); !ok) return report(ok.error());
  auto lock = chosen_lock(options.lock.value_or(kOutboxResource));
  if (!lock) return report(lock.error());
  auto outbox = open_outbox(options.url);
  if (!outbox) return report(outbox.error());
  Signals signals;  // until here a signal ends the program by itself
  auto target = open_target(options, signals);
  if (!target) return report(target.error());
  const auto store = lock_store_of(options);
  if (!store) return report(store.error());
  Waiting connecting(signals);
  auto client = open_store(*store, {.stop = connecting.stop()});
  if (connecting.end()) return end_of(**outbox, options, false);
  if (!client) return report(client.error());
  return RelaySession(options, std::move(*lock), std::move(*client), signals)
      .go(**outbox, **target);
}

}  // namespace leasehold::cli
