#include "fence_admin.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>

#include "leasehold/sqlite/claim.h"
#include "leasehold/sqlite/fence.h"
#include "user_database.h"

namespace leasehold::sqlite {
namespace {

using ::testing::HasSubstr;

class FenceAdminTest : public ::testing::Test {
 protected:
  Result<std::unique_ptr<FenceAdmin>> open(const std::string& path) const {
    Url url;
    url.scheme = "sqlite";
    url.path = path;
    return open_fence_admin(url);
  }
  // A database with a table of the user's and no fence.
  std::string made(const std::string& name) const {
    const std::string path = folder_.file(name);
    const UserConnection user(path);
    EXPECT_EQ(user.exec("CREATE TABLE data(value)"), "");
    return path;
  }

  TempFolder folder_;
};

// Runs `check` as somebody whom file permissions bind, which root they do not.
bool holds_without_privileges(const std::function<bool()>& check) {
  const pid_t child = fork();
  if (child == 0) {
    constexpr uid_t nobody = 65534;
    if (geteuid() == 0 && setuid(nobody) != 0) _exit(2);
    _exit(check() ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST_F(FenceAdminTest, InstallsMarksAndAdopts) {
  const std::string path = made("data.db");
  const auto admin = open(path);
  ASSERT_TRUE(good(admin));
  ASSERT_TRUE(good((*admin)->install()));
  ASSERT_TRUE(good((*admin)->install()));
  EXPECT_TRUE((*admin)->marks().value().empty());

  const UserConnection user(path);
  const auto nothing = [](OpenTransaction&) -> Status { return {}; };
  ASSERT_TRUE(good(Fence::open(user.get(), "b")->transaction(token_of(33, '1'), nothing)));
  ASSERT_TRUE(good(Fence::open(user.get(), "a")->transaction(token_of(7, '2'), nothing)));
  const auto marks = (*admin)->marks();
  ASSERT_TRUE(good(marks));
  ASSERT_EQ(marks->size(), 2u);
  EXPECT_EQ(marks->at(0).resource.str(), "a");
  EXPECT_EQ(marks->at(1).mark, token_of(33, '1'));

  const auto name = ResourceName::parse("b").value();
  ASSERT_TRUE(good((*admin)->adopt(name, lineage_of('b'), TokenNumber::of(3).value())));
  EXPECT_TRUE(bad(Fence::open(user.get(), "b")->transaction(token_of(34, '1'), nothing),
                  ErrorCode::fenced_out));
  EXPECT_TRUE(good(Fence::open(user.get(), "b")->transaction(token_of(3, '1', 'b'), nothing)));
}

TEST_F(FenceAdminTest, MarksThatAreNotKeptAreToldAndKeptAgain) {
  const std::string path = made("data.db");
  const auto admin = open(path);
  ASSERT_TRUE(good((*admin)->install()));
  const UserConnection user(path);
  const auto nothing = [](OpenTransaction&) -> Status { return {}; };
  ASSERT_TRUE(good(Fence::open(user.get(), "a")->transaction(token_of(33, '1'), nothing)));
  for (const char* damage :
       {"DROP TRIGGER leasehold_fence_stay", "DROP TRIGGER leasehold_fence_keep",
        "DROP TRIGGER leasehold_fence_stay; CREATE TRIGGER leasehold_fence_stay BEFORE UPDATE ON"
        " data BEGIN SELECT 1; END",
        "DROP TRIGGER leasehold_fence_once; CREATE TRIGGER leasehold_fence_once BEFORE INSERT ON"
        " leasehold_fence WHEN false BEGIN SELECT 1; END"}) {
    EXPECT_TRUE(good((*admin)->check_marks()));
    ASSERT_EQ(user.exec(damage), "");
    EXPECT_TRUE(bad((*admin)->check_marks(), ErrorCode::unavailable)) << damage;
    ASSERT_TRUE(good((*admin)->install())) << damage;
    for (const char* sql : {"UPDATE leasehold_fence SET token = 1", "DELETE FROM leasehold_fence",
                            "REPLACE INTO leasehold_fence(resource) VALUES('a')"}) {
      EXPECT_THAT(user.exec(sql), HasSubstr("leasehold: invalid: a mark")) << damage;
    }
  }
}

TEST_F(FenceAdminTest, AdoptingTurnsAClaimedResourceToTokens) {
  const std::string path = made("data.db");
  const auto admin = open(path);
  ASSERT_TRUE(good((*admin)->install()));
  const UserConnection user(path);
  const auto nothing = [](OpenTransaction&) -> Status { return {}; };
  const auto claim = Claim::take(user.get(), "a", request_of('1'));
  ASSERT_TRUE(good(claim));
  ASSERT_TRUE(
      good((*admin)->adopt(claim->resource(), lineage_of('a'), TokenNumber::of(1).value())));
  EXPECT_TRUE(bad(claim->transaction(nothing), ErrorCode::fenced_out));
  EXPECT_TRUE(good(Fence::open(user.get(), "a")->transaction(token_of(1, '1'), nothing)));
}

TEST_F(FenceAdminTest, MissingFileIsNotCreated) {
  const std::string path = folder_.file("typo.db");
  const auto admin = open(path);
  ASSERT_TRUE(bad(admin, ErrorCode::unavailable));
  EXPECT_THAT(admin.error().message, HasSubstr("there is no database at " + path));
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(FenceAdminTest, NotInstalled) {
  const std::string path = made("data.db");
  const auto admin = open(path);
  ASSERT_TRUE(good(admin));
  const auto marks = (*admin)->marks();
  ASSERT_TRUE(bad(marks, ErrorCode::unavailable));
  EXPECT_THAT(sentence(marks.error()), HasSubstr(path));
  EXPECT_THAT(marks.error().message, HasSubstr("leasehold fence install"));
  EXPECT_TRUE(bad((*admin)->adopt(ResourceName::parse("a").value(), lineage_of('a'),
                                  TokenNumber::of(1).value()),
                  ErrorCode::unavailable));
}

TEST_F(FenceAdminTest, OtherVersion) {
  const std::string path = made("data.db");
  const auto admin = open(path);
  ASSERT_TRUE(good((*admin)->install()));
  const UserConnection user(path);
  ASSERT_EQ(user.exec("UPDATE leasehold_version SET version = 99"), "");
  EXPECT_TRUE(bad((*admin)->marks(), ErrorCode::unavailable));
  const auto install = (*admin)->install();
  ASSERT_TRUE(bad(install, ErrorCode::unavailable));
  EXPECT_THAT(install.error().message, HasSubstr("version 99"));
}

TEST_F(FenceAdminTest, NotADatabase) {
  const std::string path = folder_.file("letter.txt");
  std::ofstream(path) << std::string(4096, 'x');
  const auto admin = open(path);
  ASSERT_TRUE(bad(admin, ErrorCode::unavailable));
  EXPECT_THAT(admin.error().message, HasSubstr(path));
  EXPECT_THAT(admin.error().message, HasSubstr("not a SQLite database"));
}

TEST_F(FenceAdminTest, Folder) {
  const auto admin = open(folder_.path().string());
  ASSERT_TRUE(bad(admin, ErrorCode::unavailable));
  EXPECT_THAT(admin.error().message, HasSubstr("is a folder"));
}

TEST_F(FenceAdminTest, DamagedFile) {
  const std::string path = made("data.db");
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(100);  // behind the header, where the first page's table begins
    file << std::string(500, '\xee');
  }
  auto admin = open(path);
  if (admin) {
    const auto install = (*admin)->install();
    ASSERT_TRUE(bad(install, ErrorCode::unavailable));
    EXPECT_THAT(install.error().message, HasSubstr("damaged"));
    return;
  }
  ASSERT_TRUE(bad(admin, ErrorCode::unavailable));
  EXPECT_THAT(admin.error().message, HasSubstr("damaged"));
}

TEST_F(FenceAdminTest, ReadOnlyFileCannotBeFencedButCanBeRead) {
  const std::string bare = made("bare.db");
  const std::string fenced = made("fenced.db");
  ASSERT_TRUE(good((*open(fenced))->install()));
  chmod(folder_.path().c_str(), 0755);
  chmod(bare.c_str(), 0444);
  chmod(fenced.c_str(), 0444);
  EXPECT_TRUE(holds_without_privileges([&] {
    const auto admin = open(bare);
    if (!admin) return false;
    const auto install = (*admin)->install();
    return !install && install.error().code == ErrorCode::unavailable &&
           install.error().message.find("read-only") != std::string::npos;
  }));
  EXPECT_TRUE(holds_without_privileges([&] {
    const auto admin = open(fenced);
    return admin && (*admin)->marks() && (*admin)->install();
  }));
}

TEST_F(FenceAdminTest, UnreadableFile) {
  const std::string path = made("data.db");
  chmod(folder_.path().c_str(), 0755);
  chmod(path.c_str(), 0);
  EXPECT_TRUE(holds_without_privileges([&] {
    const auto admin = open(path);
    return !admin && admin.error().code == ErrorCode::unavailable &&
           admin.error().message.find(path) != std::string::npos;
  }));
}

TEST_F(FenceAdminTest, WrongUrls) {
  for (const char* text : {"sqlite:", "sqlite://host/data.db", "sqlite:/data.db?mode=ro"}) {
    EXPECT_TRUE(bad(open_fence_admin(Url::parse(text).value()), ErrorCode::invalid)) << text;
  }
}

}  // namespace
}  // namespace leasehold::sqlite
