#include "quorum.h"

#include <algorithm>
#include <future>
#include <optional>

#include "kit/try.h"

namespace leasehold::redis {

using resp::Value;
using waiting::CallWait;

namespace {

// How long a node that was silent is left out.
constexpr Millis kRest{500};

Answer without(Error error) {
  const bool unknown = error.code == ErrorCode::outcome_unknown;
  return {unknown ? Answer::Kind::unknown : Answer::Kind::not_done, {}, std::move(error)};
}

}  // namespace

bool Quorum::Node::rests() const {
  return BootClock::now().time_since_epoch().count() < rests_until;
}

void Quorum::Node::rest() {
  rests_until = (BootClock::now() + kRest).time_since_epoch().count();
}

// One question on its way to some nodes.
class Quorum::Round {
 public:
  Round(Quorum& quorum, const Question& question, const CallContext& context, Millis each)
      : quorum_(quorum),
        question_(question),
        caller_(context),
        each_(each),
        answers_(quorum.size()),
        loans_(quorum.size()) {}

  Answers run(const std::vector<std::size_t>& chosen) {
    connect(chosen);
    const CallContext asking = limited();
    for (const std::size_t node : chosen) send(node, question_.command, asking);
    std::vector<std::size_t> ignorant;
    for (const std::size_t node : chosen) {
      if (collect(node, asking) == Got::unknown_script) ignorant.push_back(node);
    }
    if (ignorant.empty()) return std::move(answers_);
    const CallContext teaching = limited();
    for (const std::size_t node : ignorant) send(node, question_.in_full, teaching);
    for (const std::size_t node : ignorant) collect(node, teaching);
    return std::move(answers_);
  }

 private:
  enum class Got { something, unknown_script };

  CallContext limited() const {
    return {std::min(caller_.deadline, BootClock::now() + each_), caller_.stop};
  }
  Server& server(std::size_t node) { return *quorum_.nodes_[node]->server; }

  // All at once: one that is slow to take a connection does not delay the others. Without threads
  // for that, one after the other.
  void connect(const std::vector<std::size_t>& chosen) {
    const CallContext context = limited();
    std::vector<std::future<void>> connecting;
    for (const std::size_t node : chosen) {
      if (auto idle = server(node).borrow_idle()) {
        loans_[node].emplace(std::move(*idle));
        continue;
      }
      try {
        connecting.push_back(
            std::async(std::launch::async, [this, node, &context] { connect(node, context); }));
      } catch (const std::system_error&) {
        connect(node, context);
      }
    }
    for (const auto& it : connecting) it.wait();
  }

  void connect(std::size_t node, const CallContext& context) {
    auto loan = server(node).borrow(context);
    if (loan) {
      loans_[node].emplace(std::move(*loan));
    } else {
      give_up(node, std::move(loan.error()), context);
    }
  }

  void send(std::size_t node, const std::string& command, const CallContext& context) {
    if (!loans_[node]) return;
    CallWait wait(context, server(node).closing());
    if (auto ok = (*loans_[node])->send(wait, command); !ok) {
      give_up(node, std::move(ok.error()), context);
    }
  }

  Got collect(std::size_t node, const CallContext& context) {
    if (!loans_[node]) return Got::something;
    CallWait wait(context, server(node).closing());
    auto reply = (*loans_[node])->reply(wait);
    if (!reply) {
      give_up(node, std::move(reply.error()), context);
      return Got::something;
    }
    if (is_unknown_script(*reply) && !question_.in_full.empty()) return Got::unknown_script;
    if (reply->is_error()) {
      give_up(node, error_of(reply->text), context);
      return Got::something;
    }
    answers_[node] = {Answer::Kind::given, std::move(*reply)};
    loans_[node].reset();
    return Got::something;
  }

  void give_up(std::size_t node, Error error, const CallContext& context) {
    if (loans_[node]) {
      server(node).drop(*loans_[node]);
      loans_[node].reset();
    }
    if (BootClock::now() >= context.deadline) quorum_.nodes_[node]->rest();
    answers_[node] = without(error_at(server(node).address(), std::move(error)));
  }

  Quorum& quorum_;
  const Question& question_;
  const CallContext& caller_;
  const Millis each_;
  Answers answers_;
  std::vector<std::optional<Server::Pool::Loan>> loans_;
};

Result<std::unique_ptr<Quorum>> Quorum::make(const Options& options) {
  auto quorum = std::make_unique<Quorum>();
  for (const resp::Endpoint& endpoint : options.servers) {
    auto server = TRY(Server::make(endpoint, options.connections));
    quorum->nodes_.push_back(std::make_unique<Node>(std::move(server)));
  }
  return quorum;
}

std::vector<std::size_t> Quorum::awake() const {
  std::vector<std::size_t> all;
  std::vector<std::size_t> awake;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    all.push_back(i);
    if (!nodes_[i]->rests()) awake.push_back(i);
  }
  return awake.size() >= majority() ? awake : all;
}

Answers Quorum::ask(const Question& question, const CallContext& context, Millis each) {
  return Round(*this, question, context, each).run(awake());
}

Answers Quorum::ask(const Question& question, const CallContext& context, Millis each,
                    const std::vector<std::size_t>& chosen) {
  return Round(*this, question, context, each).run(chosen);
}

void Quorum::close() {
  for (auto& node : nodes_) node->server->hurry();
  for (auto& node : nodes_) node->server->close();
}

}  // namespace leasehold::redis
