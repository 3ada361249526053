#include "cli/fence/sweep.h"

#include "cli/command/arguments.h"
#include "cli/command/output.h"
#include "cli/command/progress_line.h"
#include "cli/command/url_help.h"
#include "cli/fence/open_fence.h"

namespace leasehold::cli {
namespace {

std::string swept(std::int64_t count) {
  return std::to_string(count) + (count == 1 ? " mark" : " marks") + " swept";
}

}  // namespace

void FenceSweep::declare(Arguments& fence) {
  sweep_ = &fence.subcommand("sweep", "Delete marks with which nobody has entered for long");
  sweep_->description(
      "Where there are millions of resources, their marks take space for ever. This deletes those "
      "that are old and, so that late holders are still refused, keeps for each lock store the "
      "highest token among them: a resource without a mark then refuses every token up to it. "
      "Marks "
      "of claims, and what an operator has adopted or reset, stay. It may be stopped at any time "
      "and "
      "run again.");
  declare_url(*sweep_);
  sweep_->duration(
      "--older-than", older_than_,
      "Required: sweep what nobody has entered for so long, longer than any lease that "
      "has not entered yet",
      kAboveZero);
  sweep_->example("leasehold fence sweep postgres://app@db/shop --older-than 30d",
                  "keep the marks of the last thirty days");

  admit_ = &fence.subcommand("admit", "Let a lock store in that came after a sweep");
  admit_->description(
      "Once marks were swept, a resource without a mark refuses the tokens of a lock store that "
      "the "
      "fence did not know then, as they cannot be compared with what was swept. This lets them in. "
      "Stop the holders of the store that it replaces before.");
  declare_url(*admit_);
  admit_->positional(
      "STORE_ID", store_,
      "32 hexadecimal digits: the first part of LEASEHOLD_LINEAGE in 'leasehold run'");
  admit_->example(
      "leasehold fence admit sqlite:/var/lib/app/app.db 00112233445566778899aabbccddeeff",
      "let a new lock store in");
}

void FenceSweep::declare_url(Arguments& arguments) {
  arguments.positional("URL", url_, "The resource: " + example_urls(kFenceOffer),
                       url_beginnings(kFenceOffer));
}

bool FenceSweep::chosen() const {
  return sweep_->chosen() || admit_->chosen();
}

ExitStatus FenceSweep::execute() const {
  return sweep_->chosen() ? sweep() : admit();
}

ExitStatus FenceSweep::sweep() const {
  if (!older_than_) {
    return report(Error(ErrorCode::invalid,
                        "--older-than is missing: say for how long nobody may have entered, as in "
                        "--older-than 30d"));
  }
  const auto fence = open_fence(url_);
  if (!fence) return report(fence.error());
  ProgressLine line;
  const auto done =
      (*fence)->sweep({.older_than = *older_than_,
                       .progress = [&line](std::int64_t count) { line.draw(swept(count)); }});
  if (!done) return report(done.error());
  line.draw("");
  return print(swept(*done) + "\n");
}

ExitStatus FenceSweep::admit() const {
  const auto store = StoreId::from_hex(store_);
  if (!store) {
    return report(
        Error(ErrorCode::invalid,
              "STORE_ID must be 32 lower-case hexadecimal digits, and is " + in_quotes(store_)));
  }
  const auto fence = open_fence(url_);
  if (!fence) return report(fence.error());
  if (const auto done = (*fence)->admit(*store); !done) return report(done.error());
  return print("tokens of store " + store->hex() + " are let in\n");
}

}  // namespace leasehold::cli
