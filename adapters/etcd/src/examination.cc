#include "examination.h"

#include <algorithm>
#include <set>

#include "answer.h"
#include "doctor/findings.h"
#include "keys.h"
#include "kit/try.h"
#include "leasehold/random.h"
#include "metrics.h"
#include "opening.h"
#include "options.h"
#include "session.h"
#include "store.h"
#include "transactions.h"
#include "transport.h"
#include "version.h"

namespace leasehold::etcd {
namespace {

using namespace doctor;
using namespace std::chrono_literals;

constexpr int kTries = 5;
// What etcd's makers ask of a disk: 99 % of the syncs of its log within this.
constexpr double kFastSync = 0.010;
constexpr double kSlowSync = 0.100;
constexpr Millis kMayLag = 1s;
constexpr const char* kSyncs = "etcd_disk_wal_fsync_duration_seconds";

template <class Request, class Response>
tl::expected<Response, Failure> ask(Transport& transport, const char* method, Request request,
                                    const CallContext& context) {
  return answer_of<tl::expected<Response, Failure>>([&](auto done) {
    transport.call<Request, Response>(method, std::move(request), once_within(context),
                                      std::move(done));
  });
}

// "http://host:port" without what is before and behind.
std::string endpoint_in(std::string url) {
  if (const auto at = url.find("://"); at != std::string::npos) url.erase(0, at + 3);
  return url.substr(0, url.find('/'));
}

// One server, by one address.
struct Seen {
  std::string endpoint;
  Result<wire::StatusResponse> status;
  std::optional<double> syncs = {};  // of its log, before anything was written
};

std::optional<double> syncs_in(const Metrics& metrics) {
  return metrics.value(std::string(kSyncs) + "_count");
}

Seen look_at(const Options& options, const std::string& endpoint, const CallContext& context) {
  Options alone = options;
  alone.endpoints = {endpoint};
  auto transport = Transport::make(alone);
  if (!transport) return {endpoint, fail(transport.error())};
  if (!options.user.empty()) {
    const auto refused = answer_of<std::optional<Failure>>(
        [&](auto done) { (*transport)->authenticate(0, std::move(done)); });
    if (refused) return {endpoint, fail(not_opened(endpoint, *refused))};
  }
  auto status = ask<wire::StatusRequest, wire::StatusResponse>(
      **transport, "/etcdserverpb.Maintenance/Status", {}, context);
  if (!status) return {endpoint, fail(not_opened(endpoint, status.error()))};
  Seen seen{endpoint, std::move(*status)};
  if (options.tls.on) return seen;
  if (const auto page = fetch_metrics(endpoint, context)) {
    seen.syncs = syncs_in(page->metrics);
  }
  return seen;
}

// ---- one member ----------------------------------------------------------------------------

void judge_version(Findings& findings, const Options& options, const std::string& words,
                   bool single) {
  constexpr const char* check = "etcd.version";
  const auto version = Version::parse(words);
  if (!version || *version < kOldestVersion) {
    findings.add(Severity::danger, check,
                 {"It is etcd " + words + ".", "Leasehold refuses it: 3.4 or later is needed.",
                  "Update it"});
    return;
  }
  bool any = false;
  for (const KnownFault& fault : known_faults()) {
    const auto mended = fault.mended_in(*version);
    const bool concerns = fault.meets == KnownFault::Meets::everyone ||
                          (fault.meets == KnownFault::Meets::single_members && single) ||
                          (fault.meets == KnownFault::Meets::users && !options.user.empty());
    if (!mended || !concerns) continue;
    any = true;
    findings.add(fault.severity, check,
                 {"It is etcd " + words + ": " + fault.what + " (" + fault.source + ").",
                  fault.effect, "Update it to " + mended->str() + " or later"});
  }
  if (!any) findings.ok(check, "It is etcd " + words + ", without a known fault of leases.");
}

void judge_size(Findings& findings, const wire::StatusResponse& status, const Metrics* metrics) {
  constexpr const char* check = "etcd.quota";
  double quota = static_cast<double>(status.db_size_quota());
  if (quota == 0 && metrics != nullptr) {
    quota = metrics->value("etcd_server_quota_backend_bytes").value_or(0);
  }
  if (quota <= 0) {
    findings.unseen(check, "how much room is left", "the server does not say its quota",
                    "Update to etcd 3.6, or let /metrics be seen");
    return;
  }
  const int percent = static_cast<int>(static_cast<double>(status.db_size()) * 100 / quota);
  const std::string seen = "Its database has " + std::to_string(status.db_size() >> 20) + " MiB, " +
                           std::to_string(percent) + " % of its quota.";
  if (percent < 80) return findings.ok(check, seen);
  findings.add(Severity::warning, check,
               {seen, "When it is full no lock can be taken (NOSPACE) until somebody makes room.",
                "etcdctl compact and etcdctl defrag, or a larger --quota-backend-bytes"});
}

// `before` was counted before keys were written through the cluster.
void judge_syncs(Findings& findings, const Metrics& metrics, std::optional<double> before) {
  constexpr const char* check = "etcd.disk";
  const auto count = syncs_in(metrics);
  const auto slow = metrics.quantile(kSyncs, 0.99);
  if (!count) {
    return findings.unseen(check, "how fast it syncs its log", "/metrics does not tell", "");
  }
  if (*count == before) {
    findings.add(Severity::danger, check,
                 {"Keys were written, and it did not sync its log to the disk for them.",
                  "So run (--unsafe-no-fsync), it loses locks and tokens in a power cut.",
                  "Start it without --unsafe-no-fsync"});
    return;
  }
  const Nanos bound(static_cast<Nanos::rep>(std::min(slow.value_or(0), 1e6) * 1e9));
  const std::string seen = "99 % of the syncs of its log took at most " + in_words(bound) + ".";
  if (*slow <= kFastSync) return findings.ok(check, seen);
  findings.add(*slow > kSlowSync ? Severity::warning : Severity::note, check,
               {seen,
                "A disk that hangs delays renewals, and makes the cluster elect leaders, in which "
                "time nothing is answered. Its makers ask for 10 ms.",
                "Give it a disk of its own, with fast syncs"});
}

void judge_leader(Findings& findings, const wire::StatusResponse& status) {
  if (status.leader() != 0) return findings.ok("etcd.leader", "It knows a leader.");
  findings.add(Severity::danger, "etcd.leader",
               {"It knows no leader.", "No lock can be taken or renewed through it.",
                "See why the cluster has no majority (etcdctl endpoint health --cluster)"});
}

void judge_learner(Findings& findings, const wire::StatusResponse& status) {
  if (!status.is_learner()) return;
  findings.add(Severity::warning, "etcd.learner",
               {"It is a learner.", "It refuses what a lock needs, and has no vote.",
                "etcdctl member promote, or take it out of the URL"});
}

// Its date has whole seconds.
std::vector<ClockSample> sample_clock(const std::string& endpoint, const CallContext& context,
                                      std::optional<MetricsPage>& page, std::optional<Error>& why) {
  const auto sample = doctor::sample_clock([&]() -> Result<WallTime> {
    auto got = TRY(fetch_metrics(endpoint, context));
    page = std::move(got);
    if (!page->date) return fail(ErrorCode::unavailable, "the page has no date");
    return *page->date;
  });
  if (!sample) {
    why = sample.error();
    return {};
  }
  ClockSample coarse = *sample;
  coarse.resolution = 1s;
  return {coarse};
}

// A member may lag behind the majority that has confirmed a write.
void await_sync(const Seen& seen, MetricsPage& page, const CallContext& context) {
  const BootTime give_up = std::min(context.deadline, BootClock::now() + kMayLag);
  while (seen.syncs && syncs_in(page.metrics) == seen.syncs && BootClock::now() < give_up) {
    auto again = fetch_metrics(seen.endpoint, context);
    if (!again) return;
    page = std::move(*again);
  }
}

std::vector<Finding> examine_member(const Options& options, const Seen& seen, bool single,
                                    bool wrote, const ExamineOptions& how) {
  Findings findings(seen.endpoint);
  judge_version(findings, options, seen.status->version(), single);
  judge_leader(findings, *seen.status);
  judge_learner(findings, *seen.status);
  std::optional<MetricsPage> page;
  std::optional<Error> why;
  std::vector<ClockSample> clock;
  if (options.tls.on) {
    why = Error(ErrorCode::unavailable, "it is only looked for without TLS");
  } else {
    const auto left = how.context.deadline - BootClock::now();
    const CallContext some{BootClock::now() + left / 4, how.context.stop};
    clock = sample_clock(seen.endpoint, some, page, why);
  }
  judge_size(findings, *seen.status, page ? &page->metrics : nullptr);
  if (page) {
    if (wrote) await_sync(seen, *page, how.context);
    judge_syncs(findings, page->metrics, wrote ? seen.syncs : std::nullopt);
  } else {
    findings.unseen("etcd.disk", "how fast it syncs its log, from /metrics", *why, "");
  }
  if (why) {
    findings.unseen("etcd.clock", "what its clock says, from /metrics", *why, "");
  } else {
    doctor::judge_clock(findings, "etcd", clock, doctor::Expiry::steady_clock, how.ttl);
  }
  return findings.take();
}

// ---- the cluster ---------------------------------------------------------------------------

class ClusterExamination {
 public:
  ClusterExamination(const Options& options, const ExamineOptions& how, Transport& transport)
      : options_(options),
        how_(how),
        transport_(transport),
        keys_(options.prefix),
        findings_(options.address) {}

