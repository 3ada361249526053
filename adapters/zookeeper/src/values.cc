#include "leasehold/zookeeper/values.h"

#include <chrono>
#include <memory>
#include <utility>

#include "blocking_session.h"
#include "kit/text/resource_url.h"
#include "kit/try.h"
#include "node_names.h"

namespace leasehold::zookeeper {
namespace {

CallContext one_call() {
  return {BootClock::now() + std::chrono::seconds(5), {}};
}

class NodeValues final : public KeyedStore<SeenNode> {
 public:
  explicit NodeValues(Options options) : session_(std::move(options)) {}

  Status connect() { return session_.connect(one_call()); }

  Status check(const std::string& path) const override { return check_path(path); }

  Result<SeenNode> read(const std::string& path) override {
    auto node = TRY(session_.read(path, one_call()));
    if (!node) return SeenNode{};
    return SeenNode{std::move(node->data), node->stat.version};
  }

  Result<bool> write(const std::string& path, const SeenNode& seen,
                     const std::string& value) override {
    if (value.size() + path.size() > kMostRequestBytes) {
      return fail(ErrorCode::invalid, "the value has " + std::to_string(value.size()) +
                                          " bytes; with its path at most " +
                                          std::to_string(kMostRequestBytes) + " are allowed");
    }
    Step step{.kind = Step::Kind::create, .path = path, .data = value};
    if (seen.value) {
      step.kind = Step::Kind::set;
      step.version = seen.version;
    }
    const auto done = TRY(session_.transact({std::move(step)}, one_call()));
    const Outcome outcome = outcome_of(done.rc);
    if (outcome == Outcome::done) return true;
    if (outcome == Outcome::node_exists || done.rc == kBadVersion) return false;
    if (outcome == Outcome::no_node && seen.value) return false;
    if (outcome == Outcome::no_node) {
      return fail(ErrorCode::invalid, "the parent of node '" + path + "' is not there");
    }
    return fail(
        error_at(session_.options().address,
                 Error(ErrorCode::unavailable, "the server does not let this client write " + path,
                       words_of(done.rc))));
  }

 private:
  BlockingSession session_;
};

}  // namespace

Result<Values> Values::open(std::string_view text) {
  const Url url =
      TRY(kit::resource_url(text, {"zookeeper"}, "values in ZooKeeper are at a zookeeper:// URL"));
  auto options = TRY(Options::of(url, kFenceOffer));
  auto values = std::make_shared<NodeValues>(std::move(options));
  TRY(values->connect());
  return Values(std::move(values));
}

}  // namespace leasehold::zookeeper
