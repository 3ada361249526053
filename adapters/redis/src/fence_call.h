// The fence's script as calls, and what its answers mean.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "leasehold/redis/fence.h"
#include "server.h"

namespace leasehold::redis {

// What the script is given before the command.
struct Ticket {
  std::string mode;
  std::string number;
  std::string lineage = {};
  std::string request = {};
  std::int64_t sequence = 0;
};

class FenceCall {
 public:
  FenceCall(const ResourceName& resource, const Ticket& ticket, const Command& command = {});

  // The command's answer, or the failure that an error of the script stands for. Is done again
  // while its outcome is not known, if that is safe and there is time.
  [[nodiscard]] Result<resp::Value> run(Server& server, const EnterOptions& options) const;

 private:
  ScriptCall call_;
  bool has_command_;
  bool may_repeat_;
};

// What the script itself answers with, as Error::store_code. The errors have a Refusal; of the last
// two only its mark means something.
inline constexpr std::string_view kRefused = "FENCEDOUT";
inline constexpr std::string_view kMoved = "FENCEMOVED";
inline constexpr std::string_view kLower = "FENCELOWER";
inline constexpr std::string_view kUnknown = "FENCEUNKNOWN";

// What an error reply means: the script runs the command last, so that every error that it answers
// by itself came before the command, or is the command's own. Takes any bytes.
Error meaning_of(const std::string& words);

// A refusal of the script with a sentence and both numbers; other errors as they are.
Error explained(const ResourceName& resource, const Token& token, Error error);

// `invalid` for an empty command or a negative sequence number.
[[nodiscard]] Status check_call(const Command& command, const EnterOptions& options);
Reply reply_of(resp::Value value);

}  // namespace leasehold::redis
