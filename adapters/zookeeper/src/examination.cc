#include "examination.h"

#include <algorithm>
#include <cstdlib>

#include "doctor/findings.h"
#include "kit/try.h"
#include "leasehold/random.h"
#include "options.h"
#include "plain_session.h"
#include "signs_of_life.h"
#include "store.h"
#include "words.h"

namespace leasehold::zookeeper {
namespace {

using namespace doctor;
using namespace std::chrono_literals;

constexpr int kTries = 5;
constexpr Millis kWordTimeout = 1s;
constexpr Millis kMayLag = 1s;
// What certain_part_of() is made for.
constexpr Millis kLongestTick = 2s;
constexpr const char* kAllow = "4lw.commands.whitelist=srvr,conf,mntr in zoo.cfg";
constexpr const char* kSyncs = "zk_cnt_fsynctime";

CallContext shortly(const CallContext& context) {
  return {std::min(context.deadline, BootClock::now() + kWordTimeout), context.stop};
}

// ---- one server ----------------------------------------------------------------------------

class ServerExamination {
 public:
  ServerExamination(HostPort host, const ExamineOptions& how)
      : host_(std::move(host)), how_(how), findings_(host_.host + ":" + host_.port) {}

  // Before anything was written.
  void count_syncs() { syncs_ = syncs(); }

  // Afterwards.
  void run(bool wrote) {
    const auto srvr = ask_word(host_, "srvr", shortly(how_.context));
    if (!srvr && srvr.error().code != ErrorCode::unsupported) {
      findings_.add(Severity::warning, "zookeeper.hosts",
                    {"It does not answer: " + sentence(srvr.error()) + ".",
                     "The ensemble must do without it.", "Start it, or take it out of the URL"});
      return;
    }
    if (srvr) {
      judge_server(*srvr);
    } else {
      for (const char* check : {"zookeeper.version", "zookeeper.mode", "zookeeper.latency"}) {
        findings_.unseen(check, "what 'srvr' says of it", srvr.error(), kAllow);
      }
    }
    judge_tick();
    judge_syncs(wrote);
  }

  std::vector<Finding> take() { return findings_.take(); }

 private:
  void judge_server(const std::string& srvr) {
    const auto fields = fields_in(srvr, ": ");
    if (!fields.contains("Mode") || !fields.contains("Zookeeper version")) {
      findings_.add(Severity::warning, "zookeeper.hosts",
                    {"It says: " + srvr.substr(0, srvr.find('\n')) + ".",
                     "It has no part in the ensemble now.",
                     "See its log; a majority of the servers must reach each other"});
      return;
    }
    judge_version(fields.at("Zookeeper version"));
    const std::string& mode = fields.at("Mode");
    if (mode == "read-only") {
      findings_.add(Severity::danger, "zookeeper.mode",
                    {"It is in read-only mode.",
                     "It is cut off from the majority; locks cannot "
                     "be taken there, and what it shows may be old.",
                     "Mend the network; readonlymode.enabled=false if nobody needs it"});
      return;
    }
    findings_.ok("zookeeper.mode", "It serves as " + mode + ".");
    judge_latency(fields);
  }

  void judge_version(const std::string& words) {
    const std::string number = words.substr(0, words.find_first_of(",-"));
    const auto version = version_in(words);
    if (version && (version->major > 3 || version->minor >= 5)) {
      return findings_.ok("zookeeper.version", "It is ZooKeeper " + number + ".");
    }
    findings_.add(
        Severity::danger, "zookeeper.version",
        {"It is ZooKeeper " + number + ".", "Leasehold needs 3.5 or later.", "Update it"});
  }

  void judge_latency(const std::map<std::string, std::string>& fields) {
    const auto found = fields.find("Latency min/avg/max");
    if (found == fields.end()) return;
    const auto slash = found->second.rfind('/');
    const Millis worst = millis_in(std::string_view(found->second).substr(slash + 1));
    const std::string seen =
        "Since its start its requests took " + found->second + " ms (least/mean/most).";
    if (worst < how_.ttl / 3) return findings_.ok("zookeeper.latency", seen);
    findings_.add(Severity::note, "zookeeper.latency",
                  {seen,
                   "The slowest took a third of the TTL or more; a renewal that meets that again "
                   "may come too late.",
                   "Use a longer TTL, or see in its log what was slow (srst counts anew)"});
  }

