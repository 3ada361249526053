#include "leasehold/diagnosis.h"

#include <algorithm>
#include <iterator>

#include "doctor/findings.h"
#include "doctor/marks_ahead.h"
#include "kit/text/visible_text.h"
#include "kit/try.h"
#include "leasehold/registry.h"

namespace leasehold {

using doctor::append;
using doctor::counted;
using doctor::Findings;

namespace {

// As many marks as a person reads one by one.
constexpr std::size_t kListed = 10;

// Of one that is store and fence. What was measured may differ, what was not seen may not.
bool says_the_same(const Finding& one, const Finding& other) {
  const bool same_sight = one.severity != Severity::unseen || one.seen == other.seen;
  return one.check == other.check && one.where == other.where && one.severity == other.severity &&
         one.consequence == other.consequence && same_sight;
}

void append_what_is_new(std::vector<Finding>& all, std::vector<Finding> more) {
  std::erase_if(more, [&](const Finding& it) {
    return std::any_of(all.begin(), all.end(),
                       [&](const Finding& told) { return says_the_same(told, it); });
  });
  append(all, std::move(more));
}

void judge_guarantee(Findings& findings, const std::optional<StoreTraits>& traits, bool fenced) {
  constexpr const char* check = "store.guarantee";
  if (!traits) {
    findings.unseen(check, "what its tokens are worth",
                    "it cannot be used as a lock store as it is", "Mend what is said of it above");
    return;
  }
  if (traits->guarantee == Guarantee::correctness) {
    findings.ok(check, "Its tokens are good for correctness: " + traits->why + ".");
    return;
  }
  const std::string seen = "Its locks are good for efficiency only: " + traits->why + ".";
  if (fenced) {
    findings.add(Severity::warning, check,
                 {seen,
                  "It gives no tokens ('run --fenced' and acquire_fenced() are refused), so nobody "
                  "can pass the fence.",
                  traits->instead});
    return;
  }
  findings.add(Severity::note, check,
               {seen, "A double run must only waste work; if it does damage, this is not enough.",
                traits->instead});
}

// ---- the fence -----------------------------------------------------------------------------

std::string adopt_command(const std::string& fence, const FenceMark& mark, const StoreId& store) {
  const Lineage wanted{store, mark.lineage->lock};
  return "Give the store of that lineage as --store; only if it is no more, and all its holders "
         "have ended: leasehold fence adopt '" +
         fence + "' --lineage " + kit::in_quotes(wanted.str()) + " --at-least 1 " +
         kit::operands({mark.resource.str()});
}

void judge_lineages(Findings& findings, const std::string& fence,
                    const std::vector<FenceMark>& marks, const std::optional<StoreId>& store) {
  constexpr const char* check = "fence.lineage";
  if (!store) {
    findings.add(Severity::note, check,
                 {"The store has given no token yet, so nothing can be compared.",
                  "The first holder decides the lineage of a resource that has none.", ""});
    return;
  }
  std::size_t ours = 0;
  std::size_t open = 0;
  std::vector<const FenceMark*> foreign;
  for (const FenceMark& mark : marks) {
    if (!mark.lineage) {
      ++open;
    } else if (mark.lineage->store == *store) {
      ++ours;
    } else {
      foreign.push_back(&mark);
    }
  }
  if (foreign.empty()) {
    findings.ok(check, "This store's lineage alone is let in at " + counted(ours, "resource") +
                           ", the first to come at " + std::to_string(open) + ".");
    return;
  }
  for (std::size_t i = 0; i < std::min(foreign.size(), kListed); ++i) {
    const FenceMark& mark = *foreign[i];
    findings.add(
        Severity::warning, check,
        {"Resource " + kit::in_quotes(mark.resource.str()) + " lets in the lineage " +
             mark.lineage->str() + ", and this store's is " + store->hex() + ".",
         "Every holder of this store is refused there.", adopt_command(fence, mark, *store)});
  }
  if (foreign.size() > kListed) {
    findings.add(
        Severity::warning, check,
        {"Other stores are let in at " + counted(foreign.size() - kListed, "more resource") + ".",
         "Every holder of this store is refused there.", "leasehold fence show '" + fence + "'"});
  }
}

// Opened, unlike elsewhere here: it was used before, and so nothing is made by it.
Result<std::vector<doctor::MarkAhead>> find_marks_ahead(const Registry& registry,
                                                        std::string_view store,
                                                        const doctor::FenceMemory& memory,
                                                        const CallContext& context) {
  const auto left = std::chrono::floor<Millis>(context.deadline - BootClock::now());
  auto client = TRY(
      connect(store, {.if_missing = IfMissing::refuse, .store_timeout = left, .stop = context.stop},
              registry));
  return doctor::marks_ahead(client, memory, context);
}

void judge_marks_ahead(Findings& findings, const Result<std::vector<doctor::MarkAhead>>& ahead) {
  constexpr const char* check = "fence.restored_store";
  if (!ahead) {
    findings.unseen(check, "whether the store still knows the tokens that entered", ahead.error(),
                    "Give it more time with --timeout");
    return;
  }
  if (ahead->empty()) {
    findings.ok(check, "The store knows every token of its own that has entered.");
    return;
  }
  const std::size_t more = ahead->size() - std::min(ahead->size(), kListed);
  for (std::size_t i = 0; i < ahead->size() - more; ++i) {
    findings.add(
        Severity::danger, check,
        {ahead->at(i).sentence() +
             (i == 0 && more > 0 ? " So it is with " + std::to_string(more) + " more." : ""),
         "The store was restored from a backup, or has lost what it wrote, and gives the "
         "same numbers again: its holders are refused up to the mark, and beyond it "
         "nothing tells a holder of before from one of now.",
         "Stop all holders; leasehold rotate-store-id --force; then leasehold fence adopt, and "
         "leasehold fence admit where marks were swept, at every fence of this store "
         "(docs/operations.md)"});
  }
}

void judge_marks(Findings& findings, const std::string& fence,
                 const std::vector<FenceMark>& marks) {
  std::int64_t refused = 0;
  std::size_t entered = 0;
  for (const FenceMark& mark : marks) {
    refused += mark.refused;
    if (mark.mark) ++entered;
  }
  findings.ok("fence.installed", "The fence answers; it knows " +
                                     counted(marks.size(), "resource") + ", " +
                                     std::to_string(entered) + " of them entered.");
  if (refused == 0) return;
  findings.add(Severity::note, "fence.refused",
               {"It has refused " + counted(refused, "time") + ".",
                "Holders that were overtaken and came late, or had tokens of another store, were "
                "stopped: without the fence each could have done damage.",
                "leasehold fence show '" + fence +
                    "'; if it grows, leasehold probe says whether "
                    "the TTL is too short"});
}

void judge_keeping(Findings& findings, const std::string& fence, FenceAdmin& admin) {
  const auto kept = admin.check_marks();
  if (kept) return;
  findings.add(Severity::danger, "fence.marks",
               {"The fence does not keep its marks: " + sentence(kept.error()) + ".",
                "A statement by hand or by mistake can lower a mark, and let a stale holder in.",
                "leasehold fence install '" + fence + "'"});
}

void judge_guards(Findings& findings, const std::string& fence, FenceAdmin& admin) {
  constexpr const char* check = "fence.guards";
  const auto guards = admin.guards();
  if (!guards) {
    findings.unseen(check, "which tables are guarded", guards.error(), "");
    return;
  }
  std::size_t armed = 0;
  for (const GuardedTable& table : *guards) {
    if (table.armed) {
      ++armed;
      continue;
    }
    findings.add(Severity::danger, check,
                 {"The guard of table '" + table.table + "' has lost its trigger.",
                  "Whoever writes to it without entering is not refused.",
                  "leasehold fence install '" + fence + "' --table '" + table.table +
                      "' --resource " + kit::in_quotes(table.resource.str())});
  }
  if (armed > 0) findings.ok(check, counted(armed, "guarded table") + " with a trigger in place.");
}

struct Pair {
  std::string_view store;
  const std::string& fence;
  const std::optional<StoreId>& lineage;  // of the store
};

void judge_fence(Findings& findings, const Registry& registry, const Pair& pair,
                 const CallContext& context) {
  const std::string& shown = findings.where();
  if (BootClock::now() >= context.deadline || context.stop.stop_requested()) {
    findings.unseen("fence.installed", "what the fence knows", "the time was over",
                    "Give it more time with --timeout");
    return;
  }
  auto admin = registry.open<FenceAdmin>(pair.fence);
  auto marks = admin ? (*admin)->marks() : fail(admin.error());
  if (!marks) {
    findings.add(Severity::danger, "fence.installed",
                 {"The fence does not answer: " + sentence(marks.error()) + ".",
                  "There is nothing that refuses a holder that was overtaken.",
                  "leasehold fence install '" + shown + "'"});
    return;
  }
  judge_marks(findings, shown, *marks);
  judge_lineages(findings, shown, *marks, pair.lineage);
  auto floors = (*admin)->floors();
  if (!floors) {
    findings.unseen("fence.restored_store", "the floors of swept marks", floors.error(), "");
    floors.emplace();
  }
  const doctor::FenceMemory memory{std::move(*marks), std::move(*floors)};
  if (pair.lineage && memory.knows(*pair.lineage)) {
    judge_marks_ahead(findings, find_marks_ahead(registry, pair.store, memory, context));
  }
  judge_keeping(findings, shown, **admin);
  judge_guards(findings, shown, **admin);
}

std::string redacted(std::string_view url) {
  const auto parsed = Url::parse(url);
  return parsed ? parsed->redacted() : "";
}

}  // namespace

Severity DiagnosisReport::worst() const {
  Severity worst = Severity::ok;
  for (const Finding& finding : findings) worst = std::max(worst, finding.severity);
  return worst;
}

Result<DiagnosisReport> diagnose(const Registry& registry, std::string_view store,
                                 const std::optional<std::string>& fence,
                                 const DiagnoseOptions& options) {
  const CallContext context{BootClock::now() + options.timeout, options.stop};
  auto examined = TRY(registry.examine(store, {ExaminedAs::store, options.ttl, context}));
  DiagnosisReport report;
  report.store = redacted(store);
  report.traits = examined.traits;
  report.findings = std::move(examined.findings);
  Findings of_store(report.store);
  judge_guarantee(of_store, examined.traits, fence.has_value());
  append(report.findings, of_store.take());
  if (!fence) return report;

  report.fence = redacted(*fence);
  auto at_fence = TRY(registry.examine(*fence, {ExaminedAs::fence, options.ttl, context}));
  if (report.store == report.fence) {
    append_what_is_new(report.findings, std::move(at_fence.findings));
  } else {
    append(report.findings, std::move(at_fence.findings));
  }
  Findings of_fence(*report.fence);
  judge_fence(of_fence, registry, {store, *fence, examined.lineage}, context);
  append(report.findings, of_fence.take());
  return report;
}

}  // namespace leasehold
