#include "examination.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "database.h"
#include "doctor/findings.h"
#include "kit/try.h"
#include "machine.h"
#include "store.h"
#include "store_file.h"
#include "user_file.h"

namespace leasehold::sqlite {
namespace {

using doctor::Findings;
using doctor::judge_filesystem;
using doctor::judge_round_trip;
using doctor::Nanos;

constexpr int kTries = 5;
constexpr std::uint64_t kFewBytes = 16 << 20;

Result<std::string> text_of(Connection db, std::string_view sql) {
  auto statement = TRY(db.prepare(sql));
  auto row = TRY(statement.step());
  return row ? std::string(statement.text(0)) : "";
}

std::string number_text(std::int64_t number) {
  return std::to_string(number);
}

// ---- around the file -----------------------------------------------------------------------

void judge_permissions(Findings& findings, const std::filesystem::path& file) {
  constexpr const char* check = "sqlite.permissions";
  const std::string folder = file.parent_path().string();
  bool fine = true;
  const auto complain = [&](const std::string& what, const std::string& consequence,
                            const std::string& fix) {
    fine = false;
    findings.add(Severity::danger, check, {what, consequence, fix});
  };
  // As this user: root may always.
  if (eaccess(folder.c_str(), W_OK | X_OK) != 0) {
    complain("This user may not write to the folder " + folder + ".",
             "SQLite makes its log beside the file: no lock can be taken.",
             "chown or chmod the folder for the user that takes locks");
  }
  for (const std::string& path : {file.string(), file.string() + "-wal", file.string() + "-shm"}) {
    struct stat there {};
    if (stat(path.c_str(), &there) != 0 || eaccess(path.c_str(), R_OK | W_OK) == 0) continue;
    complain("This user may not write to " + path + ", which belongs to user " +
                 number_text(there.st_uid) + ".",
             "Who cannot write the log cannot take, renew or release a lock: a process of another "
             "user has left it so.",
             "chown it like the database file, or let all processes run as one user or group");
  }
  if (fine) findings.ok(check, "This user may write to the file, its log and its folder.");
}

void judge_space(Findings& findings, const std::string& folder) {
  constexpr const char* check = "sqlite.space";
  struct statvfs disk {};
  if (statvfs(folder.c_str(), &disk) != 0) {
    findings.unseen(check, "how much room is left", std::generic_category().message(errno), "");
    return;
  }
  const std::uint64_t left = static_cast<std::uint64_t>(disk.f_bavail) * disk.f_frsize;
  const std::string seen = "There are " + std::to_string(left >> 20) + " MiB left on its disk.";
  if (left >= kFewBytes) return findings.ok(check, seen);
  findings.add(Severity::warning, check,
               {seen, "On a full disk no lock can be taken or renewed, and those held are lost.",
                "Make room, or move the file"});
}

// ---- inside --------------------------------------------------------------------------------

void judge_journal(Findings& findings, Connection db, ExaminedAs as) {
  constexpr const char* check = "sqlite.journal";
  const auto mode = text_of(db, "PRAGMA main.journal_mode");
  if (!mode) return findings.unseen(check, "which journal it has", mode.error(), "");
  const std::string seen = "Its journal mode is " + *mode + ".";
  if (as == ExaminedAs::fence || *mode == "wal") return findings.ok(check, seen);
  findings.add(Severity::warning, check,
               {seen,
                "Leasehold makes its file in mode wal. In another one every renewal waits for "
                "every reader, and for the disk.",
                "sqlite3 FILE 'PRAGMA journal_mode = wal'"});
}

void judge_sync(Findings& findings, Connection db, ExaminedAs as) {
  constexpr const char* check = "sqlite.sync";
  if (as == ExaminedAs::store) {
    findings.ok(check,
                "Leasehold sees to it itself: what it reserves is synced before it is granted.");
    return;
  }
  const auto level = text_of(db, "PRAGMA main.synchronous");
  if (!level) return findings.unseen(check, "how this SQLite syncs", level.error(), "");
  findings.add(Severity::note, check,
               {"This SQLite syncs with level " + *level +
                    " by default (0 OFF, 1 NORMAL, 2 FULL); what your programs set on their own "
                    "connections cannot be seen from here.",
                "Below FULL (in wal mode) a power cut can take back the mark with the last "
                "writes: both together, so that the fence stays right for what is left.",
                "PRAGMA synchronous = FULL, if a write that was confirmed must survive a power "
                "cut; never OFF"});
}

void judge_check(Findings& findings, Connection db) {
  constexpr const char* check = "sqlite.integrity";
  const auto said = text_of(db, "PRAGMA main.quick_check(1)");
  if (!said) return findings.unseen(check, "whether the file is whole", said.error(), "");
  if (*said == "ok") return findings.ok(check, "SQLite's quick check finds nothing wrong.");
  findings.add(Severity::danger, check,
               {"SQLite's quick check says: " + *said + ".",
                "Numbers and holders in a damaged file cannot be trusted.",
                "Stop all its users, begin with a new file, and let the fences adopt its lineage "
                "(leasehold fence adopt)"});
}

// The part of a lease that waits for others.
void judge_writing(Findings& findings, Connection db, const ExamineOptions& options) {
  std::vector<Nanos> trips;
  for (int i = 0; i < kTries && BootClock::now() < options.context.deadline; ++i) {
    const BootTime before = BootClock::now();
    const auto transaction = Transaction::begin(db);
    if (!transaction) break;
    trips.push_back(BootClock::now() - before);
  }
  judge_round_trip(findings, "sqlite.round_trip", "begin a transaction that may write",
                   std::move(trips), options.ttl);
}

struct Identity {
  bool ours = false;
  std::optional<StoreId> lineage;
};

Identity judge_identity(Findings& findings, Connection db) {
  constexpr const char* check = "sqlite.store";
  const auto application = text_of(db, "PRAGMA main.application_id");
  const auto format = text_of(db, "PRAGMA main.user_version");
  const auto tables = text_of(db, "SELECT count(*) FROM main.sqlite_schema");
  if (application && *application == "0" && tables && *tables == "0") {
    findings.add(Severity::note, check, {"The file is empty; no lock was ever taken.", "", ""});
    return {true, std::nullopt};
  }
  if (!application || *application != number_text(kApplicationId)) {
    findings.add(Severity::danger, check,
                 {"It is a database of another program.", "Leasehold refuses to keep locks there.",
                  "Give the locks a file of their own"});
    return {};
  }
  if (!format || *format != number_text(kFormat)) {
    findings.add(Severity::danger, check,
                 {"The file has format " + (format ? *format : "?") + ", and this program knows " +
                      number_text(kFormat) + ".",
                  "This program cannot use it.",
                  "Use the version of Leasehold that made it, or update this one"});
    return {};
  }
  auto row = db.prepare("SELECT id, machine, boot FROM main.store");
  if (!row || !row->step().value_or(false)) {
    findings.add(Severity::danger, check,
                 {"The file has lost the row that names its lineage.", "It cannot be used.",
                  "Begin with a new file, and let the fences adopt its lineage"});
    return {};
  }
  const std::string machine(row->text(1));
  const std::string boot(row->text(2));
  const auto here = this_machine();
  if (here && boot != here->boot && machine != here->machine) {
    findings.add(Severity::danger, check,
                 {"It was last used by another machine (" + machine + ").",
                  "SQLite leases hold on one machine only; this one is refused.",
                  "Use a store with a server, or keep LEASEHOLD_MACHINE_ID set to that machine's "
                  "id if the file was moved here for good"});
    return {};
  }
  const auto id = row->id<StoreId>(0);
  if (!here) {
    findings.unseen(check, "whether it belongs to this machine", here.error(), "");
  } else {
    findings.ok(check, "It is a lock store of this machine, in format " + *format + ".");
  }
  return {here.has_value(), id};
}

int past_deadline(void* deadline) {
  return BootClock::now() >= *static_cast<BootTime*>(deadline) ? 1 : 0;
}

}  // namespace

Result<Diagnosis> examine(const Url& url, const ExamineOptions& options) {
  TRY(check_url(url));
  std::error_code unknown_folder;
  const auto absolute = std::filesystem::absolute(url.path, unknown_folder);
  const std::filesystem::path file = unknown_folder ? std::filesystem::path(url.path) : absolute;
  Findings findings(file.string());

  auto database = TRY(Database::open(file.string(), false));
  const Connection db = database.connection();
  // Nothing that others find in the folder should change by looking.
  sqlite3_db_config(db.handle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  int on = 1;
  sqlite3_file_control(db.handle(), nullptr, SQLITE_FCNTL_PERSIST_WAL, &on);
  const auto left = std::chrono::duration_cast<Millis>(options.context.deadline - BootClock::now());
  sqlite3_busy_timeout(db.handle(),
                       static_cast<int>(std::clamp<Millis::rep>(left.count(), 0, 5000)));
  BootTime deadline = options.context.deadline;
  sqlite3_progress_handler(db.handle(), 10'000, past_deadline, &deadline);

  judge_permissions(findings, file);
  if (auto readable = text_of(db, "PRAGMA main.schema_version"); !readable) {
    // What the permissions explain has been said; else it is no database, or cannot be read now.
    auto found = findings.take();
    const bool explained = found.front().severity == Severity::danger;
    if (!explained) return fail(last_error(db.handle(), "cannot read " + file.string()));
    return Diagnosis{std::move(found), std::nullopt, std::nullopt};
  }
  const std::string folder = file.parent_path().string();
  judge_filesystem(findings, "sqlite.filesystem", folder);
  judge_space(findings, folder);
  judge_journal(findings, db, options.as);
  judge_sync(findings, db, options.as);
  Diagnosis diagnosis;
  if (options.as == ExaminedAs::store) {
    judge_check(findings, db);
    const Identity identity = judge_identity(findings, db);
    diagnosis.lineage = identity.lineage;
    if (identity.ours) diagnosis.traits = traits_of(file.string());
  }
  judge_writing(findings, db, options);
  diagnosis.findings = findings.take();
  return diagnosis;
}

}  // namespace leasehold::sqlite
