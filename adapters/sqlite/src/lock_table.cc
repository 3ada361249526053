#include "lock_table.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <thread>

#include "kit/try.h"
#include "store_base/blocking_store.h"

namespace leasehold::sqlite {
namespace {

// A waiter whose process gives no sign of life, or that does not come when it is called, for so
// long is passed over.
constexpr Millis kWaiterLife = std::chrono::seconds(6);

// How often somebody of each process looks whether those before it have died or frozen, and how
// often the others, who are woken when their time has come.
constexpr Millis kWatchEvery = std::chrono::seconds(2);
constexpr Millis kAskEvery = std::chrono::seconds(10);
// Those on watch may be many, if each waits for another lock: together they ask that rarely.
constexpr Millis kBetweenAsks{1};

// In alive_until: its process gives the signs of life. Above it: by when a waiter that was called
// is to come. Below it, with a minus: by when its socket, which was missing, is to be there again.
constexpr std::int64_t kNotCalled = 0;

// How often a pause is doubled while another process writes (1 ms), and while the log cannot be
// begun anew (20 ms). How often SQLite is to try while it keeps others from writing.
constexpr int kDoublingsInLine = 6;
constexpr int kDoublingsAside = 10;
constexpr int kAttemptsToCopy = 4;

constexpr const char* kSchema = R"sql(
CREATE TABLE store(
  one INTEGER PRIMARY KEY CHECK (one = 1),
  id BLOB NOT NULL,
  machine TEXT NOT NULL,
  boot TEXT NOT NULL,
  floor INTEGER NOT NULL,
  ceiling INTEGER NOT NULL,
  reserved INTEGER NOT NULL);
CREATE TABLE lock(
  name TEXT PRIMARY KEY,
  token INTEGER NOT NULL,
  request BLOB,
  owner TEXT NOT NULL,
  granted_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  ttl INTEGER NOT NULL,
  kept INTEGER NOT NULL,
  last_released BLOB) WITHOUT ROWID;
CREATE TABLE waiter(
  place INTEGER PRIMARY KEY,
  lock TEXT NOT NULL,
  request BLOB NOT NULL UNIQUE,
  owner TEXT NOT NULL,
  wake TEXT NOT NULL,
  alive_until INTEGER NOT NULL);
CREATE INDEX waiter_by_lock ON waiter(lock, place);
CREATE INDEX waiter_by_wake ON waiter(wake);
CREATE TABLE once(
  lock TEXT NOT NULL,
  key TEXT NOT NULL,
  parameters TEXT NOT NULL,
  result TEXT NOT NULL,
  on_disk INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (lock, key)) WITHOUT ROWID;
)sql";

constexpr std::array<std::string_view, 24> kStatements = {
    // kBegin
    "BEGIN IMMEDIATE",
    // kCommit
    "COMMIT",
    // kFind
    "SELECT s.id, s.floor, s.ceiling, l.token, l.request, l.owner, l.expires_at, l.kept,"
    " EXISTS(SELECT 1 FROM waiter WHERE lock = ?1), l.ttl"
    " FROM store s LEFT JOIN lock l ON l.name = ?1",
    // kGrant
    "INSERT INTO lock(name, token, request, owner, granted_at, expires_at, ttl, kept)"
    " VALUES(?1, ?2, ?3, ?4, ?5, ?5 + ?6, ?6, 0)"
    " ON CONFLICT(name) DO UPDATE SET token = ?2, request = ?3, owner = ?4, granted_at = ?5,"
    " expires_at = ?5 + ?6, ttl = ?6, kept = 0",
    // kCountFrom
    "UPDATE lock SET granted_at = ?2, expires_at = ?2 + ttl WHERE name = ?1",
    // kWaitersOf
    "SELECT request, owner, wake, alive_until FROM waiter WHERE lock = ?1 ORDER BY place LIMIT ?2",
    // kEnqueue
    "INSERT INTO waiter(lock, request, owner, wake, alive_until) VALUES(?1, ?2, ?3, ?4, ?5)"
    " ON CONFLICT(request) DO UPDATE SET alive_until = ?5, wake = ?4",
    // kLook
    "SELECT l.owner, l.kept, l.expires_at, w.alive_until,"
    " w.place IN (SELECT place FROM waiter WHERE lock = ?1 ORDER BY place LIMIT 2)"
    " FROM lock l JOIN waiter w ON w.request = ?2"
    " WHERE l.name = ?1 AND l.expires_at > ?3 AND l.expires_at - ?3 <= l.ttl",
    // kCall
    "UPDATE waiter SET alive_until = ?2 WHERE request = ?1",
    // kAddresses
    "SELECT DISTINCT wake FROM waiter WHERE lock = ?1 AND alive_until = 0",
    // kMiss
    "UPDATE waiter SET alive_until = ?3 WHERE lock = ?1 AND wake = ?2 AND alive_until = 0",
    // kDropWaiter
    "DELETE FROM waiter WHERE request = ?1",
    // kDropWaitersAt
    "DELETE FROM waiter WHERE wake = ?1",
    // kRenew
    "UPDATE lock SET expires_at = ?3 + ?4, ttl = ?4"
    " WHERE name = ?1 AND request = ?2 AND expires_at > ?3 AND kept = 0",
    // kRelease
    "UPDATE lock SET request = NULL, expires_at = 0, last_released = ?2"
    " WHERE name = ?1 AND request = ?2 AND expires_at > ?3 AND kept = 0",
    // kKeep
    "UPDATE lock SET kept = 1, expires_at = ?3 + ?4, ttl = ?4, last_released = ?2"
    " WHERE name = ?1 AND request = ?2 AND expires_at > ?3 AND kept = 0",
    // kWasReleased
    "SELECT 1 FROM lock WHERE name = ?1 AND last_released = ?2",
    // kForce
    "UPDATE lock SET request = NULL, expires_at = 0"
    " WHERE name = ?1 AND request = ?2 AND expires_at > ?3",
    // kLock
    "SELECT ?1, token, request, owner, granted_at, expires_at, kept, id, ttl, floor"
    " FROM store LEFT JOIN lock ON name = ?1",
    // kLocks
    "SELECT name, token, request, owner, granted_at, expires_at, kept, id, ttl, floor"
    " FROM lock, store"
    " UNION ALL SELECT DISTINCT lock, NULL, NULL, '', 0, 0, 0, id, 0, floor FROM waiter, store"
    " WHERE lock NOT IN (SELECT name FROM lock) ORDER BY 1",
    // kRecall
    "SELECT parameters, result, on_disk FROM once WHERE lock = ?1 AND key = ?2",
    // kRecord
    "INSERT INTO once(lock, key, parameters, result) VALUES(?1, ?2, ?3, ?4)"
    " ON CONFLICT DO NOTHING",
    // kIsOnDisk
    "UPDATE once SET on_disk = 1 WHERE lock = ?1 AND key = ?2",
    // kHolds
    "SELECT 1 FROM lock WHERE name = ?1 AND request = ?2 AND expires_at > ?3 AND kept = 0",
};

std::int64_t nanos(Millis length) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(length).count();
}

