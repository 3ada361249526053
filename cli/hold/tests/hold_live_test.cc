// The programs of docs/hold.md, in each language: they write behind the fence of a PostgreSQL
// database, and leave nothing; frozen, their late write is refused.
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "adapters/postgres/rig/server.h"
#include "cli/tests/cli_fixture.h"
#include "rig/output_of.h"
#include "rig/temp_folder.h"

namespace leasehold::cli {
namespace {

using leasehold::rig::PostgresServer;
using nlohmann::json;

// In its words {file} is the program, and {folder} has what was built of it.
struct Language {
  std::string name;
  std::string file;
  Words runs;
  Words builds = {};
};
void PrintTo(const Language& language, std::ostream* out) {
  *out << language.name;
}

const Language kLanguages[] = {
    {"Python", "counter.py", {"/usr/bin/python3", "{file}"}},
    {"Ruby", "counter.rb", {"/usr/bin/ruby", "{file}"}},
    {"Perl", "counter.pl", {"/usr/bin/perl", "{file}"}},
    {"Php", "counter.php", {"/usr/bin/php", "{file}"}},
    {"Go",
     "counter.go",
     {"{folder}/counter"},
     {"env", "GO111MODULE=off", "GOPATH=/usr/share/gocode", "GOCACHE=" LEASEHOLD_GO_CACHE, "go",
      "build", "-o", "{folder}/counter", "{file}"}},
    {"Java",
     "Counter.java",
     {"java", "-cp", "/usr/share/java/postgresql.jar:{folder}", "Counter"},
     {"javac", "-d", "{folder}", "{file}"}},
    {"Node", "counter.js", {"env", "NODE_PATH=" LEASEHOLD_NODE_MODULES, "node", "{file}"}},
};

std::string example(const std::string& file) {
  return LEASEHOLD_SOURCES "/examples/languages/" + file;
}

void replace(std::string& text, const std::string& what, const std::string& by) {
  const std::size_t at = text.find(what);
  if (at != std::string::npos) text.replace(at, what.size(), by);
}

Words filled_in(const Language& language, Words words, const std::string& folder) {
  for (std::string& word : words) {
    replace(word, "{file}", example(language.file));
    replace(word, "{folder}", folder);
  }
  return words;
}

// How to run it, after it was built, once.
Words program_in(const Language& language) {
  static std::map<std::string, rig::TempFolder> built;
  const bool first = !built.contains(language.name);
  const std::string folder = built[language.name].path();
  if (first && !language.builds.empty()) {
    rig::output_of(filled_in(language, language.builds, folder));
  }
  return filled_in(language, language.runs, folder);
}

class LanguageTest : public CliTest, public ::testing::WithParamInterface<Language> {
 protected:
  LanguageTest() {
    psql("CREATE TABLE account(balance int)");
    psql("INSERT INTO account VALUES(0)");
    EXPECT_EQ(leasehold({"fence", "install", url()}).status, 0);
  }
  ~LanguageTest() override { server().drop_database(database_); }

  static PostgresServer& server() {
    static PostgresServer running;
    return running;
  }
  std::string psql(const std::string& sql) const { return server().psql(sql, database_); }
  std::string balance() const { return psql("SELECT balance FROM account"); }
  std::string url() const { return server().url(database_); }
  std::string jdbc_url() const {
    return "jdbc:postgresql://127.0.0.1:" + std::to_string(server().port()) + "/" + database_ +
           "?user=postgres";
  }

  // With the database, and the locks in it too, or elsewhere.
  Finished run(Words argv) const { return run(std::move(argv), url()); }
  Finished run(Words argv, const std::string& locks) const {
    process::Command what = command(std::move(argv));
    what.environment.insert(what.environment.end(), {{"LEASEHOLD_STORE", locks},
                                                     {"PGHOST", "127.0.0.1"},
                                                     {"PGPORT", std::to_string(server().port())},
                                                     {"PGUSER", "postgres"},
                                                     {"PGDATABASE", database_},
                                                     {"JDBC_URL", jdbc_url()}});
    what.in = process::Null{};
    what.out = Piped{};
    what.err = Piped{};
    auto child = Child::start(what);
    if (!child) return {-1, "", child.error().message};
    return finish(std::move(*child));
  }

  const std::string database_ = server().create_database();
  const Words program_ = program_in(GetParam());
};

TEST_P(LanguageTest, WritesBehindTheFenceAndLeavesNothing) {
  for (const char* after : {"10", "20"}) {
    const Finished done = run(program_);
    EXPECT_EQ(done.status, 0) << done.err;
    EXPECT_EQ(balance(), after);
  }
  const json lock =
      json::parse(leasehold({"show", "account", "--store", url(), "--json"}).out).at("lock");
  EXPECT_EQ(lock.at("state"), "free") << lock;
  const json fence = json::parse(leasehold({"fence", "show", url(), "--json"}).out).at("fences");
  EXPECT_EQ(fence.at(0).at("token"), lock.at("last_token")) << "it has entered";
}

TEST_P(LanguageTest, WithoutTheLockItWritesNothing) {
  const Finished done = run(program_, "sqlite:/nowhere/locks.db");
  EXPECT_NE(done.status, 0);
  EXPECT_THAT(done.err, HasSubstr("leasehold: ")) << "it says why";
  EXPECT_EQ(balance(), "0");
}

TEST_P(LanguageTest, LateWriteOfAFrozenOneIsRefused) {
  Words drill = {LEASEHOLD_PROGRAM,
                 "drill",
                 "--store",
                 url(),
                 "--lock",
                 "account",
                 "--cycles",
                 "1",
                 "--watch",
                 "psql -X -A -t -c 'SELECT balance FROM account'",
                 "--"};
  drill.insert(drill.end(), program_.begin(), program_.end());
  const Finished done = run(drill);
  EXPECT_EQ(done.status, 0) << done.out << done.err;
  EXPECT_THAT(done.out, HasSubstr("1 late write was refused")) << done.err;
  EXPECT_THAT(done.err, HasSubstr("leasehold: fenced_out: ")) << "by the fence";
}

INSTANTIATE_TEST_SUITE_P(Every, LanguageTest, ::testing::ValuesIn(kLanguages),
                         [](const auto& language) { return language.param.name; });

// The page shows each file, as it is.
TEST(LanguagesPage, HasEachProgram) {
  const auto read = [](const std::string& file) {
    std::ifstream stream(file);
    std::ostringstream text;
    text << stream.rdbuf();
    return text.str();
  };
  const std::string page = read(LEASEHOLD_SOURCES "/docs/hold.md");
  std::size_t programs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(example(""))) {
    EXPECT_THAT(page, HasSubstr("\n" + read(entry.path()) + "```\n")) << entry.path();
    ++programs;
  }
  EXPECT_EQ(programs, std::size(kLanguages));
}

}  // namespace
}  // namespace leasehold::cli
