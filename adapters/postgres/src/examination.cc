#include "examination.h"

#include <algorithm>
#include <map>
#include <regex>

#include "admin_connection.h"
#include "connection.h"
#include "doctor/findings.h"
#include "kit/text/number.h"
#include "kit/try.h"
#include "options.h"
#include "pooling.h"
#include "schema.h"
#include "server.h"

namespace leasehold::postgres {
namespace {

using doctor::ClockSample;
using doctor::Findings;
using doctor::in_words;
using doctor::Nanos;
using doctor::WallTime;
using waiting::Alarm;
using waiting::CallWait;

constexpr int kTries = 5;
// A statement of Leasehold that waits for nothing is done long before.
constexpr Millis kShortTimeout{1000};

constexpr const char* kSettings = R"sql(
SELECT name, setting, source, coalesce(sourcefile || ' line ' || sourceline, '') FROM pg_catalog.pg_settings WHERE name IN
 ('fsync', 'full_page_writes', 'synchronous_commit', 'synchronous_standby_names',
  'default_transaction_read_only', 'statement_timeout', 'transaction_timeout',
  'default_transaction_isolation', 'max_connections', 'superuser_reserved_connections'))sql";

// A sender that feeds a logical slot or a backup is no standby, as in Server::look.
constexpr const char* kStandbys = R"sql(
SELECT coalesce(r.application_name, ''), coalesce(r.sync_state, '')
FROM pg_catalog.pg_stat_replication r
WHERE r.state IS DISTINCT FROM 'backup' AND NOT EXISTS
  (SELECT 1 FROM pg_catalog.pg_replication_slots s
   WHERE s.active_pid = r.pid AND s.slot_type = 'logical'))sql";

// Those that a commit waits for; a subscriber may be one of them. Who may not look sees null.
constexpr const char* kWaitedFor = R"sql(
SELECT count(*) FILTER (WHERE sync_state IN ('sync', 'quorum')),
  count(*) FILTER (WHERE sync_state IS NULL)
FROM pg_catalog.pg_stat_replication)sql";

constexpr const char* kIdleSlots = R"sql(
SELECT slot_name FROM pg_catalog.pg_replication_slots
WHERE slot_type = 'physical' AND NOT active)sql";

constexpr const char* kClients = R"sql(
SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE backend_type = 'client backend')sql";

// Written to the log and flushed at its end, and kept nowhere.
constexpr const char* kDurableWrite = R"sql(
SELECT pg_catalog.set_config('synchronous_commit', 'on', true),
  pg_catalog.pg_logical_emit_message(true, 'leasehold.doctor', ''))sql";

std::int64_t number_of(const std::string& setting) {
  return kit::number_in<std::int64_t>(setting).value_or(0);
}

// How many standbys each commit waits for: "FIRST n (...)", "ANY n (...)", "n (...)", or a list, of
// which it is one.
std::int64_t standbys_needed(const std::string& names) {
  if (names.empty()) return 0;
  static const std::regex counted(R"(^\s*(?:(?:first|any)\s+)?(\d+)\s*\()",
                                  std::regex::ECMAScript | std::regex::icase);
  std::smatch found;
  return std::regex_search(names, found, counted) ? number_of(found[1]) : 1;
}

Host any_state(Host host) {
  for (auto& [key, value] : host.keywords) {
    if (key == "target_session_attrs") value = "any";
  }
  return host;
}

class Examination {
 public:
  Examination(const Options& options, const ExamineOptions& how, Connection& connection,
              const Host& host, const Alarm& closing)
      : options_(options),
        how_(how),
        connection_(connection),
        host_(host),
        closing_(closing),
        findings_(host.address) {}

