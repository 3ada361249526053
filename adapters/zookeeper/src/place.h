// One request's place in the queue of a lock; queue.h says who of them hold it.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "agenda.h"
#include "leasehold/store.h"
#include "session.h"

namespace leasehold::zookeeper {

// Guarded by the mutex of the store that has it.
struct Place {
  enum class Node {
    none,
    unknown,   // it was asked for, and the answer is not here (yet)
    standing,  // at `path`
  };

  Place(LockName name, const RequestId& id, std::string in)
      : lock(std::move(name)), request(id), folder(std::move(in)) {}

  const LockName lock;
  const RequestId request;
  const std::string folder;

  // The node belongs to this session and to no other; none without a node.
  std::shared_ptr<Session> session = {};
  Node node = Node::none;
  std::string path = {};
  std::int64_t token = 0;
  bool admitted = false;        // it fits to how the lock is used
  bool watches_folder = false;  // while it waits
  bool granted = false;
  std::optional<Slot> slot = {};          // of a permit that is granted
  Millis ttl{0};                          // as granted
  std::optional<StoreId> lineage = {};    // at the grant
  BootTime expires = {};                  // not asked for until then: it is taken away
  bool expired = false;                   // that has happened
  bool leaving = false;                   // it is being taken away, until that is acknowledged
  std::optional<Agenda::Key> timer = {};  // looks at `expires`

  bool queued_before = false;  // by an earlier ask

  // One thing at a time is done to the node; the rest waits here.
  bool occupied = false;
  std::deque<std::function<void()>> turns = {};

  void clear() {
    session.reset();
    node = Node::none;
    path.clear();
    token = 0;
    admitted = false;
    watches_folder = false;
    granted = false;
    slot.reset();
    lineage.reset();
    expired = false;
    leaving = false;
  }
};
using PlacePtr = std::shared_ptr<Place>;

}  // namespace leasehold::zookeeper
