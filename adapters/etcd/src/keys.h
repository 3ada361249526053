// Where everything stands in etcd, and what is written there. docs/etcd.md shows it to other
// programs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kit/text/percent.h"
#include "leasehold/id.h"
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

// The first key after all that begin with `prefix`.
std::string end_of_prefix(std::string prefix);

// The keys of one store: everything below one prefix. What is no lock begins with '!', which sorts
// before all names of locks.
class Keys {
 public:
  explicit Keys(std::string prefix) : prefix_(std::move(prefix)) {}

  // The name to give to `etcdctl lock`. python-etcd3 has its lock at this very key.
  std::string known_as(const LockName& lock) const { return prefix_ + percent_encode(lock.str()); }
  // All who hold or want the lock have a key in this folder.
  std::string folder(const LockName& lock) const { return known_as(lock) + "/"; }
  std::string own(const LockName& lock, const RequestId& request) const {
    return folder(lock) + request.hex();
  }
  std::string lineage() const { return prefix_ + "!lineage"; }
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

 private:
  std::string prefix_;
};

// What stands in the value of an own key: "held 1763190000000 host:1:program". The time is the
// owner's, in milliseconds since 1970; people read it, nothing depends on it.
struct OwnValue {
  enum class State { held, waits, kept };
  State state = State::waits;
  std::int64_t since_ms = 0;
  std::string owner;

  std::string str() const;
  static std::optional<OwnValue> parse(std::string_view text);
};

// Whose key it is, for people: the owner by its value, or another program's.
std::string owner_of(std::string_view key, const std::optional<OwnValue>& value);

// The id of a request that has its key at `leaf`. Another program's key (etcdctl uses the number of
// its lease) gets one from its create revision, always the same.
RequestId request_of(std::string_view leaf, std::int64_t create_revision);

std::string encode_record(const OnceRecord& record);
std::optional<OnceRecord> decode_record(std::string_view text);

}  // namespace leasehold::etcd