  Diagnosis run() {
    Diagnosis diagnosis;
    sample_clock();
    read_settings();
    const auto process = ask("SELECT pg_backend_pid()");
    pooled_ = process && process->number(0) != connection_.announced_pid();
    diagnosis.traits = judge_server();
    judge_pooler();
    judge_disk();
    judge_standbys();
    judge_read_only();
    judge_timeouts();
    judge_connections();
    if (as_store()) diagnosis.lineage = judge_schema();
    judge_commits();
    sample_clock();
    doctor::judge_clock(findings_, "postgres", clock_, doctor::Expiry::wall_clock, how_.ttl);
    diagnosis.findings = findings_.take();
    return diagnosis;
  }

 private:
  struct Setting {
    std::string value;
    std::string source;
    std::string place;  // in which file; empty if that is none, or not told to this role
  };

  bool as_store() const { return how_.as == ExaminedAs::store; }

  Result<Rows> ask(const std::string& sql) {
    CallWait wait(how_.context, closing_);
    return connection_.run(sql, wait);
  }

  void read_settings() {
    const auto rows = ask(kSettings);
    if (!rows) {
      unread_ = rows.error();
      return;
    }
    for (int row = 0; row < rows->count(); ++row) {
      settings_[std::string(rows->text(0, row))] = {std::string(rows->text(1, row)),
                                                    std::string(rows->text(2, row)),
                                                    std::string(rows->text(3, row))};
    }
  }

  // None if it could not be read, which is then told under `check`.
  const Setting* setting(const std::string& check, const std::string& name) {
    const auto found = settings_.find(name);
    if (found != settings_.end()) return &found->second;
    findings_.unseen(check, "what " + name + " is",
                     unread_.value_or(Error(ErrorCode::unavailable, "the server does not tell it")),
                     "");
    return nullptr;
  }

  std::optional<StoreTraits> judge_server() {
    constexpr const char* check = "postgres.version";
    CallWait wait(how_.context, closing_);
    const int version = connection_.server_version();
    const std::string seen = "It is PostgreSQL " + std::to_string(version / 10000) + "." +
                             std::to_string(version % 10000) + ".";
    auto server = Server::look(connection_, options_, wait);
    if (server) {
      findings_.ok(check, seen);
      return server->traits;
    }
    if (check_version(version) && server.error().code != ErrorCode::unsupported) {
      findings_.unseen(check, "what kind of server it is", server.error(), "");
      return std::nullopt;
    }
    findings_.add(Severity::danger, check,
                  {seen, "Leasehold refuses it: " + sentence(server.error()) + ".",
                   "PostgreSQL 14 or later, a database of encoding UTF8, and behind a pooler "
                   "default_transaction_isolation = 'read committed'"});
    return std::nullopt;
  }

  void judge_pooler() {
    constexpr const char* check = "postgres.pooler";
    if (!pooled_) {
      findings_.ok(check, "Nothing is between: the server's process is the one announced.");
      return;
    }
    const auto pooling = find_pooling(host_, how_.context, closing_);
    const std::string seen =
        pooling == Pooling::per_transaction
            ? "A pooler such as pgbouncer is between, and gives server sessions out per "
              "transaction: two connections got the same one in turn."
            : "A pooler such as pgbouncer is between; whether it gives server sessions out per "
              "transaction or per connection could not be proved.";
    if (as_store() && options_.mode == LockKind::advisory) {
      findings_.add(Severity::danger, check,
                    {seen,
                     "A session lock would be left to whoever gets that session next, or shared "
                     "with it; Leasehold refuses mode=advisory behind any pooler.",
                     "Name the server itself, or use mode=rows"});
      return;
    }
    findings_.add(Severity::note, check,
                  {seen,
                   as_store() ? "Lease rows work so; but waiters are not notified and look ten "
                                "times a second."
                              : "The fence works so, as long as enter and the writes are one "
                                "transaction. Session advisory locks and SET do not.",
                   as_store() ? "Name the server itself if waiters should be woken at once" : ""});
  }

  // What is on the server's command line goes before everything that ALTER SYSTEM writes.
  static std::string turn_on(const std::string& name, const Setting& setting) {
    if (setting.source == "command line") {
      return "It comes from the command line of the server: take " + name +
             " out of what starts it (-c, or postgres -o), and start it again";
    }
    return "It comes from: " + (setting.place.empty() ? setting.source : setting.place) +
           ". ALTER SYSTEM SET " + name + " = on; SELECT pg_reload_conf()";
  }