Millis millis(std::int64_t nanoseconds) {
  return std::chrono::ceil<Millis>(std::chrono::nanoseconds(nanoseconds));
}

Result<std::int64_t> number(Connection connection, std::string_view sql) {
  auto statement = TRY(connection.prepare(sql));
  auto row = TRY(statement.step());
  return row ? statement.integer(0) : 0;
}

Error damaged(const std::string& path) {
  return Error(ErrorCode::unavailable,
               path + " is damaged: it has tables of a lock store, but not their contents");
}

Error used_up() {
  return Error(ErrorCode::unavailable, "the token numbers of this store are used up");
}

// Also of a checkpoint that was given up: see on_busy_checkpoint.
bool is_busy(sqlite3* db) {
  const int code = sqlite3_errcode(db) & 0xff;
  return code == SQLITE_BUSY || code == SQLITE_INTERRUPT;
}

Error log_in_use() {
  return Error(ErrorCode::unavailable,
               "the log of the store could not be begun anew: another process is reading or "
               "writing and did not finish in time");
}

// What another program wrote into the file may go to a terminal.
std::string readable_label(std::string_view text) {
  return OwnerLabel::parse(text) ? std::string(text) : "(an unreadable label)";
}

// Others can see what was committed, though it may not be on disk.
Status after_commit(Status settled) {
  if (!settled) settled.error().code = ErrorCode::outcome_unknown;
  return settled;
}

std::string holder_label(std::string_view owner, bool kept) {
  return readable_label(owner) + (kept ? " (which has finished; the lock is kept)" : "");
}

}  // namespace

bool is_lock_store(Connection connection) {
  return number(connection, "PRAGMA main.application_id") == kApplicationId;
}

struct LockTable::Found {
  StoreId store;
  std::int64_t floor;
  std::int64_t ceiling;
  std::int64_t token;  // 0: never granted
  std::optional<RequestId> holder;
  std::string owner;
  std::int64_t expires_at;
  bool kept;
  bool has_waiters;
  std::int64_t ttl;
};

// ---- opening -------------------------------------------------------------------------------

LockTable::LockTable(Options options, Database database)
    : options_(std::move(options)),
      wake_folder_(options_.path, *options_.clock),
      database_(std::move(database)) {
  sqlite3_busy_handler(database_.handle(), on_busy, this);
  sqlite3_wal_hook(database_.handle(), on_commit, this);
}

LockTable::~LockTable() {
  if (wal_frames_ <= options_.frames_at_close) return;
  // The log is cut because how far it was copied is known only while somebody has the file open:
  // short programs, one after the other, would all read it from its beginning.
  copy_long_log(SQLITE_CHECKPOINT_TRUNCATE);
}

Result<std::unique_ptr<LockTable>> LockTable::open(Options options, CallContext context) {
  auto database = TRY(Database::open(options.path, options.create, options.vfs));
  std::unique_ptr<LockTable> table(new LockTable(std::move(options), std::move(database)));
  table->be_patient({std::move(context)});
  auto ok = table->prepare_file();
  if (!ok) {
    ok.error().message = "cannot use " + table->options_.path + ": " + ok.error().message;
    return fail(std::move(ok.error()));
  }
  return table;
}

