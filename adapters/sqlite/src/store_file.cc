#include "store_file.h"

#include <algorithm>
#include <thread>

#include "kit/text/other_version.h"
#include "kit/try.h"

namespace leasehold::sqlite {
namespace {

// How often a pause is doubled while another process writes (1 ms), and while the log cannot be
// started over (20 ms). How often SQLite is to try while it keeps others from writing.
constexpr int kDoublingsInLine = 6;
constexpr int kDoublingsAside = 10;
constexpr int kAttemptsToCopy = 4;

// Every change of a page is a copy of it in the log, and most transactions change a row on each of
// two pages. Ignored by a file that has its size already.
constexpr const char* kPageSize = "PRAGMA page_size = 1024";

constexpr const char* kSchema = R"sql(
CREATE TABLE store(
  one INTEGER PRIMARY KEY CHECK (one = 1),
  id BLOB NOT NULL,
  machine TEXT NOT NULL,
  boot TEXT NOT NULL,
  last INTEGER NOT NULL,
  ceiling INTEGER NOT NULL,
  reserved INTEGER NOT NULL,
  swept_to TEXT NOT NULL,
  holders_swept_to TEXT NOT NULL);
CREATE TABLE lock(
  name TEXT PRIMARY KEY,
  token INTEGER NOT NULL,
  store BLOB NOT NULL,
  request BLOB,
  owner TEXT NOT NULL,
  granted_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  ttl INTEGER NOT NULL,
  kept INTEGER NOT NULL,
  note TEXT NOT NULL,
  last_released BLOB) WITHOUT ROWID;
CREATE TABLE holder(
  request BLOB PRIMARY KEY,
  lock TEXT NOT NULL,
  mode INTEGER NOT NULL,
  slot INTEGER NOT NULL,
  token INTEGER NOT NULL,
  store BLOB NOT NULL,
  owner TEXT NOT NULL,
  note TEXT NOT NULL,
  granted_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  ttl INTEGER NOT NULL,
  kept INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX holder_by_lock ON holder(lock, slot);
CREATE TABLE setting(
  lock TEXT PRIMARY KEY,
  permits INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE waiter(
  place INTEGER PRIMARY KEY,
  lock TEXT NOT NULL,
  request BLOB NOT NULL UNIQUE,
  owner TEXT NOT NULL,
  mode INTEGER NOT NULL,
  note TEXT NOT NULL,
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

// Also of a checkpoint that was given up: see on_busy_checkpoint.
bool is_busy(sqlite3* db) {
  const int code = sqlite3_errcode(db) & 0xff;
  return code == SQLITE_BUSY || code == SQLITE_INTERRUPT;
}

Error log_in_use() {
  return Error(ErrorCode::unavailable,
               "the log of the store could not be started over: another process is reading or "
               "writing and did not finish in time");
}

}  // namespace

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

Status after_commit(Status settled) {
  if (!settled) settled.error().code = ErrorCode::outcome_unknown;
  return settled;
}

bool is_lock_store(Connection connection) {
  return number(connection, "PRAGMA main.application_id") == kApplicationId;
}

Result<Statement*> Prepared::in(Connection connection) {
  if (!statement_) statement_ = TRY(connection.prepare(sql_));
  return &*statement_;
}

Error StoreFile::damaged() const {
  return Error(ErrorCode::unavailable, options_.path +
                                           " is damaged: it has tables of a lock store, but not "
                                           "their contents");
}

Result<Transaction> StoreFile::begin() {
  auto begin = TRY(begin_.in(connection()));
  auto commit = TRY(commit_.in(connection()));
  return Transaction::begin(connection(), *begin, *commit);
}

// ---- opening -------------------------------------------------------------------------------

StoreFile::StoreFile(Options options, Database database)
    : options_(std::move(options)), database_(std::move(database)) {
  sqlite3_busy_handler(database_.handle(), on_busy, this);
  sqlite3_wal_hook(database_.handle(), on_commit, this);
}

StoreFile::~StoreFile() {
  if (wal_frames_ <= options_.frames_at_close) return;
  // The log is cut because how far it was copied is known only while somebody has the file open:
  // short programs, one after the other, would all read it from its beginning.
  copy_long_log(SQLITE_CHECKPOINT_TRUNCATE);
}

Result<std::unique_ptr<StoreFile>> StoreFile::open(Options options, CallContext context) {
  auto database = TRY(Database::open(options.path, options.create, options.vfs));
  std::unique_ptr<StoreFile> file(new StoreFile(std::move(options), std::move(database)));
  file->be_patient({std::move(context)});
  auto ok = file->prepare_file();
  if (!ok) {
    ok.error().message = "cannot use " + file->options_.path + ": " + ok.error().message;
    return fail(std::move(ok.error()));
  }
  return file;
}

Status StoreFile::prepare_file() {
  const Connection db = connection();
  // Closing the last connection would else sync the whole log, at every end of a short program.
  sqlite3_db_config(db.handle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  int on = 1;
  sqlite3_file_control(db.handle(), nullptr, SQLITE_FCNTL_PERSIST_WAL, &on);

  TRY(number(db, "PRAGMA application_id"));
  if (!is_lock_store(db)) {
    if (auto ok = check_empty(); !ok && !is_lock_store(db)) return ok;
  }
  TRY(db.exec(kPageSize));
  TRY(use_log());
  if (!is_lock_store(db)) {
    TRY(create_schema());
  }
  const auto format = TRY(number(db, "PRAGMA user_version"));
  if (format != kFormat) {
    return fail(ErrorCode::unsupported,
                "it has format " + std::to_string(format) +
                    ", and this program knows only format " + std::to_string(kFormat) +
                    kit::remedy_for_version(format, kFormat,
                                            "stop all programs that use it, and begin with a new "
                                            "file"));
  }
  TRY(db.exec("PRAGMA synchronous = NORMAL; PRAGMA journal_size_limit = 8388608"));
  return enter_boot();
}

// Nothing is changed in a file that is somebody else's.
Status StoreFile::check_empty() const {
  const Connection db = connection();
  const auto application = TRY(number(db, "PRAGMA application_id"));
  const auto tables = TRY(number(db, "SELECT count(*) FROM sqlite_schema"));
  if (tables == 0 && application == 0) return {};
  return fail(ErrorCode::invalid,
              "it is a database of another program; give the locks a file of their own");
}

// Without its log a file keeps no promise. SQLite tells the mode before it has stored it, and does
// not wait here as it does elsewhere, although two processes may make the file at once.
Status StoreFile::use_log() {
  auto mode = TRY(connection().prepare("PRAGMA journal_mode = WAL"));
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

Status StoreFile::create_schema() {
  const Connection db = connection();
  auto transaction = TRY(Transaction::begin(db));
  if (is_lock_store(connection())) return {};  // another process was first
  TRY(check_empty());
  TRY(db.exec(kSchema));
  const std::string pragmas = "PRAGMA application_id = " + std::to_string(kApplicationId) +
                              "; PRAGMA user_version = " + std::to_string(kFormat);
  TRY(db.exec(pragmas.c_str()));
  auto insert =
      TRY(db.prepare("INSERT INTO store(one, id, machine, boot, last, ceiling, reserved, swept_to,"
                     " holders_swept_to)"
                     " VALUES(1, ?1, ?2, ?3, 0, 0, 0, '', '')"));
  const StoreId id = StoreId::random(*options_.random);
  insert.bind(1, id.bytes()).bind(2, options_.machine.machine).bind(3, options_.machine.boot);
  TRY(insert.run());
  return transaction.commit();
}

// The first process after a reboot ends everything of the boot before. Its numbers begin above all
// that were reserved, and none of them is reserved yet: who grants the first makes this durable.
Status StoreFile::enter_boot() {
  const Connection db = connection();
  auto read = TRY(db.prepare("SELECT machine, boot FROM store"));
  auto row = TRY(read.step());
  if (!row) return fail(damaged());
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
      "UPDATE store SET boot = ?1, last = max(reserved, ceiling), ceiling = 0 WHERE boot = ?2"));
  TRY(update.bind(1, options_.machine.boot).bind(2, boot).run());
  if (db.changes() == 0) return {};  // another process was first
  TRY(db.exec("DELETE FROM lock; DELETE FROM holder; DELETE FROM waiter"));
  return transaction.commit();
}

// ---- waiting for others ----------------------------------------------------------------------

bool StoreFile::may_wait() const {
  const CallContext& patience = patience_.context;
  return !hurried_ && !patience.stop.stop_requested() && BootClock::now() < patience.deadline;
}

Pause StoreFile::next_pause(int attempts, int most_doublings) const {
  const std::int64_t step = 20LL << std::min(attempts, most_doublings);
  const auto jitter = static_cast<std::int64_t>(options_.random->next() % 1024);
  return Pause(step / 2 + step * jitter / 1024);
}

bool StoreFile::worth_waiting(int attempts) {
  return is_busy(database_.handle()) && on_busy(this, attempts) != 0;
}

// Who holds up new numbers holds up nothing else. A reader may stay for minutes.
bool StoreFile::worth_stepping_aside(int attempts) {
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
int StoreFile::on_busy(void* self, int attempts) {
  const auto& file = *static_cast<StoreFile*>(self);
  if (!file.may_wait()) return 0;
  std::this_thread::sleep_for(file.next_pause(attempts, kDoublingsInLine));
  return 1;
}

// SQLite asks this with the right to write in its hand, so that a reader who stays would hold up
// every renewal. When told to wait no longer, it copies what it can; the interrupt comes before
// that.
int StoreFile::on_busy_checkpoint(void* self, int attempts) {
  const auto& file = *static_cast<StoreFile*>(self);
  if (attempts < kAttemptsToCopy) {
    std::this_thread::sleep_for(file.next_pause(attempts, kDoublingsInLine));
    return 1;
  }
  sqlite3_interrupt(file.database_.handle());
  return 0;
}

// ---- the log -----------------------------------------------------------------------------------

// Only a sync lies about it when it is repeated. What could not be read, written or locked is tried
// again: until all of the log has been written and synced, SQLite counts none of it as copied.
void StoreFile::note_failed_sync(int code) {
  if (code == SQLITE_IOERR_FSYNC || code == SQLITE_IOERR_DIR_FSYNC) disk_failed_ = true;
}

// Copies the whole log into the database and syncs that, or nothing: SQLite does not sync a part,
// but the next process need not copy it again. If a sync then failed, the part would be lost and
// nobody would write it any more. So no mode will do that works beside a writer or a reader of
// earlier.
int StoreFile::checkpoint(int mode) {
  sqlite3_busy_handler(database_.handle(), on_busy_checkpoint, this);
  const int code = sqlite3_wal_checkpoint_v2(database_.handle(), nullptr, mode, nullptr, nullptr);
  sqlite3_busy_handler(database_.handle(), on_busy, this);
  note_failed_sync(code);
  return code;
}

// Nobody can write while the log is copied; so most of it is synced before.
void StoreFile::copy_long_log(int mode) {
  if (connection().sync_log()) {
    checkpoint(mode);
  } else {
    disk_failed_ = true;
  }
}

int StoreFile::on_commit(void* self, sqlite3*, const char*, int frames) {
  auto& file = *static_cast<StoreFile*>(self);
  const bool new_log = frames < file.wal_frames_;
  file.wal_frames_ = frames;
  const int limit = file.options_.checkpoint_frames;
  if (new_log || file.copy_at_ == 0) file.copy_at_ = limit;
  if (frames < file.copy_at_) return SQLITE_OK;
  file.copy_at_ = frames + limit / 8;  // unless a new log is begun, which a reader may hold up
  file.copy_long_log(SQLITE_CHECKPOINT_FULL);
  return SQLITE_OK;
}

// That the log was synced would prove little: after a failed sync in any process it may have a hole
// that shows only after a power cut, and then hides what comes behind it. So all of it is written
// again, into the database. The testimony begins a new log, whose beginning SQLite syncs before it
// writes anything behind it: from then on the old one counts no more.
Status StoreFile::settle(Statement& testimony) {
  if (disk_failed_) {
    // The kernel may now claim success for data that never reached the disk.
    return fail(ErrorCode::unavailable,
                "a sync of the disk has failed; nothing that must be on it is promised until the "
                "program is started again");
  }
  if (checkpoint(SQLITE_CHECKPOINT_RESTART) != SQLITE_OK) {
    if (is_busy(database_.handle())) return fail(log_in_use());
    return fail(last_error(database_.handle(), "the log of the store could not be started over"));
  }
  auto said = testimony.run();
  if (!said) note_failed_sync(sqlite3_extended_errcode(database_.handle()));
  return said;
}

Status StoreFile::settle_patiently(const std::function<Status()>& attempt) {
  for (int attempts = 0;; ++attempts) {
    auto settled = attempt();
    if (settled || !worth_stepping_aside(attempts)) return settled;
  }
}

}  // namespace leasehold::sqlite