  void judge_disk() {
    if (const Setting* fsync = setting("postgres.fsync", "fsync")) {
      if (fsync->value == "on") {
        findings_.ok("postgres.fsync", "fsync is on.");
      } else {
        findings_.add(Severity::danger, "postgres.fsync",
                      {"fsync is off.",
                       "A crash of the machine can take tokens and marks back, or damage the "
                       "database.",
                       turn_on("fsync", *fsync)});
      }
    }
    if (const Setting* pages = setting("postgres.full_page_writes", "full_page_writes")) {
      if (pages->value == "on") {
        findings_.ok("postgres.full_page_writes", "full_page_writes is on.");
      } else {
        findings_.add(Severity::warning, "postgres.full_page_writes",
                      {"full_page_writes is off.",
                       "A page that a power cut tore in half stays damaged, and with it tokens or "
                       "marks; only a filesystem that never tears one (ZFS) makes it safe.",
                       turn_on("full_page_writes", *pages)});
      }
    }
    const Setting* commit = setting("postgres.synchronous_commit", "synchronous_commit");
    if (commit == nullptr) return;
    const std::string seen =
        "synchronous_commit is " + commit->value + " (from: " + commit->source + ").";
    if (commit->value == "on" || commit->value == "remote_apply") {
      findings_.ok("postgres.synchronous_commit", seen);
      return;
    }
    findings_.add(
        Severity::note, "postgres.synchronous_commit",
        {seen,
         "Leasehold turns it on for its own transactions, and for yours that enter a fence, store "
         "a key, or put something into the outbox or a queue. What your programs commit "
         "without these can be lost by a crash.",
         "ALTER SYSTEM (or ROLE, or DATABASE) SET synchronous_commit = on"});
  }

  void judge_standbys() {
    constexpr const char* check = "postgres.standbys";
    const Setting* names = setting(check, "synchronous_standby_names");
    const auto standbys = ask(kStandbys);
    const auto slots = ask(kIdleSlots);
    const auto waited_for = ask(kWaitedFor);
    if (names == nullptr) return;
    for (const auto* answer : {&standbys, &slots, &waited_for}) {
      if (*answer) continue;
      findings_.unseen(check, "which standbys there are", answer->error(),
                       "GRANT pg_monitor TO this role");
      return;
    }
    if (commits_would_hang(names->value, waited_for->number(0), waited_for->number(1))) return;
    const bool waits = !names->value.empty();
    int synchronous = 0;
    int hidden = 0;
    std::string left_behind;
    for (int row = 0; row < standbys->count(); ++row) {
      const std::string_view state = standbys->text(1, row);
      if (state.empty()) {
        ++hidden;
      } else if (state == "sync") {
        ++synchronous;
      } else {
        left_behind += (left_behind.empty() ? "'" : ", '") + std::string(standbys->text(0, row)) +
                       "' (" + std::string(state) + ")";
      }
    }
    if (hidden > 0) {
      findings_.unseen(
          check, "whether each standby is synchronous (" + std::to_string(hidden) + " hidden)",
          "this role may not see it", "GRANT pg_monitor TO this role");
      return;
    }
    if (!left_behind.empty()) return judge_failover(left_behind);
    if (slots->count() > 0 && !waits) {
      return judge_failover("one that is away now, for which slot '" + std::string(slots->text(0)) +
                            "' keeps the log");
    }
    findings_.ok(check, synchronous == 0
                            ? "There is no standby."
                            : "Every standby is synchronous: " + std::to_string(synchronous) + ".");
  }