  void judge_tick() {
    constexpr const char* check = "zookeeper.tick";
    const auto conf = ask_word(host_, "conf", shortly(how_.context));
    if (!conf) return findings_.unseen(check, "what tickTime is", conf.error(), kAllow);
    const auto fields = fields_in(*conf, "=");
    const auto tick = fields.find("tickTime");
    if (tick == fields.end()) {
      return findings_.unseen(check, "what tickTime is", "'conf' does not tell", "");
    }
    const Millis length = millis_in(tick->second);
    const std::string seen = "tickTime is " + in_words(length) + ".";
    if (length <= kLongestTick) return findings_.ok(check, seen);
    findings_.add(
        Severity::warning, check,
        {seen,
         "A follower tells the leader of its clients every half tick, and Leasehold "
         "allows for one second: a lease may end at the server before its holder is "
         "told.",
         "tickTime=2000 or less, and initLimit, syncLimit and maxSessionTimeout to match"});
  }

  Result<double> syncs() {
    const auto mntr = TRY(ask_word(host_, "mntr", shortly(how_.context)));
    const auto fields = fields_in(mntr, "\t");
    const auto found = fields.find(kSyncs);
    if (found == fields.end()) {
      return fail(ErrorCode::unavailable, "'mntr' does not count its syncs");
    }
    return std::atof(found->second.c_str());
  }

  // The count stands still if it does not sync.
  void judge_syncs(bool wrote) {
    constexpr const char* check = "zookeeper.force_sync";
    const std::string what = "whether it syncs its log to the disk";
    if (!syncs_ || !*syncs_) {
      return findings_.unseen(
          check, what, syncs_ ? syncs_->error() : Error(ErrorCode::unavailable, "no time"), kAllow);
    }
    if (!wrote) return findings_.unseen(check, what, "nothing could be written", "");
    // A follower may lag behind the majority that has confirmed a write.
    const BootTime give_up = std::min(how_.context.deadline, BootClock::now() + kMayLag);
    auto after = syncs();
    while (after && *after == **syncs_ && BootClock::now() < give_up) after = syncs();
    if (!after) return findings_.unseen(check, what, after.error(), kAllow);
    if (*after > **syncs_) {
      return findings_.ok(check, "It synced its log for what was written.");
    }
    findings_.add(Severity::danger, check,
                  {"Nodes were written, and it did not sync its log to the disk for them.",
                   "So run (forceSync=no), a power cut takes locks and tokens back, and numbers "
                   "are given twice.",
                   "forceSync=yes (zookeeper.forceSync)"});
  }

  const HostPort host_;
  const ExamineOptions& how_;
  Findings findings_;
  std::optional<Result<double>> syncs_;
};

// ---- the ensemble --------------------------------------------------------------------------

class EnsembleExamination {
 public:
  EnsembleExamination(const Options& options, const ExamineOptions& how, PlainSession& session)
      : options_(options), how_(how), session_(session), findings_(options.address) {}

  void judge_size() {
    constexpr const char* check = "zookeeper.ensemble";
    const auto config = session_.get("/zookeeper/config", how_.context);
    if (!config || outcome_of(config->rc) != Outcome::done) {
      return findings_.unseen(check, "how many servers the ensemble has",
                              config ? words_of(config->rc) : "no answer came", "");
    }
    const std::size_t voters = std::max<std::size_t>(voters_in(config->data), 1);
    const std::string seen = "The ensemble has " + std::to_string(voters) +
                             (voters == 1 ? " voting server." : " voting servers.");
    if (voters == 1) {
      findings_.add(Severity::warning, check,
                    {seen,
                     "When that machine is gone, so are the locks and the tokens: a new one begins "
                     "to count anew, and fences refuse it.",
                     "Run three servers, on machines of their own"});
    } else if (voters % 2 == 0) {
      findings_.add(Severity::note, check,
                    {seen, "An even number survives no more failures than one less.",
                     "Run an odd number of servers"});
    } else {
      findings_.ok(check, seen);
    }
  }

