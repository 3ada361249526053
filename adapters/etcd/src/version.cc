#include "version.h"

#include "kit/text/number.h"

namespace leasehold::etcd {
namespace {

using Meets = KnownFault::Meets;

// Only what its makers have said; where, stands in `source`.
constexpr KnownFault kFaults[] = {
    {.what = "a crash can leave its members with different data and revisions",
     .effect = "Members then disagree on who holds a lock.",
     .tokens_go_back = true,
     .severity = Severity::danger,
     .meets = Meets::everyone,
     .lines = {{{{3, 5, 0}, {3, 5, 3}}}},
     .source = "etcd pull 13908, postmortem v3.5-data-inconsistency"},
    {.what = "after a crash during a compaction its revisions can go back in rare cases",
     .effect = "A revision is a token: one could be given out twice.",
     .tokens_go_back = true,
     .severity = Severity::warning,
     .meets = Meets::everyone,
     .lines = {{{{3, 4, 0}, {3, 4, 32}}, {{3, 5, 0}, {3, 5, 14}}}},
     .source = "etcd issue 17780"},
    {.what = "a crash during a defragmentation can leave a member with other revisions",
     .effect = "A revision is a token: that member would give out others than the rest.",
     .tokens_go_back = true,
     .severity = Severity::warning,
     .meets = Meets::everyone,
     .lines = {{{{3, 5, 0}, {3, 5, 6}}}},
     .source = "etcd pull 14733"},
    {.what = "a leader that was stalled and replaced still revokes leases that are alive",
     .effect = "A holder that renews in time loses its lock to the next.",
     .tokens_go_back = false,
     .severity = Severity::warning,
     .meets = Meets::everyone,
     .lines = {{{{3, 4, 0}, {3, 4, 31}}, {{3, 5, 0}, {3, 5, 13}}}},
     .source = "etcd issue 15247"},
    {.what = "a single member answers before a write is on its disk",
     .effect = "A crash takes locks and tokens back that were given out.",
     .tokens_go_back = true,
     .severity = Severity::danger,
     .meets = Meets::single_members,
     .lines = {{{{3, 4, 0}, {3, 4, 21}}, {{3, 5, 0}, {3, 5, 5}}}},
     .source = "etcd pulls 14423 and 14424"},
    {.what = "a watch can miss events after a compaction",
     .effect = "A waiter may hear late that its turn has come.",
     .tokens_go_back = false,
     .severity = Severity::note,
     .meets = Meets::everyone,
     .lines = {{{{3, 4, 0}, {3, 4, 31}}, {{3, 5, 0}, {3, 5, 13}}}},
     .source = "etcd pulls 17610 and 17612"},
    {.what = "users without the right to do so can use the lease API",
     .effect = "Anybody who reaches it can end the leases of others.",
     .tokens_go_back = false,
     .severity = Severity::warning,
     .meets = Meets::users,
     .lines = {{{{3, 4, 0}, {3, 4, 42}}, {{3, 5, 0}, {3, 5, 28}}, {{3, 6, 0}, {3, 6, 9}}}},
     .source = "advisory GHSA-q8m4-xhhv-38mg"},
};

}  // namespace

std::optional<Version> Version::parse(std::string_view text) {
  Version version;
  for (int* part : {&version.major, &version.minor, &version.patch}) {
    const auto number = kit::take_number<int>(text);
    if (!number || *number < 0) return std::nullopt;
    *part = *number;
    if (part == &version.patch) break;
    if (!text.starts_with('.')) return std::nullopt;
    text.remove_prefix(1);
  }
  return version;
}

std::string Version::str() const {
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
}

std::optional<Version> KnownFault::mended_in(const Version& version) const {
  for (const Lines& line : lines) {
    if (version >= line.from && version < line.mended) return line.mended;
  }
  return std::nullopt;
}

std::span<const KnownFault> known_faults() {
  return kFaults;
}

std::string known_fault(const Version& version) {
  for (const KnownFault& fault : kFaults) {
    if (!fault.tokens_go_back || fault.meets != Meets::everyone) continue;
    if (const auto mended = fault.mended_in(version)) {
      return std::string(fault.what) + "; " + mended->str() + " mends that";
    }
  }
  return "";
}

Result<std::string> fault_of(const std::string& address, const std::string& version) {
  const auto parsed = Version::parse(version);
  if (!parsed || *parsed < kOldestVersion) {
    return fail(error_at(
        address, Error(ErrorCode::unavailable, "etcd is too old: version 3.4 or later is needed",
                       "version " + version)));
  }
  const std::string fault = known_fault(*parsed);
  return fault.empty() ? "" : "etcd " + version + ": " + fault;
}

}  // namespace leasehold::etcd