  // The members that `seen` does not have yet are looked at by the addresses they tell.
  std::size_t judge_members(std::vector<Seen>& seen) {
    constexpr const char* check = "etcd.members";
    const auto list = ask<wire::MemberListRequest, wire::MemberListResponse>(
        transport_, "/etcdserverpb.Cluster/MemberList", {}, how_.context);
    if (!list) {
      findings_.unseen(check, "which members the cluster has",
                       not_opened(options_.address, list.error()), "");
      return 0;
    }
    std::set<std::uint64_t> known;
    for (const Seen& it : seen) {
      if (it.status) known.insert(it.status->header().member_id());
    }
    std::vector<std::string> silent;
    std::size_t voters = 0;
    for (const wire::Member& member : list->members()) {
      if (!member.is_learner()) ++voters;
      if (known.contains(member.id())) continue;
      if (!reach(member, seen) && !member.is_learner()) silent.push_back(member.name());
    }
    judge_number(voters, static_cast<std::size_t>(list->members_size()) - voters);
    judge_silent(voters, silent);
    return voters;
  }

  void judge_alarms() {
    constexpr const char* check = "etcd.alarms";
    const auto alarms = ask<wire::AlarmRequest, wire::AlarmResponse>(
        transport_, "/etcdserverpb.Maintenance/Alarm", {}, how_.context);
    if (!alarms) {
      return findings_.unseen(check, "whether an alarm is raised",
                              not_opened(options_.address, alarms.error()),
                              "Give the user the role root, which newer versions ask for");
    }
    if (alarms->alarms().empty()) return findings_.ok(check, "No alarm is raised.");
    for (const wire::AlarmMember& it : alarms->alarms()) {
      const bool full = it.alarm() == wire::AlarmMember::NOSPACE;
      findings_.add(Severity::danger, check,
                    {std::string("The alarm ") + (full ? "NOSPACE" : "CORRUPT") + " is raised.",
                     full ? "No lock can be taken until somebody makes room."
                          : "A member's data differ from the others': who holds what depends on "
                            "whom one asks.",
                     full ? "etcdctl compact, etcdctl defrag, then etcdctl alarm disarm"
                          : "Replace that member's data (etcdctl member remove, member add)"});
    }
  }

