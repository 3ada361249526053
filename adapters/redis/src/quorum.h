// Several independent servers, asked at once.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "leasehold/resp/value.h"
#include "leasehold/store.h"
#include "options.h"
#include "script.h"
#include "server.h"

namespace leasehold::redis {

// What every node is asked.
struct Question {
  std::string command;
  std::string in_full = {};  // for a node that does not know the script

  static Question of(const ScriptCall& call) { return {call.command(), call.command(true)}; }
};

struct Answer {
  enum class Kind {
    given,     // `value` is it, and no error
    not_done,  // the node was not reached, or refused
    unknown,   // it may have done it, or may still do it
  };
  Kind kind = Kind::not_done;
  resp::Value value = {};
  Error error{ErrorCode::unavailable, "not asked"};
};
using Answers = std::vector<Answer>;  // one per node, in order

// Thread safe. The calling thread does the I/O: it sends to all nodes, then collects.
class Quorum {
 public:
  // `invalid` for a TLS file that cannot be used. Does not connect.
  [[nodiscard]] static Result<std::unique_ptr<Quorum>> make(const Options& options);

  std::size_t size() const { return nodes_.size(); }
  std::size_t majority() const { return nodes_.size() / 2 + 1; }
  Server& server(std::size_t node) { return *nodes_[node]->server; }

  // One round to all nodes, or to `chosen`, which lasts no longer than `each`; before it, a node
  // that must be connected to may take as long. A node that was silent is left out for a while, as
  // long as the others are a majority.
  [[nodiscard]] Answers ask(const Question& question, const CallContext& context, Millis each);
  [[nodiscard]] Answers ask(const Question& question, const CallContext& context, Millis each,
                            const std::vector<std::size_t>& chosen);

  // Ends every call; returns when none runs.
  void close();

 private:
  struct Node {
    explicit Node(std::unique_ptr<Server> made) : server(std::move(made)) {}
    std::unique_ptr<Server> server;
    std::atomic<BootClock::rep> rests_until = 0;

    bool rests() const;
    void rest();
  };
  class Round;

  std::vector<std::size_t> awake() const;

  std::vector<std::unique_ptr<Node>> nodes_;
};

}  // namespace leasehold::redis