  void judge_session(Millis asked) {
    constexpr const char* check = "zookeeper.session";
    const Millis got = session_.timeout();
    const Millis lasts = certain_part_of(got);
    const std::string seen = "For a TTL of " + in_words(how_.ttl) + " a session of " +
                             in_words(asked) + " was asked for, and one of " + in_words(got) +
                             " given: a lease lasts " + in_words(lasts) + ".";
    if (got < asked) {
      findings_.add(Severity::warning, check,
                    {seen, "Leases are shorter than you ask for, and more easily lost in a pause.",
                     "maxSessionTimeout=" + std::to_string(asked.count()) +
                         " or more in zoo.cfg, or a shorter TTL"});
    } else if (got > asked) {
      findings_.add(Severity::note, check,
                    {seen, "A dead holder's lock is free that much later.",
                     "A smaller minSessionTimeout or tickTime, or a longer TTL"});
    } else {
      findings_.ok(check, seen);
    }
  }

  // False if nothing could be written.
  bool judge_writes() {
    const std::string path = doctor_path();
    std::vector<Nanos> trips;
    std::vector<ClockSample> clock;
    for (int i = 0; i < kTries; ++i) {
      std::optional<int> made;
      const auto sample = doctor::sample_clock([&]() -> Result<WallTime> {
        made = session_.create(path, how_.context);
        return WallTime{};
      });
      if (!made) break;
      if (outcome_of(*made) != Outcome::done) return refused(*made);
      trips.push_back(sample->round_trip());
      if (const auto node = session_.get(path, how_.context)) {
        clock.push_back(*sample);
        clock.back().server = WallTime(Millis(node->stat.created_ms));
        clock.back().resolution = 1ms;
      }
      if (!session_.remove(path, how_.context)) break;
    }
    const bool wrote = !trips.empty();
    doctor::judge_round_trip(findings_, "zookeeper.round_trip", "write a node", std::move(trips),
                             how_.ttl);
    doctor::judge_clock(findings_, "zookeeper", clock, doctor::Expiry::steady_clock, how_.ttl);
    return wrote;
  }

  std::optional<StoreId> lineage() {
    const auto node = session_.get(options_.base + "/.lineage", how_.context);
    if (!node) return std::nullopt;
    return lineage_in(node->data);
  }

  std::vector<Finding> take() { return findings_.take(); }

 private:
  // In the store's own folder, where this user may write if anywhere; the folder may not be there
  // yet.
  std::string doctor_path() {
    const std::string name = ".doctor-" + RequestId::random(system_random()).hex();
    const auto base = session_.get(options_.base, how_.context);
    const bool there = base && outcome_of(base->rc) == Outcome::done;
    return (there ? options_.base : "") + "/" + name;
  }

  bool refused(int rc) {
    findings_.add(
        Severity::danger, "zookeeper.writes",
        {"It refuses to write: " + words_of(rc) + ".", "No lock can be taken, and no mark entered.",
         "Give this user the right to create nodes below " + options_.base});
    return false;
  }

  const Options& options_;
  const ExamineOptions& how_;
  PlainSession& session_;
  Findings findings_;
};

HostPort with_port(HostPort host) {
  if (host.port.empty()) host.port = "2181";
  return host;
}

}  // namespace

Result<Diagnosis> examine(const Url& url, const ExamineOptions& options) {
  const auto parsed = TRY(Options::of(url));
  const auto ttl = TRY(Ttl::of(options.ttl));
  const Millis asked = session_for(ttl);
  const auto left = options.context.deadline - BootClock::now();
  auto session =
      TRY(PlainSession::open(parsed, asked, {BootClock::now() + left / 2, options.context.stop}));

  std::vector<ServerExamination> servers;
  for (const HostPort& host : url.hosts) servers.emplace_back(with_port(host), options);
  for (ServerExamination& it : servers) it.count_syncs();
  Diagnosis diagnosis;
  EnsembleExamination ensemble(parsed, options, *session);
  ensemble.judge_size();
  if (options.as == ExaminedAs::store) {
    ensemble.judge_session(asked);
    diagnosis.lineage = ensemble.lineage();
    diagnosis.traits = zookeeper_traits(parsed);
  }
  const bool wrote = ensemble.judge_writes();
  diagnosis.findings = ensemble.take();
  for (ServerExamination& it : servers) {
    it.run(wrote);
    append(diagnosis.findings, it.take());
  }
  return diagnosis;
}

}  // namespace leasehold::zookeeper
