// A session that only looks: it makes none of the store's own nodes.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "connection.h"
#include "leasehold/store.h"
#include "mailbox.h"
#include "options.h"

namespace leasehold::zookeeper {

// For one thread.
class PlainSession {
 public:
  // Waits until it is connected. `unavailable`, with what the hosts say.
  [[nodiscard]] static Result<std::unique_ptr<PlainSession>> open(const Options& options,
                                                                  Millis timeout,
                                                                  const CallContext& context);
  ~PlainSession() { connection_.close(); }
  PlainSession(const PlainSession&) = delete;

  Millis timeout() const { return connection_.session_timeout(); }

  struct Node {
    int rc = 0;
    std::string data;
    NodeStat stat;
  };
  // A reply code each; nothing if none came in time.
  std::optional<Node> get(const std::string& path, const CallContext& context);
  std::optional<int> create(const std::string& path, const CallContext& context);
  std::optional<int> remove(const std::string& path, const CallContext& context);

 private:
  PlainSession();

  const std::shared_ptr<Mailbox<Connection::State>> first_;
  Connection connection_;
};

}  // namespace leasehold::zookeeper
