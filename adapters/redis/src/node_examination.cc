#include "node_examination.h"

#include "calls.h"
#include "doctor/findings.h"
#include "kit/try.h"
#include "leasehold/random.h"
#include "leasehold/resp/command.h"
#include "server_numbers.h"

namespace leasehold::redis {
namespace {

using doctor::ClockSample;
using doctor::Findings;
using doctor::Nanos;
using doctor::WallTime;
using resp::Value;

constexpr int kTries = 5;
constexpr const char* kLetInfo = "Grant the user +info (ACL SETUSER name +info)";

class NodeExamination {
 public:
  NodeExamination(Server& server, NodeRole role, Millis ttl, const CallContext& context)
      : server_(server), role_(role), ttl_(ttl), context_(context), findings_(server.address()) {}

  Result<NodeDiagnosis> run() {
    const auto greeting = TRY(greeting_of(server_, context_));
    const auto info = TRY(read_info(server_, context_));
    info_ = info;
    NodeDiagnosis found;
    found.introduction = introduction_of(greeting, info_);
    found.usable = judge_kind(found.introduction);
    found.run_id = info_field(info_, "run_id");
    sample_clock();
    if (info_.empty()) {
      for (const char* check : {"redis.role", "redis.replicas", "redis.eviction", "redis.memory",
                                "redis.persistence", "redis.uptime"}) {
        findings_.unseen(check, "what INFO says of it", "this user may not ask", kLetInfo);
      }
    } else {
      judge_role();
      judge_replicas();
      judge_eviction(found.introduction);
      judge_memory();
      judge_persistence();
      judge_uptime();
    }
    judge_writes();
    sample_clock();
    doctor::judge_clock(findings_, "redis", clock_, doctor::Expiry::wall_clock, ttl_);
    if (!fenced()) found.usable = judge_store(found) && found.usable;
    found.findings = findings_.take();
    return found;
  }

 private:
  bool fenced() const { return role_ == NodeRole::fence; }

  Result<Value> ask(std::initializer_list<std::string_view> words) {
    std::string command;
    resp::append_command(command, words);
    return server_.run(command, context_);
  }

  // False if Leasehold refuses such a server.
  bool judge_kind(const Introduction& it) {
    constexpr const char* check = "redis.version";
    if (it.version.empty()) {
      findings_.unseen(check, "which version it is", "it does not say", kLetInfo);
    }
    if (const auto ok = check_usable(it, server_.address()); !ok) {
      findings_.add(Severity::danger, check,
                    {"It is Redis " + it.version + ", running as " + it.mode + ".",
                     "Leasehold refuses it: " + sentence(ok.error()) + ".",
                     "Name a standalone server of version 5 or later"});
      return false;
    }
    if (!it.version.empty()) {
      findings_.ok(check, "It is Redis " + it.version + ", a single server.");
    }
    return true;
  }

  void judge_role() {
    constexpr const char* check = "redis.role";
    const std::string role = info_field(info_, "role");
    if (role == "master") return findings_.ok(check, "It is a primary.");
    findings_.add(Severity::danger, check,
                  {"It is a replica of " + info_field(info_, "master_host") + ":" +
                       info_field(info_, "master_port") + ".",
                   "What is written here is refused, or is overwritten by the primary: it can "
                   "neither give a lock nor keep one.",
                   "Name the primary in the URL"});
  }

  void judge_replicas() {
    constexpr const char* check = "redis.replicas";
    const std::string count = info_field(info_, "connected_slaves");
    if (count == "0") return findings_.ok(check, "No replica is attached.");
    findings_.add(
        fenced() ? Severity::danger : Severity::warning, check,
        {"Replicas attached: " + count + "; Redis does not wait for them.",
         fenced() ? "After a failover the mark is an older one, and a holder that was overtaken is "
                    "let in."
                  : "After a failover the new primary may not know a lock that was just given, and "
                    "gives it to a second holder.",
         fenced() ? "Fence a resource that keeps its mark, or let nothing fail over to the replica"
                  : "Let nothing fail over to it within the TTL, or use a store that waits for a "
                    "majority (etcd, ZooKeeper)"});
  }

  void judge_eviction(const Introduction& it) {
    constexpr const char* check = "redis.eviction";
    const std::string policy = info_field(info_, "maxmemory_policy");
    const std::string limit = info_field(info_, "maxmemory");
    const std::string seen = "maxmemory is " + limit + " bytes, maxmemory-policy " + policy + ".";
    const bool evicts = fenced() ? it.evicts_lasting_keys : !it.eviction.empty();
    if (limit.empty() || policy.empty()) {
      return findings_.unseen(check, "whether it throws keys away", "INFO does not say", "");
    }
    if (!evicts) return findings_.ok(check, seen);
    findings_.add(Severity::danger, check,
                  {seen,
                   fenced() ? "When the memory is full it may throw the mark away: then a holder "
                              "that was overtaken is let in."
                            : "When the memory is full it may throw a lock away under its holder, "
                              "and give it to the next.",
                   "CONFIG SET maxmemory-policy noeviction, and the same in redis.conf"});
  }

  void judge_memory() {
    constexpr const char* check = "redis.memory";
    constexpr std::int64_t nearly_full = 90;
    const auto percent = memory_in_percent(info_);
    if (!percent) return;
    const std::string seen = std::to_string(*percent) + " % of its maxmemory are in use.";
    if (*percent < nearly_full) return findings_.ok(check, seen);
    findings_.add(Severity::warning, check,
                  {seen, "Full, it evicts, or refuses every acquire (OOM).",
                   "Raise maxmemory, or keep locks on a server of their own"});
  }