  void judge_leases() {
    constexpr const char* check = "etcd.lease";
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(how_.ttl);
    wire::LeaseGrantRequest request;
    request.set_ttl(seconds.count());
    const auto granted = ask<wire::LeaseGrantRequest, wire::LeaseGrantResponse>(
        transport_, "/etcdserverpb.Lease/LeaseGrant", std::move(request), how_.context);
    if (!granted) {
      findings_.add(Severity::danger, check,
                    {"It grants no lease: " + granted.error().words + ".", "No lock can be taken.",
                     "Mend what it says"});
      return;
    }
    wire::LeaseRevokeRequest revoke;
    revoke.set_id(granted->id());
    (void)ask<wire::LeaseRevokeRequest, wire::LeaseRevokeResponse>(
        transport_, "/etcdserverpb.Lease/LeaseRevoke", std::move(revoke), how_.context);
    const std::chrono::seconds got(granted->ttl());
    const std::string seen =
        "A lease of " + in_words(how_.ttl) + " lasts " + in_words(got) + " here.";
    if (got <= seconds) return findings_.ok(check, seen);
    findings_.add(
        Severity::note, check,
        {seen,
         "It is the shortest this cluster allows: one and a half of its election "
         "timeout. A dead holder's lock is free that much later.",
         "Use a TTL of " + std::to_string(got.count()) + "s, or a shorter --election-timeout"});
  }

