// A mark as a text, for resources that keep texts, and the rules of entering it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "leasehold/enter_options.h"
#include "leasehold/error.h"
#include "leasehold/fence_admin.h"
#include "leasehold/token.h"

namespace leasehold::detail {

struct FenceRecord {
  struct Entered {
    TokenNumber number;
    RequestId request;
    std::int64_t sequence = 0;  // of the holder's last write that had one; 0: none
    std::string write = {};     // names the holder's last write; empty: none
    bool operator==(const Entered&) const = default;
  };
  std::optional<Lineage> lineage;    // the only one that may enter; none: the first to come
  std::optional<TokenNumber> least;  // adopted: the lowest token to let in
  std::optional<Entered> entered;
  bool operator==(const FenceRecord&) const = default;

  // The number that an entering token is compared with; 0: none.
  std::int64_t threshold() const;

  // "leasehold-fence 1" and a line per field. People and other programs may read it.
  std::string str() const;
  // Nothing unless it is a whole record of this version.
  static std::optional<FenceRecord> parse(std::string_view text);

  FenceMark mark(const ResourceName& resource, std::int64_t refused) const;
};

// One holder that wants to enter, perhaps to write.
struct FenceAttempt {
  Token token;
  bool once = false;          // a token that has entered may not enter again
  std::int64_t sequence = 0;  // orders the holder's writes; 0: none
  std::string write = {};     // names the write: no two have the same; empty: it only enters
};

// `content` is what the operations are: with a sequence number they must be the same when they come
// again. Fails with `invalid` for a negative sequence number.
[[nodiscard]] Result<FenceAttempt> attempt_of(const Token& token, const EnterOptions& options,
                                              bool writes, const std::vector<std::string>& content);

struct FenceAdmitted {
  FenceRecord record;  // what to remember with it
};
struct FenceRepeated {};  // this very write was the holder's last
using FenceVerdict = std::variant<FenceAdmitted, FenceRepeated, Error>;

// The error is `fenced_out`, or `invalid` if the sequence number was used for another write.
FenceVerdict judge(const ResourceName& resource, const FenceRecord& record,
                   const FenceAttempt& attempt);

// `invalid` for a negative sequence number.
[[nodiscard]] Status check_sequence(std::int64_t sequence);

// Lets `lineage` in from `at_least` on, and nobody else. Fails with `invalid` if that would lower
// the mark.
[[nodiscard]] Result<FenceRecord> adopted(const ResourceName& resource, const FenceRecord& record,
                                          const Lineage& lineage, TokenNumber at_least);

// The same for the same parts, and hardly ever for others: 32 hexadecimal digits.
std::string fingerprint(const std::vector<std::string>& parts);

}  // namespace leasehold::detail