  // Tells of it if fewer standbys stream than a commit waits for, whoever else is connected.
  bool commits_would_hang(const std::string& names, std::int64_t there, std::int64_t hidden) {
    const std::int64_t needed = standbys_needed(names);
    if (there + hidden >= needed) return false;
    findings_.add(Severity::danger, "postgres.standbys",
                  {"synchronous_standby_names is '" + names + "': standbys needed " +
                       std::to_string(needed) + ", streaming " + std::to_string(there) + ".",
                   "Commits hang: no lock can be taken or renewed.",
                   "Start the standbys, or take them out of synchronous_standby_names"});
    commits_hang_ = true;
    return true;
  }

  void judge_failover(const std::string& standbys) {
    constexpr const char* check = "postgres.standbys";
    const std::string seen = "Commits do not wait for each standby: " + standbys + ".";
    if (options_.no_failover) {
      findings_.add(Severity::note, check,
                    {seen, "The URL says failover=none: that none of them ever takes over.",
                     "See to it that nothing promotes them"});
      return;
    }
    findings_.add(
        Severity::warning, check,
        {seen,
         as_store() ? "After a failover tokens that were given out may be given again; this is why "
                      "the store is labelled efficiency."
                    : "After a failover the mark and the last writes are older ones; the fence "
                      "compares with what is left.",
         as_store() ? "List every standby in synchronous_standby_names, or say failover=none in "
                      "the URL if none ever takes over"
                    : "List every standby in synchronous_standby_names"});
  }

  void judge_read_only() {
    constexpr const char* check = "postgres.writable";
    const Setting* setting_ = setting(check, "default_transaction_read_only");
    if (setting_ == nullptr) return;
    if (setting_->value == "off") return findings_.ok(check, "It takes writes.");
    findings_.add(Severity::danger, check,
                  {"default_transaction_read_only is on (from: " + setting_->source + ").",
                   "No lock can be taken, and no mark entered.",
                   "ALTER SYSTEM (or ROLE, or DATABASE) SET default_transaction_read_only = off"});
  }

  void judge_timeouts() {
    constexpr const char* check = "postgres.timeouts";
    bool fine = true;
    // A direct connection of the store sets its own; a pooled one and a fence's get these.
    if (pooled_ || !as_store()) fine = judge_timeout(check, "statement_timeout") && fine;
    // Since PostgreSQL 17.
    if (settings_.contains("transaction_timeout")) {
      fine = judge_timeout(check, "transaction_timeout") && fine;
    }
    if (fine) findings_.ok(check, "No timeout ends a statement of Leasehold early.");
  }

  bool judge_timeout(const char* check, const std::string& name) {
    const Setting* found = setting(check, name);
    if (found == nullptr) return false;
    const Millis limit(number_of(found->value));
    if (limit == Millis(0) || limit >= kShortTimeout) return true;
    findings_.add(Severity::warning, check,
                  {name + " is " + in_words(limit) + " (from: " + found->source + ").",
                   "An acquire, a renewal or an entry that waits a little for another is ended by "
                   "it, and fails.",
                   "ALTER ROLE ... SET " + name + " = '5s', or 0"});
    return false;
  }

  void judge_connections() {
    constexpr const char* check = "postgres.connections";
    const Setting* most = setting(check, "max_connections");
    const auto clients = ask(kClients);
    if (most == nullptr) return;
    if (!clients) {
      return findings_.unseen(check, "how many connections there are", clients.error(), "");
    }
    const auto reserved = settings_["superuser_reserved_connections"].value;
    const std::int64_t limit = number_of(most->value) - number_of(reserved);
    const std::int64_t used = clients->number(0);
    const std::string seen = std::to_string(used) + " of " + std::to_string(limit) +
                             " connections for ordinary users are in use.";
    if (used * 10 < limit * 9) return findings_.ok(check, seen);
    findings_.add(Severity::warning, check,
                  {seen,
                   "When they are used up, nobody can connect: a renewal on a new connection "
                   "fails, and the lease is lost.",
                   "Raise max_connections, put a pooler in front of the other programs, or lower "
                   "?connections= in the URL"});
  }

