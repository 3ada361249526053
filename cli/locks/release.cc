#include <algorithm>

#include "cli/command/arguments.h"
#include "cli/command/output.h"
#include "cli/command/store_choice.h"
#include "cli/command/subcommand.h"

namespace leasehold::cli {
namespace {

class Release final : public Subcommand {
 public:
  void declare(Arguments& arguments) override {
    arguments.description(
        "For a holder that is dead or stuck, when waiting for its lease to end is too long. It "
        "takes the lock from the one holder it saw, never from its successor. The old holder is "
        "told at its next renewal; until then it may still work, so fence what it writes.");
    arguments.positional("NAME", name_, "The lock's name");
    arguments.flag("--force", force_, "Really take it away");
    arguments.option("--request", "ID", request_,
                     "Only from this holder: the request id that 'leasehold show' printed");
    declare_store(arguments, store_);
    arguments.ends_with(ExitStatus::busy, "the lock is not held");
    arguments.example("leasehold release backup --force", "free the lock of a stuck job");
  }

  Ending execute() override {
    const auto name = LockName::parse(name_);
    if (!name) return report(name.error());
    const auto wanted = request_ ? RequestId::from_hex(*request_) : std::nullopt;
    if (request_ && !wanted) {
      return report(Error(ErrorCode::invalid, "--request: '" + shown(*request_) +
                                                  "' is not a request id of 32 hexadecimal "
                                                  "digits, as 'leasehold show' prints it"));
    }
    if (!force_) {
      note(
          "release takes the lock away from a holder that may still be working; look at it with: "
          "leasehold show " +
          operands({name->str()}) + "; then add --force");
      return ExitStatus::wrong_input;
    }
    if (is_not_there_yet(store_)) return gone(*name, "is not held");
    auto client = open_existing_store(store_);
    if (!client) return report(client.error());
    return take_away(*client, *name, wanted);
  }

 private:
  static ExitStatus gone(const LockName& name, const std::string& why) {
    note("nothing was released: lock " + in_quotes(name.str()) + " " + why);
    return ExitStatus::busy;
  }

  static ExitStatus take_away(Client& client, const LockName& name,
                              const std::optional<RequestId>& wanted) {
    const auto seen = client.inspect(name);
    if (!seen) return report(seen.error());
    if (seen->holders.empty()) return gone(name, "is not held");
    const auto& holders = seen->holders;
    if (holders.size() > 1 && !wanted) {
      return report(Error(ErrorCode::invalid,
                          "lock " + in_quotes(name.str()) + " is held by " +
                              std::to_string(holders.size()) +
                              "; say from whom to take it with --request: 'leasehold show' prints "
                              "the request id of each"));
    }
    const auto is_wanted = [&](const auto& it) { return !wanted || it.request == *wanted; };
    const auto found = std::ranges::find_if(holders, is_wanted);
    if (found == holders.end()) {
      return gone(name, "is held by another request now: " + holders.front().owner + ", request " +
                            holders.front().request.hex());
    }
    const LockStatus::Holder& holder = *found;
    const auto reply = client.force_release(name, holder.request);
    if (!reply) return report(reply.error());
    if (*reply == ReleaseReply::not_held) {
      return gone(name, holder.foreign ? "is held by " + visible(holder.owner) +
                                             ", which is not Leasehold's to take away"
                                       : "was given back meanwhile");
    }
    const std::string token =
        holder.foreign ? "" : ", token " + std::to_string(holder.token.value());
    return print("took " + in_quotes(name.str()) + " away from " + visible(holder.owner) +
                 " (request " + holder.request.hex() + token + ")\n");
  }

  std::string name_;
  std::optional<std::string> store_;
  std::optional<std::string> request_;
  bool force_ = false;
};

}  // namespace

SubcommandEntry release_command() {
  return {"release", "Take a lock away from a dead or stuck holder", make<Release>};
}

}  // namespace leasehold::cli
