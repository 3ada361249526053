// Waits for the deletion of keys, all on one stream.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "leasehold/id.h"
#include "transport.h"

namespace leasehold::etcd {

enum class Watched { predecessor, own };

class WatchListener {
 public:
  virtual ~WatchListener() = default;
  // The key was deleted. Called with no lock held; it may watch again.
  virtual void key_deleted(const RequestId& request, Watched which) = 0;
  // The watch is over for another reason (connection lost, history compacted): look for yourself.
  virtual void watch_lost(const RequestId& request, Watched which) = 0;
  // The watch of the predecessor has begun, but something was changed before that: it may have been
  // the deletion of that key. The watch goes on.
  virtual void watch_began_late(const RequestId& request) = 0;
};

// Thread safe, never blocks, except close(). The stream is opened by the first watch; when it
// breaks, every watch is told lost, and the next one opens another.
class Watcher {
 public:
  Watcher(Transport& transport, WatchListener& listener);
  ~Watcher();

  // Tells of a deletion after revision `seen`, at most once. Gives the number to cancel it; 0 after
  // close().
  std::int64_t watch(const std::string& key, std::int64_t seen, const RequestId& request,
                     Watched which);
  void cancel(std::int64_t watch);

  // Breaks the stream if it is not on this connection, so that a silent server is left.
  void move_to(const ConnectionPointer& connection);

  // No call to the listener comes after it has returned.
  void close();

 private:
  class Stream;
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace leasehold::etcd
