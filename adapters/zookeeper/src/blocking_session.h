// A session for callers who wait: each call blocks until its answer, and a session that is over is
// replaced by a new one.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kit/threads/thread_safety.h"
#include "leasehold/store.h"
#include "session.h"

namespace leasehold::zookeeper {

// Of one request: the server breaks off at 1 MiB.
constexpr std::size_t kMostRequestBytes = 1'000'000;

// Thread safe. Reads go on after a break until the deadline; `unavailable` means that nothing was
// done. A write that may have been done is `outcome_unknown`.
class BlockingSession final : private SessionListener {
 public:
  explicit BlockingSession(Options options) : options_(std::move(options)) {}
  ~BlockingSession() override;
  BlockingSession(const BlockingSession&) = delete;

  const Options& options() const { return options_; }

  // Returns when there is a session that can be used.
  [[nodiscard]] Status connect(const CallContext& context);

  struct Node {
    std::string data;
    NodeStat stat;
  };
  // As new as the leader had it. Nothing if there is no such node.
  [[nodiscard]] Result<std::optional<Node>> read(const std::string& path,
                                                 const CallContext& context);
  // Nothing if there is no such node.
  [[nodiscard]] Result<std::optional<std::vector<std::string>>> children(
      const std::string& path, const CallContext& context);

  // A reply code of the server for the whole, and one for each step. Never a code of a broken
  // connection.
  struct Transacted {
    int rc = 0;
    std::vector<int> each;
  };
  [[nodiscard]] Result<Transacted> transact(std::vector<Step> steps, const CallContext& context);
  // A reply code.
  [[nodiscard]] Result<int> create(const std::string& path, const std::string& data,
                                   const CallContext& context);
  [[nodiscard]] Result<int> set(const std::string& path, const std::string& data,
                                const CallContext& context);

 private:
  using SessionPtr = std::shared_ptr<Session>;

  void session_ready(const SessionPtr&) override {}
  void session_over(const SessionPtr& session) override LEASEHOLD_EXCLUDES(mutex_);
  void session_broken(const Session&) override {}
  void path_touched(const Session&, const std::string&) override {}
  void node_touched(const RequestId&) override {}

  SessionPtr current() LEASEHOLD_EXCLUDES(mutex_);
  [[nodiscard]] Result<SessionPtr> ready(const CallContext& context);
  Error lost(int rc) const;
  Error late(const CallContext& context, bool sent) const;

  const Options options_;
  Agenda agenda_;
  Agenda chores_;  // what may take as long as a name server does
  Mutex mutex_;
  SessionPtr session_ LEASEHOLD_GUARDED_BY(mutex_);
  std::vector<SessionPtr> over_ LEASEHOLD_GUARDED_BY(mutex_);  // closed by the next caller
};

}  // namespace leasehold::zookeeper
