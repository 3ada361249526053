#include "cli/drill/matrix.h"

#include <algorithm>
#include <array>
#include <string>

#include "cli/command/output.h"
#include "cli/drill/statuses.h"
#include "drill/runner/site.h"

namespace leasehold::cli {
namespace {

using Cells = std::vector<Table::Cell>;

const Cells kHeading = {{"store"},
                        {"fence"},
                        {"fault"},
                        {"times"},
                        {"pauses"},
                        {"overlaps at the lock"},
                        {"late writes refused"},
                        {"accepted"},
                        {"unanswered"},
                        {"writes"},
                        {"updates lost"},
                        {"invariants broken"}};

std::string str(std::uint64_t number) {
  return std::to_string(number);
}

Table::Cell should_be_none(std::uint64_t number) {
  return {str(number), number > 0 ? Colour::red : Colour::green};
}

// The fault that the row is about: pauses come along with every other.
drill::Injected main_fault(const drill::Outcome& outcome) {
  drill::Injected main{"none", 0};
  for (const drill::Injected& fault : outcome.faults) {
    if (main.fault == "none" || main.fault == "pause") {
      main = fault;
    } else if (fault.fault != "pause") {
      main.fault += ", " + fault.fault;
      main.times += fault.times;
    }
  }
  return main;
}

std::uint64_t pauses(const drill::Outcome& outcome) {
  for (const drill::Injected& fault : outcome.faults) {
    if (fault.fault == "pause") return fault.times;
  }
  return 0;
}

Cells row_of(const drill::Outcome& outcome) {
  const drill::Injected fault = main_fault(outcome);
  std::uint64_t broken = 0;
  for (const std::uint64_t count : outcome.report.counts) broken += count;
  std::string overlaps = str(outcome.report.overlaps.count);
  if (const auto early = outcome.report.overlaps.before_deadline; early > 0) {
    overlaps += " (" + str(early) + " before the deadline)";
  }
  return {{outcome.store},
          {outcome.fence + (outcome.fence_by_claim ? ", by claim" : "")},
          {fault.fault},
          {str(fault.times)},
          {str(pauses(outcome))},
          {overlaps},
          {str(outcome.stale_refused)},
          should_be_none(outcome.stale_accepted),
          {str(outcome.stale_unknown)},
          {str(outcome.writes)},
          should_be_none(outcome.updates_lost),
          should_be_none(broken)};
}

std::string in_markdown(const std::vector<Cells>& rows) {
  std::string text;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (const Table::Cell& cell : rows[i]) text += "| " + visible(cell.text) + " ";
    text += "|\n";
    if (i > 0) continue;
    for (std::size_t c = 0; c < rows[i].size(); ++c) text += c < 3 ? "|---" : "|---:";
    text += "|\n";
  }
  return text;
}

std::string as_table(const std::vector<Cells>& rows) {
  Table table;
  for (const Cells& row : rows) table.add(row);
  return table.str();
}

// What all drills together say.
class Together {
 public:
  void add(const drill::Outcome& outcome) {
    ++drills_;
    pauses_ += pauses(outcome);
    refused_ += outcome.stale_refused;
    accepted_ += outcome.stale_accepted;
    lost_ += outcome.updates_lost;
    const drill::Verdict verdict = judge(outcome);
    damaged_ += verdict == drill::Verdict::damage ? 1 : 0;
    too_little_ += verdict == drill::Verdict::too_little ? 1 : 0;
    for (std::size_t i = 0; i < drill::kChecks; ++i) {
      if (!outcome.report.judged(static_cast<drill::Check>(i))) not_judged_[i] = true;
    }
  }

  std::string sentence() const {
    std::string text = str(drills_) + " drills, " + str(pauses_) + " pauses: " + str(refused_) +
                       " late writes refused, " + str(accepted_) + " accepted, " + str(lost_) +
                       " updates lost";
    text += damaged_ == 0 ? "; no drill shows damage" : "; " + str(damaged_) + " show damage";
    if (too_little_ > 0) text += "; in " + str(too_little_) + " too little happened";
    return text + ".\n" + not_judged();
  }

  ExitStatus status() const {
    if (damaged_ > 0) return kDamage;
    return too_little_ > 0 || drills_ == 0 ? kTooLittle : ExitStatus::done;
  }

 private:
  // What a 0 under "invariants broken" does not speak of.
  std::string not_judged() const {
    std::string names;
    for (std::size_t i = 0; i < drill::kChecks; ++i) {
      if (!not_judged_[i]) continue;
      names += (names.empty() ? "" : ", ") + std::string(to_string(static_cast<drill::Check>(i)));
    }
    if (names.empty()) return names;
    return "Not judged, without a log of the store: " + names + ".\n";
  }

  std::array<bool, drill::kChecks> not_judged_{};
  std::uint64_t drills_ = 0;
  std::uint64_t pauses_ = 0;
  std::uint64_t refused_ = 0;
  std::uint64_t accepted_ = 0;
  std::uint64_t lost_ = 0;
  std::uint64_t damaged_ = 0;
  std::uint64_t too_little_ = 0;
};

}  // namespace

std::vector<drill::Plan> drills_of(const drill::Plan& plan, bool each_fault) {
  std::vector<drill::Plan> plans;
  const auto stores =
      plan.store == "all" ? drill::known_stores() : std::vector<std::string>{plan.store};
  for (const std::string& store : stores) {
    drill::Plan one = plan;
    one.store = store;
    if (!each_fault) {
      plans.push_back(one);
      continue;
    }
    one.faults_where_possible = false;  // each that cannot be had is told by itself
    for (const drill::Fault fault : plan.faults) {
      one.faults = {drill::Fault::pause};
      if (fault != drill::Fault::pause) one.faults.push_back(fault);
      plans.push_back(one);
    }
  }
  return plans;
}

ExitStatus tell_drills(const std::vector<drill::Plan>& plans, const RunDrill& run, bool markdown) {
  std::vector<Cells> rows{kHeading};
  std::vector<std::string> reasons;
  Together together;
  ExitStatus failed = ExitStatus::done;
  for (const drill::Plan& plan : plans) {
    const auto drilled = run(plan);
    if (drilled) {
      rows.push_back(row_of(drilled->outcome));
      together.add(drilled->outcome);
      if (drilled->outcome.interrupted) break;
      continue;
    }
    const Error& error = drilled.error();
    if (error.code != ErrorCode::unsupported) {
      failed = report(error);
      continue;
    }
    const std::string reason = plan.store + ": " + error.message + ".";
    if (std::find(reasons.begin(), reasons.end(), reason) == reasons.end()) {
      reasons.push_back(reason);
    }
  }
  std::string text = markdown ? in_markdown(rows) : as_table(rows);
  text += "\n" + together.sentence();
  if (!reasons.empty()) text += "\nNot possible:\n\n";
  for (const std::string& reason : reasons) text += "- " + reason + "\n";
  if (const auto printed = print(text); printed != ExitStatus::done) return printed;
  // A drill that could not be held must not hide the damage of another.
  if (together.status() == kDamage) return kDamage;
  return failed != ExitStatus::done ? failed : together.status();
}

}  // namespace leasehold::cli
