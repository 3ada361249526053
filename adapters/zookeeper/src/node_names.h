// What the store calls its nodes, and in which order they stand.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "leasehold/id.h"
#include "leasehold/mode.h"
#include "leasehold/name.h"

namespace leasehold::zookeeper {

// A node name without '/', control characters and a leading dot: every byte but letters, digits,
// '_', '-' and an inner '.' is written as %XX. No two texts share a name.
std::string encode(std::string_view text);
// Nothing if it was not written by encode().
std::optional<std::string> decode(std::string_view name);

// Whose names our nodes have. All that see these names see each other.
enum class Recipe {
  curator,  // "_c_<uuid>-lock-", to which the server adds the sequence number
  kazoo,    // "<32 hex digits>__lock__", exclusive only
};
// A mode stands before "-lock-", since Curator sorts by what follows it: "_c_<uuid>-shared-lock-",
// "_c_<uuid>-permit-of-4-lock-".
std::string node_prefix(const RequestId& request, Recipe recipe, Mode mode = {});
// What it begins with in every mode.
std::string request_prefix(const RequestId& request, Recipe recipe);
// What has another name than ours is exclusive.
Mode mode_of(std::string_view name);

// The child of a lock's folder that says how many permits its operator has set. It begins with a
// letter, so that Curator puts it behind the numbers.
std::string permits_name(std::int64_t permits);
std::optional<std::int64_t> permits_in(std::string_view name);

// Whoever has a lease of a semaphore holds. Curator's, also of the mutex that it makes of one, are
// in a folder of their own in the lock's folder, here "leases/<name>"; kazoo's are called by 32 hex
// digits.
inline constexpr std::string_view kLeasesFolder = "leases";

// One program's place in a lock's folder, ours or another's.
struct Child {
  std::string name;
  // The uuid in the name; of a name without one, a hash of it.
  RequestId request;
  Mode mode = {};
};

// What stands for one stay of another program. Its uuid may not: kazoo's stays the same for the
// life of a Lock object, whose next stay would be taken for the one that was seen.
RequestId stay_of(std::string_view name);

// Nothing if it has none.
std::optional<std::int64_t> sequence_in(std::string_view name);

// The names that have a sequence number, lowest first, and before them the leases of semaphores.
// The number is a signed 32-bit that wraps; a folder that holds both ends of the range is in the
// middle of that. They point into `names`.
std::vector<std::string_view> names_in_order(const std::vector<std::string>& names);
// The same, as children.
std::vector<Child> in_order(const std::vector<std::string>& names);

// `invalid` unless it is the absolute path of a node: no empty parts, no '.' and '..', no control
// characters, and not the server's own.
[[nodiscard]] Status check_path(const std::string& path);

// The last part of a path.
std::string_view name_in(std::string_view path);

// Every record of ours in a store begins with this and the number of its format.
inline constexpr std::string_view kRecordMark = "leasehold ";
inline constexpr std::int64_t kFormat = 2;

// What stands at the lineage: the store id, and so the format of the whole store.
std::string lineage_text(const StoreId& store);
// Nothing if it is not of this format; why_not_ours() says what it is then.
std::optional<StoreId> lineage_in(std::string_view text);
Error why_not_ours(const std::string& path, std::string_view text);

// The content of our nodes: how long the session lasts, who it is, and what it says of itself.
struct Label {
  std::int64_t session_ms = 0;
  std::string owner;
  std::string note = {};

  std::string str() const;
  static std::optional<Label> parse(std::string_view text);
};

// Who stands there, for people: the owner, or what is known of another program.
std::string who(std::string_view name, const std::string& data);

}  // namespace leasehold::zookeeper
