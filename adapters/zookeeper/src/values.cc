#include "leasehold/zookeeper/values.h"

#include <chrono>

#include "blocking_session.h"
#include "fence_marks.h"
#include "leasehold/url.h"

namespace leasehold::zookeeper {
namespace {

CallContext one_call() {
  return {BootClock::now() + std::chrono::seconds(5), {}};
}

}  // namespace

Result<Values> Values::open(std::string_view text) {
  auto url = Url::parse(text);
  if (!url) return fail(std::move(url.error()));
  if (url->scheme != "zookeeper") {
    return fail(ErrorCode::invalid,
                "values in ZooKeeper are at a zookeeper:// URL, not at " + url->redacted());
  }
  if (auto ok = url->read_secrets(); !ok) return fail(std::move(ok.error()));
  auto options = Options::of(*url);
  if (!options) return fail(std::move(options.error()));
  auto session = std::make_shared<BlockingSession>(std::move(*options));
  if (auto ok = session->connect(one_call()); !ok) return fail(std::move(ok.error()));
  return Values(std::move(session));
}

Result<Cell> Values::at(std::string_view path) const {
  if (auto ok = check_path(std::string(path)); !ok) return fail(std::move(ok.error()));
  return Cell(session_, std::string(path));
}

Result<Cell::Seen> Cell::read() const {
  auto node = session_->read(path_, one_call());
  if (!node) return fail(std::move(node.error()));
  if (!*node) return Seen{};
  return Seen{std::move((*node)->data), (*node)->stat.version};
}

Result<bool> Cell::write(const Seen& seen, const std::string& value) const {
  if (value.size() + path_.size() > kMostRequestBytes) {
    return fail(ErrorCode::invalid, "the value has " + std::to_string(value.size()) +
                                        " bytes; with its path at most " +
                                        std::to_string(kMostRequestBytes) + " are allowed");
  }
  Step step{.kind = Step::Kind::create, .path = path_, .data = value};
  if (seen.value) {
    step.kind = Step::Kind::set;
    step.version = seen.version;
  }
  const auto done = session_->transact({std::move(step)}, one_call());
  if (!done) return fail(done.error());
  const Outcome outcome = outcome_of(done->rc);
  if (outcome == Outcome::done) return true;
  if (outcome == Outcome::node_exists || done->rc == kBadVersion) return false;
  if (outcome == Outcome::no_node && seen.value) return false;
  if (outcome == Outcome::no_node) {
    return fail(ErrorCode::invalid, "the parent of node '" + path_ + "' is not there");
  }
  return fail(ErrorCode::unavailable,
              session_->options().address + ": the server does not let this client write " + path_,
              words_of(done->rc));
}

}  // namespace leasehold::zookeeper
