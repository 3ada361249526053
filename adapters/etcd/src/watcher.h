// Waits until keys are deleted or changed, all on one stream.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "leasehold/id.h"
#include "transport.h"

namespace leasehold::etcd {

// Why a request watches: to hear when it may be its turn, when the number of permits is another, or
// when its own key is gone. And whoever wants to know who holds a lock: that goes on when something
// was told.
enum class Watched { predecessor, permits, own, lock };

struct WatchedKeys {
  std::string key = {};
  std::string range_end = {};  // empty: that key alone
  bool puts = false;           // not only deletions

  bool operator==(const WatchedKeys&) const = default;
};

class WatchListener {
 public:
  virtual ~WatchListener() = default;
  // It happened. Called with no lock held; it may watch again.
  virtual void key_changed(const RequestId& request, Watched which) = 0;
  // The watch is over for another reason (connection lost, history compacted): look for yourself.
  virtual void watch_lost(const RequestId& request, Watched which) = 0;
  // The watch (not of the own key) has begun, but something was changed before that: it may have
  // been what it waits for. The watch goes on.
  virtual void watch_began_late(const RequestId& request, Watched which) = 0;
};

// Thread safe, never blocks, except close(). The stream is opened by the first watch; when it
// breaks, every watch is told lost, and the next one opens another.
class Watcher {
 public:
  Watcher(Transport& transport, WatchListener& listener);
  ~Watcher();

  // Tells of what comes after revision `seen`, at most once but for a lock. Gives the number to
  // cancel it; 0 after close().
  std::int64_t watch(const WatchedKeys& keys, std::int64_t seen, const RequestId& request,
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
