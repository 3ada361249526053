// Where everything stands in etcd, and what is written there. docs/etcd.md shows it to other
// programs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kit/text/percent.h"
#include "leasehold/id.h"
#include "leasehold/mode.h"
#include "leasehold/name.h"
#include "leasehold/store.h"

namespace leasehold::etcd {

// Letters, digits and -._~ stay; every other byte becomes %XX. So an encoded text has no slash, and
// no lock's keys lie inside another's.
inline std::string percent_encode(std::string_view text) {
  return kit::percent_encoded(text);
}
// Nothing if it is not such a text.
inline std::optional<std::string> percent_decode(std::string_view text) {
  return kit::percent_decoded_as(text, percent_encode);
}

// Of what is written here: a program refuses any other.
inline constexpr std::string_view kFormat = "1";

// The first key after all that begin with `prefix`.
std::string end_of_prefix(std::string prefix);

// The last part of an own key.
std::string leaf_of(const RequestId& request, Mode mode);

// The keys of one store: everything below one prefix. What is no lock begins with '!', which sorts
// before all names of locks.
class Keys {
 public:
  explicit Keys(std::string prefix) : prefix_(std::move(prefix)) {}

  // The name to give to `etcdctl lock`. python-etcd3 has its lock at this very key.
  std::string known_as(const LockName& lock) const { return prefix_ + percent_encode(lock.str()); }
  // All who hold or want the lock have a key in this folder. Its name tells the mode, so that the
  // server can compare it: what is not of the two below is exclusive, as other programs' keys are.
  std::string folder(const LockName& lock) const { return known_as(lock) + "/"; }
  std::string shared(const LockName& lock) const { return folder(lock) + "shared-"; }
  std::string permits(const LockName& lock) const { return folder(lock) + "permit-"; }
  std::string permits(const LockName& lock, std::int64_t number) const {
    return permits(lock) + std::to_string(number) + "-";
  }
  std::string own(const LockName& lock, const RequestId& request, Mode mode = {}) const {
    return folder(lock) + leaf_of(request, mode);
  }
  // Who has which slot. It counts as long as its owner's key is there.
  std::string slots() const { return prefix_ + "!slot/"; }
  std::string slots(const LockName& lock) const {
    return slots() + percent_encode(lock.str()) + "/";
  }
  std::string slot(const LockName& lock, Slot slot) const {
    return slots(lock) + std::to_string(slot.number);
  }
  // The number of permits that an operator has set is a part of its key's name.
  std::string set_permits() const { return prefix_ + "!permits/"; }
  std::string set_permits(const LockName& lock) const {
    return set_permits() + percent_encode(lock.str()) + "/";
  }
  std::string set_permits(const LockName& lock, std::int64_t number) const {
    return set_permits(lock) + std::to_string(number);
  }
  std::string lineage() const { return prefix_ + "!lineage"; }
  // Of all these keys, and of what stands in them.
  std::string format() const { return prefix_ + "!format"; }
  const std::string& prefix() const { return prefix_; }
  std::string once(const LockName& lock) const {
    return prefix_ + "!once/" + percent_encode(lock.str()) + "/";
  }
  std::string once(const LockName& lock, const std::string& key) const {
    return once(lock) + percent_encode(key);
  }
  // The marks of fences, and per resource a key that is put once for each refusal.
  std::string marks() const { return prefix_ + "!fence/"; }
  std::string refusals() const { return prefix_ + "!refused/"; }
  std::string mark(const ResourceName& resource) const {
    return marks() + percent_encode(resource.str());
  }
  std::string refused(const ResourceName& resource) const {
    return refusals() + percent_encode(resource.str());
  }
  // While a key is in this folder, the request is withdrawn, or its lock is kept: a late
  // transaction of it does nothing.
  std::string withdrawn(const RequestId& request) const {
    return prefix_ + "!withdrawn/" + request.hex() + "/";
  }
  std::string withdrawn(const RequestId& request, std::int64_t lease) const {
    return withdrawn(request) + std::to_string(lease);
  }

  // All locks lie between these two.
  std::string locks_begin() const { return prefix_ + "\""; }
  std::string locks_end() const { return end_of_prefix(prefix_); }

  struct Place {
    LockName lock;
    std::string_view leaf;  // of the key that was parsed
    bool outside = false;   // not in the lock's folder, but at its name
  };
  // Nothing if the key is neither in a lock's folder nor at its name.
  std::optional<Place> parse(std::string_view key) const;

  struct Numbered {
    LockName lock;
    std::int64_t number;
  };
  // A key of slots() or set_permits(), whichever is `folder`.
  static std::optional<Numbered> parse_numbered(std::string_view key, std::string_view folder);

 private:
  std::string prefix_;
};

struct Leaf {
  RequestId request;
  Mode mode;

  // Nothing if it is another program's.
  static std::optional<Leaf> parse(std::string_view text);
};
// Exclusive, if it is another program's.
Mode mode_of(std::string_view leaf);

// What stands in the value of an own key: "1 held 1763190000000 host:1:program", and the note in a
// line of its own. The first number is the version of this format. The time is the owner's, in
// milliseconds since 1970; people read all this, nothing depends on it.
struct OwnValue {
  enum class State { held, waits, kept };
  State state = State::waits;
  std::int64_t since_ms = 0;
  std::string owner;
  std::string note = {};

  std::string str() const;
  // Nothing if it is of another version, or another program's.
  static std::optional<OwnValue> parse(std::string_view text);
};

// What stands in the value of a slot's key: whose it is.
std::string slot_value(const RequestId& request, Mode mode);
// The leaf of the owner's key; nothing if it is of another version.
std::optional<std::string_view> slot_owner(std::string_view value);

// Whose key it is, for people: the owner by its value, or another program's.
std::string owner_of(std::string_view key, const std::optional<OwnValue>& value);

// The id of a request that has its key at `leaf`. Another program's key (etcdctl uses the number of
// its lease) gets one from its create revision, always the same.
RequestId request_of(std::string_view leaf, std::int64_t create_revision);

std::string encode_record(const OnceRecord& record);
std::optional<OnceRecord> decode_record(std::string_view text);

}  // namespace leasehold::etcd
