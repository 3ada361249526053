#include "server.h"

#include "kit/try.h"

namespace leasehold::postgres {
namespace {

constexpr int kOldestVersion = 140000;  // idle_session_timeout, pg_locks.waitstart

// A sender that feeds a logical slot is no standby. Who may not read all statistics sees that a
// sender is there, but not its state.
constexpr const char* kLook = R"sql(
SELECT pg_backend_pid(), current_setting('server_encoding'),
  current_setting('default_transaction_isolation'), current_setting('fsync'),
  current_setting('synchronous_standby_names') <> '',
  (SELECT count(*) FROM pg_stat_replication r WHERE r.state IS DISTINCT FROM 'backup'
     AND NOT EXISTS (SELECT 1 FROM pg_replication_slots s
                     WHERE s.active_pid = r.pid AND s.slot_type = 'logical')),
  (SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'),
  (SELECT count(*) FROM pg_stat_replication WHERE sync_state IS NULL),
  (SELECT count(*) FROM pg_replication_slots WHERE slot_type = 'physical' AND NOT active)
)sql";

enum Column {
  kPid,
  kEncoding,
  kIsolation,
  kFsync,
  kWaitsForStandbys,
  kStandbys,
  kSynchronous,
  kUnseen,
  kIdleSlots
};

constexpr const char* kAssert =
    "If no standby ever takes over, say so with the option failover=none; else list every standby "
    "in synchronous_standby_names";

constexpr const char* kSync =
    "Turn fsync on at the server; no option of the URL replaces it. 'leasehold doctor' says where "
    "it is turned off";

bool syncs(const Rows& look) {
  return look.text(kFsync) != "off";
}

// Why a token could be given out twice; empty if it cannot.
std::string doubt(const Rows& look, const Options& options) {
  if (!syncs(look)) {
    return "the server runs with fsync=off, so that a crash can take tokens back";
  }
  if (options.no_failover) return "";
  const bool waits = look.flag(kWaitsForStandbys);
  const std::int64_t standbys = look.number(kStandbys);
  if (standbys == 0 && look.number(kIdleSlots) > 0 && !waits) {
    return "the server keeps its log for a standby that is not connected now, and would not wait "
           "for it: after a failover tokens could be given out again";
  }
  if (standbys == 0) return "";
  if (waits && look.number(kUnseen) > 0) {
    return "the server has standbys, and this role may not see whether they are synchronous (grant "
           "it pg_monitor)";
  }
  if (!waits || standbys > look.number(kSynchronous)) {
    return "the server has a standby that it does not wait for each time: after a failover to it "
           "tokens could be given out again";
  }
  return "";
}

}  // namespace

Status check_version(int version) {
  if (version >= kOldestVersion) return {};
  return fail(ErrorCode::unavailable,
              "the server is PostgreSQL " + std::to_string(version / 10000) +
                  (version < 100000 ? "." + std::to_string(version / 100 % 100) : "") +
                  "; Leasehold needs 14 or later");
}

const std::string& session_setup() {
  static const std::string sql =
      "SELECT pg_catalog.pg_backend_pid(),"
      " pg_catalog.set_config('default_transaction_isolation', 'read committed', false),"
      " pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', false),"
      " pg_catalog.set_config('statement_timeout', '0', false),"
      // Else each statement of a function is planned at each of its first five calls.
      " pg_catalog.set_config('plan_cache_mode', 'force_generic_plan', false),"
      // An acquire that nobody waits for any more should not wait for long either.
      " pg_catalog.set_config('lock_timeout', '10s', false),"
      " pg_catalog.set_config('idle_session_timeout', '0', false)";
  return sql;
}

Result<Server> Server::look(Connection& connection, const Options& options,
                            waiting::CallWait& wait) {
  TRY(check_version(connection.server_version()));
  const auto look = TRY(connection.run(kLook, wait));
  if (look.text(kEncoding) != "UTF8") {
    return fail(ErrorCode::unsupported, "the database has the encoding " +
                                            std::string(look.text(kEncoding)) +
                                            "; Leasehold needs UTF8");
  }
  Server server;
  server.pooled = look.number(kPid) != connection.announced_pid();
  if (server.pooled && look.text(kIsolation) != "read committed") {
    return fail(ErrorCode::unsupported,
                "behind a connection pooler the default_transaction_isolation must be 'read "
                "committed', not '" +
                    std::string(look.text(kIsolation)) + "'");
  }
  StoreTraits& traits = server.traits;
  traits.address = options.address;
  traits.queues = true;
  traits.keeps_after_release = options.mode == LockKind::rows;
  traits.one_counter = true;
  traits.modes = options.mode == LockKind::rows;
  traits.why_no_modes =
      "PostgreSQL's own advisory locks know no queue in which nobody overtakes, and no slots; "
      "mode=rows has them";
  traits.why = doubt(look, options);
  if (!traits.why.empty()) {
    traits.guarantee = Guarantee::efficiency;
    traits.instead = syncs(look) ? kAssert : kSync;
    return server;
  }
  traits.guarantee = Guarantee::correctness;
  traits.why =
      "each token is drawn from one counter, and committed durably with its lock's row before it "
      "is granted";
  traits.instead = "Nothing more is to be had from a lock; put a fence at the resource";
  return server;
}

}  // namespace leasehold::postgres
