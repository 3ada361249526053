// A fenced database file, with what the tests of readers and of sweeping do there.
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <string>

#include "fence_admin.h"
#include "leasehold/sqlite/fence.h"
#include "user_database.h"

namespace leasehold::sqlite {

class FenceFile {
 public:
  explicit FenceFile(const std::string& journal = "wal") {
    const UserConnection user(path());
    EXPECT_EQ(user.exec("PRAGMA journal_mode = " + journal +
                        "; CREATE TABLE data(name TEXT PRIMARY KEY, value TEXT NOT NULL);"
                        "INSERT INTO data VALUES('ledger', '')"),
              "");
    EXPECT_TRUE(good(install_fence(user.get())));
  }

  std::string path() const { return folder_.file("data.db"); }
  std::unique_ptr<FenceAdmin> admin() const {
    return open_fence_admin(Url::parse("sqlite:" + path()).value()).value();
  }

 private:
  const TempFolder folder_;
};

inline Fence fence_at(const UserConnection& user, const std::string& resource = "ledger") {
  return Fence::open(user.get(), resource).value();
}

inline Status do_nothing(OpenTransaction&) {
  return {};
}

inline Status enter(const UserConnection& user, const Token& token,
                    const std::string& resource = "ledger") {
  return fence_at(user, resource).transaction(token, do_nothing);
}
inline Status enter_to_read(const UserConnection& user, const Token& token,
                            const std::string& resource = "ledger") {
  return fence_at(user, resource).read(token, do_nothing);
}

// Adds a text to the value of that name.
inline Status append(const UserConnection& user, const Token& token, const std::string& text,
                     const std::string& name = "ledger") {
  return fence_at(user, name).transaction(token, [&](OpenTransaction& open) -> Status {
    EXPECT_EQ(
        exec_on(open.handle(), "INSERT INTO data VALUES('" + name + "', '" + text +
                                   "') ON CONFLICT DO UPDATE SET value = value || '" + text + "'"),
        "");
    return {};
  });
}

// Refused for this reason, at this number.
template <class T>
::testing::AssertionResult refused(const Result<T>& result, Refusal::Reason why,
                                   std::int64_t mark) {
  if (auto ok = bad(result, ErrorCode::fenced_out); !ok) return ok;
  const auto& refusal = result.error().refusal;
  if (refusal && refusal->why == why && refusal->mark == mark) {
    return ::testing::AssertionSuccess();
  }
  return ::testing::AssertionFailure() << to_string(result.error());
}

// Calls `act` behind each commit to a log of the connection, with its number from 1 on.
class AtEachCommit {
 public:
  AtEachCommit(sqlite3* db, std::function<void(int commit)> act) : db_(db), act_(std::move(act)) {
    sqlite3_wal_hook(db_, hook, this);
  }
  AtEachCommit(const AtEachCommit&) = delete;
  ~AtEachCommit() { sqlite3_wal_hook(db_, nullptr, nullptr); }
  int commits() const { return commits_; }

 private:
  static int hook(void* self, sqlite3*, const char*, int) {
    auto* it = static_cast<AtEachCommit*>(self);
    it->act_(++it->commits_);
    return SQLITE_OK;
  }

  sqlite3* db_;
  const std::function<void(int)> act_;
  int commits_ = 0;
};

// Whether a process that does this is killed in it. No connection may be open here.
inline bool is_killed_in(const std::function<void()>& act) {
  const pid_t child = fork();
  if (child == 0) {
    act();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

}  // namespace leasehold::sqlite