  // A write that a majority must have.
  // False if nothing was written.
  bool judge_writes() {
    constexpr const char* check = "etcd.round_trip";
    const std::string key = keys_.lineage() + "!doctor/" + RequestId::random(system_random()).hex();
    std::vector<Nanos> trips;
    for (int i = 0; i < kTries; ++i) {
      wire::TxnRequest request;
      *request.add_success() = put(key, "x", 0);
      const BootTime before = BootClock::now();
      const auto done = txn(std::move(request));
      if (done) {
        trips.push_back(BootClock::now() - before);
        continue;
      }
      if (done.error().kind != Failure::Kind::refused) break;
      findings_.add(Severity::danger, "etcd.writes",
                    {"It refuses to write: " + done.error().words + ".",
                     "No lock can be taken, and no mark entered.", "Mend what it says"});
      return false;
    }
    wire::TxnRequest forget;
    *forget.add_success() = erase(key);
    if (!trips.empty()) (void)txn(std::move(forget));
    const bool wrote = !trips.empty();
    doctor::judge_round_trip(findings_, check, "write a key", std::move(trips), how_.ttl);
    return wrote;
  }

  std::optional<StoreId> lineage() {
    wire::TxnRequest request;
    *request.add_success() = get(keys_.lineage());
    *request.add_success() = get(keys_.format());
    const auto found = txn(std::move(request));
    if (!found) return std::nullopt;
    if (!format_fits(first_kv(*found, 0), first_kv(*found, 1))) {
      findings_.add(Severity::danger, "etcd.store",
                    {"An earlier or newer build has begun the store.",
                     "Leasehold refuses it: it would misread what stands there.",
                     "Use the build that has begun it; or end all programs that use it, delete its "
                     "keys, and begin afresh"});
    }
    return lineage_in(first_kv(*found, 0));
  }

  std::vector<Finding> take() { return findings_.take(); }

 private:
  tl::expected<wire::TxnResponse, Failure> txn(wire::TxnRequest request) {
    return ask<wire::TxnRequest, wire::TxnResponse>(transport_, "/etcdserverpb.KV/Txn",
                                                    std::move(request), how_.context);
  }

  bool reach(const wire::Member& member, std::vector<Seen>& seen) const {
    for (const std::string& url : member.client_urls()) {
      const auto left = how_.context.deadline - BootClock::now();
      const CallContext some{BootClock::now() + left / 4, how_.context.stop};
      Seen it = look_at(options_, endpoint_in(url), some);
      if (!it.status || it.status->header().member_id() != member.id()) continue;
      seen.push_back(std::move(it));
      return true;
    }
    return false;
  }

