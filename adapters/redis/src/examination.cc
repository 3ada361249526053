#include "examination.h"

#include <algorithm>
#include <map>
#include <set>

#include "doctor/findings.h"
#include "kit/try.h"
#include "node_examination.h"
#include "options.h"
#include "redis_store.h"
#include "redlock_store.h"

namespace leasehold::redis {
namespace {

using doctor::append;
using doctor::Findings;

// One server of a Redlock, and what was seen of it.
struct Voter {
  std::string address;
  std::string host;
  Result<NodeDiagnosis> found;
};

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

void judge_reach(Findings& findings, const std::vector<Voter>& voters) {
  constexpr const char* check = "redlock.nodes";
  std::vector<std::string> silent;
  for (const Voter& voter : voters) {
    if (!voter.found) silent.push_back(voter.address);
  }
  const std::size_t answered = voters.size() - silent.size();
  const std::string seen =
      std::to_string(answered) + " of " + std::to_string(voters.size()) + " nodes answer";
  if (silent.empty()) return findings.ok(check, seen + ".");
  const bool majority = answered > voters.size() / 2;
  findings.add(majority ? Severity::warning : Severity::danger, check,
               {seen + "; not " + listed(silent) + ".",
                majority ? "Each is a lost vote: fewer failures than planned stop all locks."
                         : "There is no majority: no lock can be taken or renewed.",
                "Start them, no earlier than one TTL after they went down"});
}

// Which voters have the same value in common, for every value that two have.
std::vector<std::vector<std::string>> shared_by(
    const std::vector<Voter>& voters, const std::function<std::string(const Voter&)>& value_of) {
  std::map<std::string, std::vector<std::string>> by_value;
  for (const Voter& voter : voters) {
    if (const std::string value = value_of(voter); !value.empty()) {
      by_value[value].push_back(voter.address);
    }
  }
  std::vector<std::vector<std::string>> shared;
  for (auto& [value, names] : by_value) {
    if (names.size() > 1) shared.push_back(std::move(names));
  }
  return shared;
}

void judge_independence(Findings& findings, const std::vector<Voter>& voters) {
  constexpr const char* check = "redlock.independence";
  const auto same_process = shared_by(
      voters, [](const Voter& it) { return it.found ? it.found->run_id : std::string(); });
  for (const auto& names : same_process) {
    findings.add(Severity::danger, check,
                 {listed(names) + " are one and the same server (the same run_id).",
                  "It has more than one vote: with it alone, or nearly, a majority is had, and two "
                  "holders can have one each.",
                  "Name every server once, by the address that leads to it alone"});
  }
  const auto same_host = shared_by(voters, [](const Voter& it) { return it.host; });
  for (const auto& names : same_host) {
    findings.add(Severity::warning, check,
                 {listed(names) + " are on one host.",
                  "They stop, restart and have their clock set together: that is one failure for "
                  "several votes.",
                  "Put every node on a machine of its own"});
  }
  if (same_process.empty() && same_host.empty()) {
    findings.ok(check, "The nodes are " + std::to_string(voters.size()) +
                           " servers on hosts of different names.");
  }
}

}  // namespace

Result<Diagnosis> examine_redis(const Url& url, const ExamineOptions& options) {
  auto parsed = TRY(redis_options(url));
  auto server = TRY(Server::make(parsed.servers.front(), 1));
  const NodeRole role = options.as == ExaminedAs::fence ? NodeRole::fence : NodeRole::store;
  auto found = examine_node(*server, role, options.ttl, options.context);
  server->close();
  if (!found) return fail(std::move(found.error()));
  Diagnosis diagnosis{std::move(found->findings), std::nullopt, found->lineage};
  if (found->usable) diagnosis.traits = redis_traits(parsed, found->introduction);
  return diagnosis;
}

Result<Diagnosis> examine_redlock(const Url& url, const ExamineOptions& options) {
  auto parsed = TRY(redlock_options(url));
  std::vector<Voter> voters;
  for (std::size_t i = 0; i < parsed.servers.size(); ++i) {
    auto server = TRY(Server::make(parsed.servers[i], 1));
    // What is left of the time belongs to the nodes that are left.
    const auto left = options.context.deadline - BootClock::now();
    const auto share = left / static_cast<int>(parsed.servers.size() - i);
    const CallContext context{BootClock::now() + share, options.context.stop};
    voters.push_back({server->address(), parsed.servers[i].address.host,
                      examine_node(*server, NodeRole::redlock, options.ttl, context)});
    server->close();
  }
  const bool any = std::any_of(voters.begin(), voters.end(),
                               [](const Voter& it) { return it.found.has_value(); });
  if (!any) return fail(voters.front().found.error());

  Diagnosis diagnosis;
  Findings together(parsed.address);
  judge_reach(together, voters);
  judge_independence(together, voters);
  diagnosis.findings = together.take();
  bool usable = true;
  for (Voter& voter : voters) {
    if (!voter.found) continue;
    usable = usable && voter.found->usable;
    append(diagnosis.findings, std::move(voter.found->findings));
  }
  if (usable) diagnosis.traits = redlock_traits(parsed);
  return diagnosis;
}

}  // namespace leasehold::redis