Status LockTable::prepare_file() {
  const Connection db = database_.connection();
  // Closing the last connection would else sync the whole log, at every end of a short program.
  sqlite3_db_config(db.handle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  int on = 1;
  sqlite3_file_control(db.handle(), nullptr, SQLITE_FCNTL_PERSIST_WAL, &on);

  TRY(number(db, "PRAGMA application_id"));
  if (!is_lock_store(db)) {
    if (auto ok = check_empty(); !ok && !is_lock_store(db)) return ok;
  }
  TRY(use_log());
  if (!is_lock_store(db)) {
    TRY(create_schema());
  }
  const auto format = TRY(number(db, "PRAGMA user_version"));
  if (format != kFormat) {
    return fail(ErrorCode::unsupported, "it has format " + std::to_string(format) +
                                            ", and this program knows only format " +
                                            std::to_string(kFormat));
  }
  TRY(db.exec("PRAGMA synchronous = NORMAL; PRAGMA journal_size_limit = 8388608"));
  return enter_boot();
}

// Nothing is changed in a file that is somebody else's.
Status LockTable::check_empty() const {
  const Connection db = database_.connection();
  const auto application = TRY(number(db, "PRAGMA application_id"));
  const auto tables = TRY(number(db, "SELECT count(*) FROM sqlite_schema"));
  if (tables == 0 && application == 0) return {};
  return fail(ErrorCode::invalid,
              "it is a database of another program; give the locks a file of their own");
}

// Without its log a file keeps no promise. SQLite tells the mode before it has stored it, and does
// not wait here as it does elsewhere, although two processes may make the file at once.
Status LockTable::use_log() {
  auto mode = TRY(database_.connection().prepare("PRAGMA journal_mode = WAL"));
  for (int attempts = 0;; ++attempts) {
    auto row = mode.step();
    const bool is_wal = row && *row && mode.text(0) == "wal";
    if (row && *row) row = mode.step();
    const bool again = !row && worth_waiting(attempts);
    mode.reset();
    if (again) continue;
    if (!row) return fail(std::move(row.error()));
    if (is_wal) return {};
    return fail(ErrorCode::unsupported, "this file system cannot hold a WAL database");
  }
}

Status LockTable::create_schema() {
  const Connection db = database_.connection();
  auto transaction = TRY(Transaction::begin(db));
  if (is_lock_store(database_.connection())) return {};  // another process was first
  TRY(check_empty());
  TRY(db.exec(kSchema));
  const std::string pragmas = "PRAGMA application_id = " + std::to_string(kApplicationId) +
                              "; PRAGMA user_version = " + std::to_string(kFormat);
  TRY(db.exec(pragmas.c_str()));
  auto insert =
      TRY(db.prepare("INSERT INTO store(one, id, machine, boot, floor, ceiling, reserved)"
                     " VALUES(1, ?1, ?2, ?3, 0, 0, 0)"));
  const StoreId id = StoreId::random(*options_.random);
  insert.bind(1, id.bytes()).bind(2, options_.machine.machine).bind(3, options_.machine.boot);
  TRY(insert.run());
  return transaction.commit();
}

// The first process after a reboot ends everything of the boot before. Its numbers begin above all
// that were reserved, and none of them is reserved yet: who grants the first makes this durable.
Status LockTable::enter_boot() {
  const Connection db = database_.connection();
  auto read = TRY(db.prepare("SELECT machine, boot FROM store"));
  auto row = TRY(read.step());
  if (!row) return fail(damaged(options_.path));
  const std::string machine(read.text(0));
  const std::string boot(read.text(1));
  read.reset();
  if (boot == options_.machine.boot) return {};
  if (machine.empty() || machine != options_.machine.machine) {
    return fail(ErrorCode::unsupported,
                "it was last used by another machine (" + readable_label(machine) +
                    "), and SQLite leases hold on one machine only. Use a file on a local disk; "
                    "if the file was moved here for good, keep LEASEHOLD_MACHINE_ID set to that "
                    "machine's id");
  }
  auto transaction = TRY(Transaction::begin(db));
  auto update = TRY(db.prepare(
      "UPDATE store SET boot = ?1, floor = max(reserved, ceiling), ceiling = 0 WHERE boot = ?2"));
  TRY(update.bind(1, options_.machine.boot).bind(2, boot).run());
  if (db.changes() == 0) return {};  // another process was first
  // The index: for a file that was made without it. Then a dead process costs more, and no less is
  // right.
  TRY(
      db.exec("UPDATE lock SET request = NULL, expires_at = 0; DELETE FROM waiter;"
              "CREATE INDEX IF NOT EXISTS waiter_by_wake ON waiter(wake)"));
  return transaction.commit();
}

bool LockTable::may_wait() const {
  const CallContext& patience = patience_.context;
  return !hurried_ && !patience.stop.stop_requested() && BootClock::now() < patience.deadline;
}

Pause LockTable::next_pause(int attempts, int most_doublings) const {
  const std::int64_t step = 20LL << std::min(attempts, most_doublings);
  const auto jitter = static_cast<std::int64_t>(options_.random->next() % 1024);
  return Pause(step / 2 + step * jitter / 1024);
}

bool LockTable::worth_waiting(int attempts) {
  return is_busy(database_.handle()) && on_busy(this, attempts) != 0;
}

// Who holds up new numbers holds up nothing else. A reader may stay for minutes. If it is false,
// this object may be gone.
bool LockTable::worth_stepping_aside(int attempts) {
  if (!is_busy(database_.handle()) || !may_wait()) return false;
  const Pause pause = next_pause(attempts, kDoublingsAside);
  if (!patience_.step_aside) {
    std::this_thread::sleep_for(pause);
    return true;
  }
  const Patience mine = patience_;  // others have their own
  if (!mine.step_aside(pause)) return false;
  patience_ = mine;
  return true;
}

// A transaction of another process takes some tens of microseconds, rarely a sync of the disk.
int LockTable::on_busy(void* self, int attempts) {
  const auto& table = *static_cast<LockTable*>(self);
  if (!table.may_wait()) return 0;
  std::this_thread::sleep_for(table.next_pause(attempts, kDoublingsInLine));
  return 1;
}

// SQLite asks this with the right to write in its hand, so that a reader who stays would hold up
// every renewal. When told to wait no longer, it copies what it can; the interrupt comes before
// that.
int LockTable::on_busy_checkpoint(void* self, int attempts) {
  const auto& table = *static_cast<LockTable*>(self);
  if (attempts < kAttemptsToCopy) {
    std::this_thread::sleep_for(table.next_pause(attempts, kDoublingsInLine));
    return 1;
  }
  sqlite3_interrupt(table.database_.handle());
  return 0;
}

// Copies the whole log into the database and syncs that, or nothing: SQLite does not sync a part,
// but the next process need not copy it again. If a sync then failed, the part would be lost and
// nobody would write it any more. So no mode will do that works beside a writer or a reader of
// earlier.
int LockTable::checkpoint(int mode) {
  sqlite3_busy_handler(database_.handle(), on_busy_checkpoint, this);
  const int code = sqlite3_wal_checkpoint_v2(database_.handle(), nullptr, mode, nullptr, nullptr);
  sqlite3_busy_handler(database_.handle(), on_busy, this);
  if ((code & 0xff) == SQLITE_IOERR) disk_failed_ = true;
  return code;
}

// Nobody can write while the log is copied; so most of it is synced before.
void LockTable::copy_long_log(int mode) {
  if (database_.connection().sync_log()) {
    checkpoint(mode);
  } else {
    disk_failed_ = true;
  }
}

int LockTable::on_commit(void* self, sqlite3*, const char*, int frames) {
  auto& table = *static_cast<LockTable*>(self);
  const bool new_log = frames < table.wal_frames_;
  table.wal_frames_ = frames;
  const int limit = table.options_.checkpoint_frames;
  if (new_log || table.copy_at_ == 0) table.copy_at_ = limit;
  if (frames < table.copy_at_) return SQLITE_OK;
  table.copy_at_ = frames + limit / 8;  // unless a new log is begun, which a reader may hold up
  table.copy_long_log(SQLITE_CHECKPOINT_FULL);
  return SQLITE_OK;
}

Result<Statement*> LockTable::sql(Sql which) {
  auto& slot = statements_[which];
  if (!slot) {
    auto prepared = TRY(database_.connection().prepare(kStatements[which]));
    slot = std::move(prepared);
  }
  return &*slot;
}

Result<Transaction> LockTable::begin() {
  auto begin = TRY(sql(kBegin));
  auto commit = TRY(sql(kCommit));
  return Transaction::begin(database_.connection(), *begin, *commit);
}

// ---- acquire -------------------------------------------------------------------------------

Result<AcquireReply> LockTable::acquire(const AcquireCall& call, const std::string& wake_address) {
  if (own_waiters_.has(call.request)) {
    // Most asks of a waiter find that nothing has changed. To look keeps nobody from writing.
    auto place = TRY(look(call));
    if (place && place->signs_elsewhere) return std::move(place->reply);
  }
  for (int attempts = 0;; ++attempts) {
    auto reply = try_acquire(call, wake_address);
    if (!reply) {
      own_waiters_.remove(call.request);  // who has a place still will ask again
      return fail(std::move(reply.error()));
    }
    if (*reply) return std::move(**reply);
    auto raised = raise_ceiling(call.lock);
    if (raised) continue;
    // Who is in the way may be raising it.
    if (!worth_stepping_aside(attempts)) return fail(std::move(raised.error()));
  }
}

// Makes durable what was committed before, and then says so by `testimony`, in a commit of its own.
//
// That the log was synced would prove little: after a failed sync in any process it may have a hole
// that shows only after a power cut, and then hides what comes behind it. So all of it is written
// again, into the database. The testimony begins a new log, whose beginning SQLite syncs before it
// writes anything behind it: from then on the old one counts no more.
Status LockTable::settle(Statement& testimony) {
  if (disk_failed_) {
    // The kernel may now claim success for data that never reached the disk.
    return fail(ErrorCode::unavailable,
                "a sync of the disk has failed; nothing that must be on it is promised until the "
                "program is started again");
  }
  if (checkpoint(SQLITE_CHECKPOINT_RESTART) != SQLITE_OK) {
    if (is_busy(database_.handle())) return fail(log_in_use());
    return fail(last_error(database_.handle(), "the log of the store could not be begun anew"));
  }
  auto said = testimony.run();
  if (!said) disk_failed_ = (sqlite3_errcode(database_.handle()) & 0xff) == SQLITE_IOERR;
  return said;
}

// Until `attempt` has settled something. It keeps no statement from one to the next: other threads
// come between.
Status LockTable::settle_patiently(const std::function<Status()>& attempt) {
  for (int attempts = 0;; ++attempts) {
    auto settled = attempt();
    if (settled || !worth_stepping_aside(attempts)) return settled;
  }
}

// No number is left below the ceiling. Those that are reserved may be granted when that is on disk.
Status LockTable::raise_ceiling(const LockName& lock) {
  const auto reserved = TRY(reserve(lock));
  if (!reserved) return {};
  auto testimony = TRY(reserved_on_disk(*reserved));
  return settle(testimony);
}

// Up to which number; some are above the lock's counter. Nothing if somebody else was first.
Result<std::optional<std::int64_t>> LockTable::reserve(const LockName& lock) {
  auto transaction = TRY(begin());
  const auto found = TRY(find(lock));
  const Connection db = database_.connection();
  const std::int64_t used = std::max(found.token, found.floor);
  if (used < found.ceiling) return std::nullopt;
  auto reserved = TRY(number(db, "SELECT reserved FROM store"));
  constexpr std::int64_t last = std::numeric_limits<std::int64_t>::max();
  if (reserved > used) return reserved;  // by somebody who died, or by an earlier attempt
  if (used > last - options_.token_block) return fail(used_up());
  reserved = used + options_.token_block;
  auto update = TRY(db.prepare("UPDATE store SET reserved = ?1"));
  TRY(update.bind(1, reserved).run());
  if (auto ok = transaction.commit(); !ok) {
    ok.error().code = ErrorCode::unavailable;  // of the reservation; nothing was granted
    return fail(std::move(ok.error()));
  }
  return reserved;
}

// Says nothing if somebody has reserved more, or begun a new lineage, since `reserved` was read.
Result<Statement> LockTable::reserved_on_disk(std::int64_t reserved) {
  auto update = database_.connection().prepare(
      "UPDATE store SET ceiling = ?1 WHERE reserved = ?1 AND ceiling < ?1");
  if (update) update->bind(1, reserved);
  return update;
}

Result<std::optional<AcquireReply>> LockTable::try_acquire(const AcquireCall& call,
                                                           const std::string& wake_address) {
  auto transaction = TRY(begin());
  auto found = TRY(find(call.lock));

  const std::int64_t at = now();
  const bool held = found.holder && found.expires_at > at;
  if (held && found.holder == call.request && !found.kept) {
    return Granted{TokenNumber::of(found.token).value(), found.store, call.ttl.length(),
                   /*fresh=*/false};
  }
  if (held && found.expires_at - at > found.ttl) {
    TRY(count_from(at, call.lock, found));
  }
  std::optional<std::string> ahead;
  if (held) {
    ahead = holder_label(found.owner, found.kept);
  } else if (found.has_waiters) {
    auto first = TRY(first_living_waiter(call.lock, call.request));
    if (first) ahead = std::move(first->owner);
  }

  std::optional<AcquireReply> reply;
  if (!ahead) {
    if (std::max(found.token, found.floor) >= found.ceiling) return std::nullopt;
    auto granted = TRY(grant(call, found));
    reply = granted;
  } else if (call.queue) {
    TRY(enqueue(call, wake_address));
    auto place = TRY(look(call));
    // A free lock waits for somebody who was called just now.
    reply = place ? std::move(place->reply) : Queued{kWatchEvery, std::move(*ahead)};
  } else {
    reply = Busy{std::move(*ahead)};
  }
  TRY(transaction.commit());
  return reply;
}

Result<LockTable::Found> LockTable::find(const LockName& lock) {
  auto statement = TRY(sql(kFind));
  const Use row(*statement);
  row->bind(1, lock.str());
  const auto there = TRY(row->step());
  const auto store = there ? row->id<StoreId>(0) : std::nullopt;
  const bool counts = row->integer(1) >= 0 && row->integer(2) >= 0 && row->integer(3) >= 0;
  if (!store || !counts) return fail(damaged(options_.path));
  return Found{.store = *store,
               .floor = row->integer(1),
               .ceiling = row->integer(2),
               .token = row->integer(3),
               .holder = row->id<RequestId>(4),
               .owner = std::string(row->text(5)),
               .expires_at = row->integer(6),
               .kept = row->integer(7) != 0,
               .has_waiters = row->integer(8) != 0,
               .ttl = row->integer(9)};
}

// A grant that was made or renewed later than now is of a time that this machine does not know: it
// was restored from a snapshot in the same boot, and the file was not. A holder that is in the
// snapshot has at most its TTL left.
Status LockTable::count_from(std::int64_t at, const LockName& lock, Found& found) {
  auto statement = TRY(sql(kCountFrom));
  found.expires_at = at + found.ttl;
  return statement->bind(1, lock.str()).bind(2, at).run();
}

Result<Granted> LockTable::grant(const AcquireCall& call, const Found& found) {
  const std::int64_t token = std::max(found.token, found.floor) + 1;
  const std::int64_t at = now();
  auto statement = TRY(sql(kGrant));
  statement->bind(1, call.lock.str()).bind(2, token).bind(3, call.request.bytes());
  statement->bind(4, call.owner.str()).bind(5, at).bind(6, nanos(call.ttl.length()));
  TRY(statement->run());
  own_waiters_.remove(call.request);
  if (found.has_waiters) {
    TRY(drop_waiter(call.request));
  }
  return Granted{TokenNumber::of(token).value(), found.store, call.ttl.length(), /*fresh=*/true};
}

// ---- the queue -----------------------------------------------------------------------------

Result<std::vector<LockTable::Waiter>> LockTable::waiters_of(const LockName& lock,
                                                             std::int64_t limit) {
  auto statement = TRY(sql(kWaitersOf));
  const Use row(*statement);
  row->bind(1, lock.str()).bind(2, limit);
  std::vector<Waiter> waiters;
  for (;;) {
    const auto there = TRY(row->step());
    if (!there) return waiters;
    const auto request = row->id<RequestId>(0);
    if (!request) return fail(damaged(options_.path));
    waiters.push_back(
        {*request, std::string(row->text(1)), std::string(row->text(2)), row->integer(3)});
  }
}

// By the last sign of its process. One of a time to come says nothing: see count_from.
bool LockTable::gave_sign(const Waiter& waiter, bool if_unknown) {
  const auto sign = wake_folder_.last_sign(waiter.wake);
  const BootTime at = options_.clock->now();
  return sign ? *sign <= at && at < *sign + kWaiterLife : if_unknown;
}

// Nobody says that he will live longer than that; if so, it is of a time to come: see count_from.
bool LockTable::is_alive(const Waiter& waiter, std::int64_t at) {
  const std::int64_t until = std::abs(waiter.alive_until);
  const bool in_time = until > at && until - at <= nanos(kWaiterLife);
  if (waiter.alive_until > kNotCalled) return in_time;
  return gave_sign(waiter, /*if_unknown=*/waiter.alive_until == kNotCalled || in_time);
}

// Tells the waiter that the lock may be free.
LockTable::Life LockTable::wake(const Waiter& waiter) {
  if (wake_folder_.wake(waiter.wake, waiter.request) == WakeFolder::Reach::gone) return Life::dead;
  if (!is_alive(waiter, now())) return Life::silent;
  return waiter.alive_until <= kNotCalled ? Life::idle : Life::coming;
}

// Who is next on a free lock; none if it is `asking` itself. The living one is called, the others
// before it are taken out of the queue.
Result<std::optional<LockTable::Waiter>> LockTable::first_living_waiter(const LockName& lock,
                                                                        const RequestId& asking) {
  for (;;) {
    auto first = TRY(waiters_of(lock, 1));
    if (first.empty() || first.front().request == asking) return std::nullopt;
    Waiter& waiter = first.front();
    const Life life = wake(waiter);
    if (life == Life::idle) {
      TRY(miss_sockets_beside(waiter, lock));
      TRY(give_time(waiter));
    }
    if (may_come(life)) return std::move(waiter);
    TRY(drop_silent(waiter, life == Life::dead));
  }
}

// Where one socket is missing, others may be: their time begins now too, else each dead waiter
// would hold up the lock for as long.
Status LockTable::miss_sockets_beside(const Waiter& waiter, const LockName& lock) {
  if (wake_folder_.last_sign(waiter.wake)) return {};
  auto all = TRY(sql(kAddresses));
  std::vector<std::string> missing;
  {
    const Use row(*all);
    row->bind(1, lock.str());
    for (;;) {
      const auto there = TRY(row->step());
      if (!there) break;
      const std::string address(row->text(0));
      if (!wake_folder_.last_sign(address)) missing.push_back(address);
    }
  }
  auto miss = TRY(sql(kMiss));
  for (const std::string& address : missing) {
    miss->bind(1, lock.str()).bind(2, address).bind(3, -(now() + nanos(kWaiterLife)));
    TRY(miss->run());
  }
  return {};
}

// To come, from now on: its process may live, and yet nobody may ask for it any more.
Status LockTable::give_time(const Waiter& waiter) {
  auto statement = TRY(sql(kCall));
  statement->bind(1, waiter.request.bytes()).bind(2, now() + nanos(kWaiterLife));
  return statement->run();
}

// Takes or keeps a place.
Status LockTable::enqueue(const AcquireCall& call, const std::string& wake_address) {
  auto insert = TRY(sql(kEnqueue));
  insert->bind(1, call.lock.str()).bind(2, call.request.bytes()).bind(3, call.owner.str());
  insert->bind(4, wake_address);
  insert->bind(5, wake_address.empty() ? now() + nanos(kWaiterLife) : kNotCalled);
  own_waiters_.add(call.lock, call.request);
  return insert->run();
}

// From the place of a waiter at a lock that is held; nothing if it has no place, or the lock is
// free.
Result<std::optional<LockTable::Seen>> LockTable::look(const AcquireCall& call) {
  auto statement = TRY(sql(kLook));
  const Use row(*statement);
  const std::int64_t at = now();
  row->bind(1, call.lock.str()).bind(2, call.request.bytes()).bind(3, at);
  const auto there = TRY(row->step());
  if (!there) return std::nullopt;
  const bool signs_elsewhere = row->integer(3) == kNotCalled;
  // The first two look again when the lease runs out: the second in case that the first is dead.
  const bool near = row->integer(4) != 0;
  const Millis until_free = millis(row->integer(2) - at) + Millis(1);
  const Millis recheck =
      signs_elsewhere ? time_to_rest(near || own_waiters_.is_first(call.request)) : kWatchEvery;
  return Seen{Queued{near ? std::min(recheck, until_free) : recheck,
                     holder_label(row->text(0), row->integer(1) != 0)},
              signs_elsewhere};
}

Millis LockTable::time_to_rest(bool on_watch) const {
  const std::size_t asking = on_watch ? own_waiters_.locks() : own_waiters_.size();
  return std::max(on_watch ? kWatchEvery : kAskEvery,
                  kBetweenAsks * static_cast<Millis::rep>(asking));
}

// The places of a process that is dead or gives no sign go together, in every queue.
Status LockTable::drop_silent(const Waiter& waiter, bool dead) {
  const bool alone = !dead && (waiter.wake.empty() || gave_sign(waiter, /*if_unknown=*/false));
  if (alone) {
    auto dropped = drop_waiter(waiter.request);
    return dropped ? Status() : fail(std::move(dropped.error()));
  }
  auto statement = TRY(sql(kDropWaitersAt));
  TRY(statement->bind(1, waiter.wake).run());
  if (dead) wake_folder_.remove(waiter.wake);
  return {};
}

Result<bool> LockTable::drop_waiter(const RequestId& request) {
  own_waiters_.remove(request);
  auto statement = TRY(sql(kDropWaiter));
  TRY(statement->bind(1, request.bytes()).run());
  return database_.connection().changes() == 1;
}

// After the commit that freed the lock: a waiter woken earlier would find it still held. `first`
// was read before that commit; who queues later finds the lock free.
Status LockTable::wake_first(const LockName& lock, std::vector<Waiter> first) {
  while (!first.empty()) {
    const Waiter& waiter = first.front();
    const Life life = wake(waiter);
    if (may_come(life)) return {};
    TRY(drop_silent(waiter, life == Life::dead));
    auto next = TRY(waiters_of(lock, 1));
    first = std::move(next);
  }
  return {};
}

// ---- renew and release ---------------------------------------------------------------------

Result<std::vector<RenewReply>> LockTable::renew(const std::vector<RenewCall>& calls) {
  auto transaction = TRY(begin());
  auto statement = TRY(sql(kRenew));
  std::vector<RenewReply> replies;
  replies.reserve(calls.size());
  const std::int64_t at = now();
  for (const RenewCall& call : calls) {
    statement->bind(1, call.lock.str()).bind(2, call.request.bytes());
    statement->bind(3, at).bind(4, nanos(call.ttl.length()));
    TRY(statement->run());
    const bool alive = database_.connection().changes() == 1;
    replies.push_back(alive ? RenewReply::renewed : RenewReply::gone);
  }
  TRY(transaction.commit());
  return replies;
}

// Runs an UPDATE on (lock, request, now); true if it changed the row.
Result<bool> LockTable::run_on(Sql which, const LockName& lock, const RequestId& request) {
  auto statement = TRY(sql(which));
  statement->bind(1, lock.str()).bind(2, request.bytes()).bind(3, now());
  TRY(statement->run());
  return database_.connection().changes() == 1;
}

Result<ReleaseReply> LockTable::release(const ReleaseCall& call) {
  auto transaction = TRY(begin());
  const Sql how = call.keep_for > Millis(0) ? kKeep : kRelease;
  if (how == kKeep) {
    auto keep = TRY(sql(kKeep));
    keep->bind(4, nanos(call.keep_for));
  }
  auto released = TRY(run_on(how, call.lock, call.request));
  if (!released) {
    auto was_queued = TRY(drop_waiter(call.request));
    auto earlier = sql(kWasReleased);  // a retry whose first answer was lost
    if (!earlier) return fail(std::move(earlier.error()));
    const Use row(**earlier);
    row->bind(1, call.lock.str()).bind(2, call.request.bytes());
    const auto was_released = TRY(row->step());
    released = was_queued || was_released;
  }
  auto first = TRY(waiters_of(call.lock, 1));
  TRY(transaction.commit());
  // The release is done; a waiter that is not reached looks for itself soon.
  if (how == kRelease) (void)wake_first(call.lock, std::move(first));
  return released ? ReleaseReply::released : ReleaseReply::not_held;
}

Result<ReleaseReply> LockTable::force_release(const LockName& lock, const RequestId& seen) {
  auto transaction = TRY(begin());
  const auto freed = TRY(run_on(kForce, lock, seen));
  auto first = TRY(waiters_of(lock, 1));
  TRY(transaction.commit());
  if (freed) (void)wake_first(lock, std::move(first));
  return freed ? ReleaseReply::released : ReleaseReply::not_held;
}

// ---- looking -------------------------------------------------------------------------------

Result<LockStatus> LockTable::read_status(Statement& row) {
  auto name = LockName::parse(row.text(0));
  if (!name) return fail(damaged(options_.path));
  LockStatus status{.lock = std::move(*name),
                    .store = row.id<StoreId>(7),
                    .last_token = {},
                    .holder = {},
                    .waiters = {}};
  const auto token = TokenNumber::of(row.integer(1));
  if (token) status.last_token = *token;
  status.counted_to = std::max(row.integer(1), row.integer(9));
  const auto request = row.id<RequestId>(2);
  const std::int64_t at = now();
  if (token && request && row.integer(5) > at) {
    status.holder =
        LockStatus::Holder{.request = *request,
                           .token = *token,
                           .owner = readable_label(row.text(3)),
                           .held_for = std::max(millis(at - row.integer(4)), Millis(0)),
                           .remaining = millis(std::min(row.integer(5) - at, row.integer(8))),
                           .kept = row.integer(6) != 0};
  }
  auto waiters = TRY(waiters_of(status.lock, -1));
  for (Waiter& waiter : waiters) {
    if (is_alive(waiter, at)) {
      status.waiters.push_back({waiter.request, std::move(waiter.owner)});
    }
  }
  return status;
}

Result<LockStatus> LockTable::inspect(const LockName& lock) {
  auto statement = TRY(sql(kLock));
  const Use row(*statement);
  row->bind(1, lock.str());
  const auto there = TRY(row->step());
  if (!there) return fail(damaged(options_.path));
  return read_status(*row);
}

Result<std::vector<LockStatus>> LockTable::list() {
  auto statement = TRY(sql(kLocks));
  const Use row(*statement);
  std::vector<LockStatus> locks;
  for (;;) {
    const auto there = TRY(row->step());
    if (!there) return locks;
    auto status = TRY(read_status(*row));
    locks.push_back(std::move(status));
  }
}

// Nothing is granted in the new lineage before it is on disk.
Result<StoreId> LockTable::rotate_store_id() {
  const StoreId id = StoreId::random(*options_.random);
  const auto reserved = TRY(begin_lineage(id));
  const auto settled = settle_patiently([&]() -> Status {
    auto testimony = TRY(reserved_on_disk(reserved));
    return settle(testimony);
  });
  TRY(after_commit(settled));
  return id;
}

// Up to which number is reserved then.
Result<std::int64_t> LockTable::begin_lineage(const StoreId& id) {
  const Connection db = database_.connection();
  auto transaction = TRY(Transaction::begin(db));
  auto update = TRY(db.prepare(
      "UPDATE store SET id = ?1, ceiling = 0, reserved = min(reserved, 9223372036854775806) + 1"));
  TRY(update.bind(1, id.bytes()).run());
  auto reserved = number(db, "SELECT reserved FROM store");
  if (!reserved) return reserved;
  TRY(transaction.commit());
  return reserved;
}

// ---- once ----------------------------------------------------------------------------------

Result<std::optional<OnceRecord>> LockTable::recall(const LockName& lock, const std::string& key) {
  auto statement = TRY(sql(kRecall));
  std::optional<OnceRecord> found;
  {
    const Use row(*statement);
    row->bind(1, lock.str()).bind(2, key);
    const auto there = TRY(row->step());
    if (!there) return std::nullopt;
    found = OnceRecord{std::string(row->text(0)), std::string(row->text(1))};
    if (row->integer(2) > 0) return found;
  }
  // Who stored it may have died before it was on disk.
  TRY(settle_record(lock, key));
  return found;
}

Status LockTable::settle_record(const LockName& lock, const std::string& key) {
  return settle_patiently([&]() -> Status {
    auto testimony = TRY(sql(kIsOnDisk));
    return settle(testimony->bind(1, lock.str()).bind(2, key));
  });
}

Status LockTable::record(const LockName& lock, const RequestId& request, const std::string& key,
                         const OnceRecord& what) {
  TRY(store_record(lock, request, key, what));
  return after_commit(settle_record(lock, key));
}

Status LockTable::store_record(const LockName& lock, const RequestId& request,
                               const std::string& key, const OnceRecord& what) {
  auto transaction = TRY(begin());
  auto holds = TRY(sql(kHolds));
  {
    const Use row(*holds);
    row->bind(1, lock.str()).bind(2, request.bytes()).bind(3, now());
    const auto held = TRY(row->step());
    if (!held) return fail(not_recorded(lock));
  }
  auto insert = TRY(sql(kRecord));
  insert->bind(1, lock.str()).bind(2, key).bind(3, what.parameters).bind(4, what.result);
  TRY(insert->run());
  return transaction.commit();
}

Result<std::vector<std::string>> LockTable::list_keys(const LockName& lock) {
  auto row =
      TRY(database_.connection().prepare("SELECT key FROM once WHERE lock = ?1 ORDER BY key"));
  row.bind(1, lock.str());
  std::vector<std::string> keys;
  while (TRY(row.step())) keys.emplace_back(row.text(0));
  return keys;
}

Result<bool> LockTable::forget(const LockName& lock, const std::string& key) {
  const Connection db = database_.connection();
  auto remove = TRY(db.prepare("DELETE FROM once WHERE lock = ?1 AND key = ?2"));
  TRY(remove.bind(1, lock.str()).bind(2, key).run());
  const bool was_there = db.changes() > 0;
  TRY(after_commit(db.sync_log()));
  return was_there;
}

}  // namespace leasehold::sqlite