  // The lineage, if there is one.
  std::optional<StoreId> judge_schema() {
    constexpr const char* check = "postgres.schema";
    const std::string place = "'" + options_.schema + "'";
    // By the catalogue: to_regclass() is refused to who may not use the schema.
    const auto there =
        ask("SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n"
            " ON n.oid = c.relnamespace WHERE c.relname = 'meta' AND n.nspname = '" +
            options_.schema +
            "'), pg_catalog.has_database_privilege("
            "pg_catalog.current_database(), 'CREATE'), " +
            stranger_in({options_.schema, options_.schema_owner}));
    if (!there) {
      findings_.unseen(check, "whether its schema is there", there.error(), "");
      return std::nullopt;
    }
    if (!there->flag(0)) {
      if (there->flag(1)) {
        findings_.add(Severity::note, check,
                      {"The schema " + place + " is not there yet.",
                       "The first client makes it; until then there is no lineage.", ""});
      } else {
        findings_.add(Severity::danger, check,
                      {"The schema " + place + " is not there, and this role may not make it.",
                       "No lock can be taken.",
                       "GRANT CREATE ON DATABASE ... TO this role, or let its owner use the store "
                       "once"});
      }
      return std::nullopt;
    }
    if (!there->is_null(2)) {
      findings_.add(
          Severity::danger, check,
          {belongs_to_stranger({options_.schema, options_.schema_owner}, there->text(2)).message,
           "Nobody with this role's rights should use it.", ""});
      return std::nullopt;
    }
    const auto meta =
        ask(in_schema("SELECT version, row_store, session_store FROM @S.meta", options_.schema));
    if (!meta || meta->count() != 1) {
      findings_.unseen(
          check, "what its schema holds",
          meta ? Error(ErrorCode::unavailable, "the table meta is empty") : meta.error(),
          "GRANT USAGE ON SCHEMA " + options_.schema + " and SELECT on its tables");
      return std::nullopt;
    }
    const std::string seen =
        "The schema " + place + " is there, in version " + std::string(meta->text(0)) + ".";
    if (meta->number(0) == kSchemaVersion) {
      findings_.ok(check, seen);
    } else {
      findings_.add(Severity::danger, check,
                    {seen,
                     "This program works with version " + std::to_string(kSchemaVersion) +
                         " only, and refuses it.",
                     "Use one version of Leasehold for all clients of a store"});
    }
    return meta->id<StoreId>(options_.mode == LockKind::rows ? 1 : 2);
  }

  bool waits_for_standbys() { return !settings_["synchronous_standby_names"].value.empty(); }

  void judge_commits() {
    constexpr const char* check = "postgres.round_trip";
    const char* const what = "commit durably";
    if (commits_hang_) {
      return findings_.unseen(check, std::string("how long it takes to ") + what,
                              "every commit waits for a standby", "");
    }
    std::vector<Nanos> trips;
    for (int i = 0; i < kTries; ++i) {
      const BootTime before = BootClock::now();
      const auto done = ask(kDurableWrite);
      if (done) {
        trips.push_back(BootClock::now() - before);
        continue;
      }
      if (waits_for_standbys() && BootClock::now() >= how_.context.deadline) {
        findings_.add(Severity::danger, check,
                      {"A durable commit did not end in the time there was, and "
                       "synchronous_standby_names is '" +
                           settings_["synchronous_standby_names"].value + "'.",
                       "Commits hang: a standby is connected but does not confirm, and no lock can "
                       "be taken or renewed.",
                       "Look at pg_stat_replication; mend that standby, or take it out of "
                       "synchronous_standby_names"});
        return;
      }
      if (trips.empty()) {
        return findings_.unseen(check, std::string("how long it takes to ") + what, done.error(),
                                "");
      }
      break;
    }
    doctor::judge_round_trip(findings_, check, what, std::move(trips), how_.ttl);
  }

  void sample_clock() {
    for (int i = 0; i < kTries; ++i) {
      const auto sample = doctor::sample_clock([this]() -> Result<WallTime> {
        const auto rows =
            TRY(ask("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"));
        return WallTime(std::chrono::microseconds(rows.number(0)));
      });
      if (!sample) return;
      clock_.push_back(*sample);
    }
  }

