#include "fence/pass.h"

#include <algorithm>
#include <chrono>

#include "fence/refusal.h"
#include "kit/text/visible_text.h"
#include "kit/try.h"
#include "waiting/backoff.h"

namespace leasehold::fence {
namespace {

// Made for the second attempt: few need one.
class Retries {
 public:
  explicit Retries(const CallContext& context) : context_(context) {}

  // Pauses. False: the time is over, or a stop was requested.
  bool next() {
    if (!backoff_) {
      const auto left = std::chrono::ceil<Millis>(context_.deadline - BootClock::now());
      backoff_.emplace(std::max(left, Millis(0)), context_.stop);
    }
    return backoff_->pause();
  }

 private:
  const CallContext& context_;
  std::optional<waiting::Backoff> backoff_;
};

Error too_many_others(const ResourceName& resource, const CallContext& context) {
  if (context.stop.stop_requested()) {
    return Error(ErrorCode::cancelled, "stop was requested while entering the fence");
  }
  return Error(ErrorCode::unavailable, "resource " + kit::in_quotes(resource.str()) +
                                           " was changed by others at every attempt, until the "
                                           "time was over");
}

Error in_doubt(const std::string& what, const Error& last) {
  Error error(ErrorCode::outcome_unknown,
              "the reply to the transaction was lost, and " + what + ": " + last.message,
              last.store_words);
  error.refusal = last.refusal;
  return error;
}

Error counted(const Pass& at, Error refused) {
  if (refused.code != ErrorCode::fenced_out) return refused;
  if (auto counted = at.count_refusal(); !counted) {
    refused.store_words = "the refusal could not be counted: " + to_string(counted.error());
  }
  return refused;
}

// An operator's change of the mark, whatever it was before.
Status pass_change(const ResourceName& resource, const Pass& at, const CallContext& context,
                   const std::function<Result<Mark>(const SeenMark&)>& change) {
  for (Retries retries(context);;) {
    auto seen = TRY(at.read());
    auto next = TRY(change(seen));
    if (next == seen.mark) return {};
    const auto done = TRY(at.commit(seen, next));
    if (done == Commit::done) return {};
    if (!retries.next()) return fail(too_many_others(resource, context));
  }
}

}  // namespace

Result<Passed> pass(const ResourceName& resource, const Attempt& attempt, const Pass& at,
                    const CallContext& context) {
  std::optional<std::int64_t> doubted;  // the version that a transaction without reply has compared
  std::optional<Error> lost;
  for (Retries retries(context);;) {
    auto seen = at.read();
    if (!seen) {
      if (lost) return fail(in_doubt("the mark cannot be read", seen.error()));
      return fail(std::move(seen.error()));
    }
    auto verdict = judge(seen->mark, attempt);
    if (std::holds_alternative<Repeat>(verdict)) return Passed::repeated;
    std::optional<Error> refused;
    if (const Refuse* it = std::get_if<Refuse>(&verdict)) {
      refused = refusal(resource, attempt, it->why, seen->mark);
    }
    const bool has_a_name = !attempt.write.empty();
    if (has_a_name && doubted && *doubted != seen->version) {
      return fail(in_doubt("the mark has changed since", refused ? *refused : *lost));
    }
    if (refused) return fail(counted(at, std::move(*refused)));
    const auto done = at.commit(*seen, std::get<Enter>(verdict).next);
    if (done && *done == Commit::done) return Passed::done;
    if (!done && done.error().code != ErrorCode::outcome_unknown) {
      if (lost) return fail(in_doubt("repeating it failed", done.error()));
      return fail(done.error());
    }
    if (!done) {
      doubted = seen->version;
      lost = done.error();
    }
    if (!retries.next()) {
      return fail(lost ? std::move(*lost) : too_many_others(resource, context));
    }
  }
}

Status pass_adoption(const ResourceName& resource, const Lineage& lineage, TokenNumber at_least,
                     const Pass& at, const CallContext& context) {
  return pass_change(resource, at, context, [&](const SeenMark& seen) {
    return adopted(resource, seen.mark, lineage, at_least);
  });
}

Status pass_reset(const ResourceName& resource, const Pass& at, const CallContext& context) {
  return pass_change(resource, at, context, [&](const SeenMark& seen) -> Result<Mark> {
    if (seen.version == 0) return fail(unknown_resource(resource));
    return Mark{};
  });
}

}  // namespace leasehold::fence