  void judge_number(std::size_t voters, std::size_t learners) {
    constexpr const char* check = "etcd.members";
    const std::string seen = "The cluster has " + counted(voters, "voting member") +
                             (learners > 0 ? " and " + counted(learners, "learner") + "." : ".");
    if (voters == 1) {
      findings_.add(Severity::warning, check,
                    {seen,
                     "When that machine is gone, so are the locks and the tokens: a new cluster "
                     "begins to count anew, and fences refuse it.",
                     "Run three members, on machines of their own"});
      return;
    }
    if (voters % 2 == 0) {
      findings_.add(Severity::note, check,
                    {seen, "An even number survives no more failures than one less.",
                     "Run an odd number of members"});
      return;
    }
    findings_.ok(check, seen);
  }

  void judge_silent(std::size_t voters, const std::vector<std::string>& silent) {
    constexpr const char* check = "etcd.health";
    if (silent.empty()) return findings_.ok(check, "All members answer.");
    std::string names;
    for (const std::string& name : silent) {
      names += (names.empty() ? "" : ", ") + (name.empty() ? "one that never started" : name);
    }
    const bool quorum = voters - silent.size() > voters / 2;
    findings_.add(quorum ? Severity::warning : Severity::danger, check,
                  {"These members do not answer from here: " + names + ".",
                   quorum ? "The cluster lives on with fewer failures left to survive."
                          : "If they are down, there is no majority, and no lock can be taken.",
                   "Start them, or let this machine reach their client addresses"});
  }

  const Options& options_;
  const ExamineOptions& how_;
  Transport& transport_;
  const Keys keys_;
  Findings findings_;
};

std::optional<StoreTraits> traits_for(const Options& options, const std::vector<Seen>& seen) {
  StoreTraits traits = etcd_traits(options.address);
  for (const Seen& it : seen) {
    const auto version = Version::parse(it.status->version());
    if (!version || *version < kOldestVersion) return std::nullopt;
    const std::string fault = known_fault(*version);
    if (fault.empty()) continue;
    traits.why += " (but etcd " + version->str() + ": " + fault + ")";
    break;
  }
  return traits;
}

}  // namespace

Result<Diagnosis> examine(const Url& url, const ExamineOptions& options) {
  const auto parsed = TRY(Options::of(url));
  std::vector<Seen> seen;
  std::vector<Finding> absent;
  std::optional<Error> last;
  for (std::size_t i = 0; i < parsed.endpoints.size(); ++i) {
    const auto left = options.context.deadline - BootClock::now();
    const CallContext share{
        BootClock::now() + left / static_cast<int>(parsed.endpoints.size() - i + 2),
        options.context.stop};
    Seen it = look_at(parsed, parsed.endpoints[i], share);
    if (it.status) {
      seen.push_back(std::move(it));
      continue;
    }
    last = it.status.error();
    Findings findings(it.endpoint);
    findings.add(
        Severity::warning, "etcd.endpoint",
        {"It does not answer: " + sentence(*last) + ".",
         "The others of the URL must do without it.", "Start it, or take it out of the URL"});
    append(absent, findings.take());
  }
  if (seen.empty()) return fail(std::move(*last));

  Options reached = parsed;
  reached.endpoints.clear();
  for (const Seen& it : seen) reached.endpoints.push_back(it.endpoint);
  auto transport = TRY(Transport::make(reached));
  if (!reached.user.empty()) {
    (void)answer_of<std::optional<Failure>>(
        [&](auto done) { transport->authenticate(0, std::move(done)); });
  }
  ClusterExamination cluster(reached, options, *transport);
  const std::size_t voters = cluster.judge_members(seen);
  cluster.judge_alarms();
  Diagnosis diagnosis;
  if (options.as == ExaminedAs::store) {
    cluster.judge_leases();
    diagnosis.lineage = cluster.lineage();
    diagnosis.traits = traits_for(parsed, seen);
  }
  const bool wrote = cluster.judge_writes();
  diagnosis.findings = cluster.take();
  append(diagnosis.findings, std::move(absent));
  for (const Seen& it : seen) {
    append(diagnosis.findings, examine_member(parsed, it, voters == 1, wrote, options));
  }
  return diagnosis;
}

}  // namespace leasehold::etcd