  const Options& options_;
  const ExamineOptions& how_;
  Connection& connection_;
  const Host& host_;
  const Alarm& closing_;
  Findings findings_;
  std::map<std::string, Setting> settings_;
  std::optional<Error> unread_;
  std::vector<ClockSample> clock_;
  bool pooled_ = false;
  bool commits_hang_ = false;
};

// ---- the hosts of the URL ------------------------------------------------------------------

struct Reached {
  const Host* host;
  std::unique_ptr<Connection> connection;
};

// Tells of each host that is not the primary; the primary, if there is one.
Result<std::optional<Reached>> find_primary(const std::vector<Host>& hosts,
                                            const CallContext& context, const Alarm& closing,
                                            std::vector<Finding>& told) {
  std::optional<Reached> primary;
  std::optional<Error> last;
  std::size_t answered = 0;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const auto left = context.deadline - BootClock::now();
    const CallContext share{BootClock::now() + left / static_cast<int>(hosts.size() - i + 1),
                            context.stop};
    auto connection = Connection::open({hosts[i]}, share, closing);
    CallWait wait(share, closing);
    const auto standby = connection ? (*connection)->run("SELECT pg_is_in_recovery()", wait)
                                    : fail(connection.error());
    Findings findings(hosts[i].address);
    if (!standby) {
      last = standby.error();
      findings.add(Severity::warning, "postgres.hosts",
                   {"It does not answer: " + sentence(*last) + ".",
                    "It cannot take over as another host of the URL.",
                    "Start it, or take it out of the URL"});
    } else if (standby->flag(0)) {
      ++answered;
      findings.add(hosts.size() == 1 ? Severity::danger : Severity::note, "postgres.hosts",
                   {"It is a standby, and takes no writes.",
                    hosts.size() == 1 ? "No lock can be taken, and no mark entered."
                                      : "Leasehold goes on to a host that is a primary.",
                    "Name the primary in the URL, or all hosts"});
    } else {
      ++answered;
      if (!primary) primary = Reached{&hosts[i], std::move(*connection)};
      findings.ok("postgres.hosts", "It is a primary.");
    }
    for (Finding& it : findings.take()) told.push_back(std::move(it));
  }
  if (answered == 0) {
    Error error = std::move(*last);
    if (error.code == ErrorCode::outcome_unknown) error.code = ErrorCode::unavailable;
    return fail(std::move(error));
  }
  return primary;
}

Result<Options> options_of(const Url& url, ExaminedAs as) {
  if (as == ExaminedAs::fence) {
    TRY(check_resource_url(url));
  }
  auto options = Options::of(url);
  if (options) {
    for (Host& host : options->hosts) host = any_state(std::move(host));
  }
  return options;
}

}  // namespace

Result<Diagnosis> examine(const Url& url, const ExamineOptions& options) {
  const auto parsed = TRY(options_of(url, options.as));
  const Alarm never;
  std::vector<Finding> of_hosts;
  auto primary = find_primary(parsed.hosts, options.context, never, of_hosts);
  if (!primary) {
    primary.error().address = parsed.address;
    return fail(std::move(primary.error()));
  }
  Diagnosis diagnosis;
  if (*primary) {
    diagnosis =
        Examination(parsed, options, *(*primary)->connection, *(*primary)->host, never).run();
  } else if (parsed.hosts.size() > 1) {
    Findings findings(parsed.address);
    findings.add(Severity::danger, "postgres.hosts",
                 {"No host of the URL is a primary.", "No lock can be taken, and no mark entered.",
                  "Promote one, or name the primary"});
    for (Finding& it : findings.take()) of_hosts.push_back(std::move(it));
  }
  diagnosis.findings.insert(diagnosis.findings.begin(), of_hosts.begin(), of_hosts.end());
  return diagnosis;
}

}  // namespace leasehold::postgres
