#include "leasehold/zookeeper/values.h"

#include <chrono>

#include "blocking_session.h"
#include "fence_marks.h"
#include "kit/try.h"
#include "leasehold/url.h"

namespace leasehold::zookeeper {
namespace {

CallContext one_call() {
  return {BootClock::now() + std::chrono::seconds(5), {}};
}

}  // namespace

Result<Values> Values::open(std::string_view text) {
  auto url = TRY(Url::parse(text));
  if (url.scheme != "zookeeper") {
    return fail(ErrorCode::invalid,
                "values in ZooKeeper are at a zookeeper:// URL, not at " + url.redacted());
  }
  TRY(url.read_secrets());
  auto options = TRY(Options::of(url));
  auto session = std::make_shared<BlockingSession>(std::move(options));
  TRY(session->connect(one_call()));
  return Values(std::move(session));
}

Result<Cell> Values::at(std::string_view path) const {
  TRY(check_path(std::string(path)));
  return Cell(session_, std::string(path));
}

Result<Cell::Seen> Cell::read() const {
  auto node = TRY(session_->read(path_, one_call()));
  if (!node) return Seen{};
  return Seen{std::move(node->data), node->stat.version};
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
  const auto done = TRY(session_->transact({std::move(step)}, one_call()));
  const Outcome outcome = outcome_of(done.rc);
  if (outcome == Outcome::done) return true;
  if (outcome == Outcome::node_exists || done.rc == kBadVersion) return false;
  if (outcome == Outcome::no_node && seen.value) return false;
  if (outcome == Outcome::no_node) {
    return fail(ErrorCode::invalid, "the parent of node '" + path_ + "' is not there");
  }
  return fail(
      error_at(session_->options().address,
               Error(ErrorCode::unavailable, "the server does not let this client write " + path_,
                     words_of(done.rc))));
}

}  // namespace leasehold::zookeeper