  void judge_persistence() {
    constexpr const char* check = "redis.persistence";
    const bool log = info_field(info_, "aof_enabled") == "1";
    if (log && info_field(info_, "aof_last_write_status") != "ok") {
      findings_.add(Severity::danger, check,
                    {"Its last write to the append-only file failed.",
                     "A restart brings an older state back.", "Look at its disk and its log"});
      return;
    }
    if (log) return judge_fsync();
    judge_snapshots();
  }

  void judge_fsync() {
    constexpr const char* check = "redis.persistence";
    const auto config = ask({"CONFIG", "GET", "appendfsync"});
    if (!config) {
      findings_.unseen(check, "how often the append-only file is synced", config.error(),
                       "Grant the user +config|get");
      return;
    }
    const std::string when = config->under("appendfsync").text;
    const std::string seen = "appendonly is yes, appendfsync " + when + ".";
    if (when == "always") return findings_.ok(check, seen);
    const bool seconds = when == "everysec";
    findings_.add(fenced()  ? Severity::warning
                  : seconds ? Severity::note
                            : Severity::warning,
                  check,
                  {seen,
                   std::string("A power cut takes back ") +
                       (seconds ? "up to two seconds" : "up to half a minute") + " of " +
                       (fenced() ? "marks, and a holder that was overtaken is let in."
                                 : "locks, and they are given twice. A crash of the process alone "
                                   "takes none."),
                   "CONFIG SET appendfsync always, and the same in redis.conf"});
  }

  void judge_snapshots() {
    constexpr const char* check = "redis.persistence";
    const auto config = ask({"CONFIG", "GET", "save"});
    const std::string points = config ? config->under("save").text : "";
    const std::string seen =
        std::string("appendonly is no, ") +
        (!config          ? "and what save says could not be seen"
         : points.empty() ? "and there are no snapshots (save \"\")"
                          : "with snapshots now and then (save " + points + ")") +
        ".";
    findings_.add(fenced() ? Severity::danger : Severity::warning, check,
                  {seen,
                   fenced() ? "After a restart the marks are older or gone, and a holder that was "
                              "overtaken is let in."
                            : "After a restart the locks are older or gone, and those that were "
                              "held are given to others.",
                   "CONFIG SET appendonly yes and CONFIG SET appendfsync always, and the same in "
                   "redis.conf"});
  }

  void judge_uptime() {
    constexpr const char* check = "redis.uptime";
    const Nanos up = uptime_in(info_);
    const std::string seen = "It was started " + doctor::in_words(up) + " ago.";
    const bool forgot = info_field(info_, "aof_enabled") != "1";
    if (up >= ttl_ || !forgot) return findings_.ok(check, seen);
    const std::string rest = doctor::in_words(ttl_);
    findings_.add(
        Severity::warning, check,
        {seen.substr(0, seen.size() - 1) + ", without its data, and the TTL is " + rest + ".",
         role_ == NodeRole::redlock
             ? "It has forgotten votes that still count: with it a second holder can get a "
               "majority."
             : "Locks that were held before the restart may be given to a second holder now.",
         "Let nobody take a lock before " + rest +
             " have passed since its start, and let it "
             "keep its data (appendonly yes)"});
  }

  void judge_writes() {
    constexpr const char* check = "redis.round_trip";
    const std::string key = "leasehold:doctor:" + RequestId::random(system_random()).hex();
    std::vector<Nanos> trips;
    for (int i = 0; i < kTries; ++i) {
      const BootTime before = BootClock::now();
      const auto done = ask({"SET", key, "x", "PX", "1000"});
      if (done) {
        trips.push_back(BootClock::now() - before);
        continue;
      }
      if (BootClock::now() >= context_.deadline) break;
      findings_.add(Severity::danger, "redis.writes",
                    {"It refuses to write: " + sentence(done.error()) + ".",
                     fenced() ? "No mark can be entered." : "No lock can be taken or renewed.",
                     "Mend what it says"});
      return;
    }
    if (!trips.empty()) (void)ask({"DEL", key});
    doctor::judge_round_trip(findings_, check, "write a key", std::move(trips), ttl_);
  }

  void sample_clock() {
    for (int i = 0; i < kTries; ++i) {
      auto sample = doctor::sample_clock([this]() -> Result<WallTime> {
        const auto time = TRY(ask({"TIME"}));
        const auto clock = time_in(time);
        if (!clock) return fail(ErrorCode::unavailable, "TIME was answered with no time");
        return *clock;
      });
      if (!sample) return;
      clock_.push_back(*sample);
    }
  }

  // False if Leasehold refuses what is there.
  bool judge_store(NodeDiagnosis& found) {
    constexpr const char* check = "redis.store";
    const auto id = server_.run(look_call(), context_);
    if (id) {
      found.lineage = StoreId::from_hex(id->text);
      if (found.lineage) {
        findings_.ok(check, "It has a lock store in format " + std::string(kStoreFormat) + ".");
      }
      return true;
    }
    const std::string& word = id.error().store_code;
    const bool refused = id.error().code == ErrorCode::unsupported || word == "WRONGTYPE";
    if (!refused) return true;
    findings_.add(
        Severity::danger, check,
        {"Leasehold refuses what is there: " + sentence(id.error()) + ".", "No lock can be taken.",
         std::string("Give the locks another database or server, or delete ") + kStoreKey +
             " when nobody uses it"});
    return false;
  }

  Server& server_;
  const NodeRole role_;
  const Millis ttl_;
  const CallContext& context_;
  Findings findings_;
  std::string info_;
  std::vector<ClockSample> clock_;
};

}  // namespace

Result<NodeDiagnosis> examine_node(Server& server, NodeRole role, Millis ttl,
                                   const CallContext& context) {
  return NodeExamination(server, role, ttl, context).run();
}

}  // namespace leasehold::redis
