// Every failure: one sentence on stderr, the documented status, nothing run and nothing lost.
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "cli/tests/cli_fixture.h"
#include "testing/small_disk.h"

namespace leasehold::cli {
namespace {

using ::testing::AnyOf;

struct Wrong {
  Words words;
  int status;
  std::string says;
};

class BadInputTest : public CliTest {
 protected:
  void check(const Wrong& wrong) const {
    const Finished done = leasehold(wrong.words);
    std::string line;
    for (const std::string& word : wrong.words) line += word.substr(0, 60) + " ";
    EXPECT_EQ(done.status, wrong.status) << line << done.err;
    EXPECT_EQ(done.out, "") << line;
    EXPECT_THAT(done.err, ::testing::StartsWith("leasehold: ")) << line;
    EXPECT_EQ(std::count(done.err.begin(), done.err.end(), '\n'), 1) << line << done.err;
    EXPECT_THAT(done.err, HasSubstr(wrong.says)) << line;
  }
};

TEST_F(BadInputTest, NoCommandIsShownTheHelp) {
  const Finished bare = leasehold({});
  EXPECT_EQ(bare.status, 64);
  EXPECT_EQ(bare.out, "");
  EXPECT_EQ(bare.err, leasehold({"--help"}).out + "\nleasehold: a command is missing\n");
}

TEST_F(BadInputTest, Flags) {
  const Wrong table[] = {
      {{"nonsense"}, 64, "'nonsense' is not a command"},
      {{"--nonsense"}, 64, "there is no option '--nonsense'; see 'leasehold --help'"},
      {{"-V"}, 64, "there is no option '-V'; see 'leasehold --help'"},
      {{"--nonsense=1", "ls"}, 64, "there is no option '--nonsense'; see 'leasehold --help'"},
      {{"--version=1"}, 64, "--version takes no value"},
      {{"run"}, 64, "NAME"},
      {{"run", "x"}, 64, "the command is missing"},
      {{"run", "x", "--"}, 64, "the command is missing"},
      {{"run", "--", "echo", "ran"}, 64, "NAME"},
      {{"run", "--", "-x"}, 64, "'leasehold run -- -x -- echo hello'"},
      {{"run", "--", "-x", "echo", "ran"}, 64, "'leasehold run -- -x -- echo hello'"},
      {{"run", "--", "-x", "--"}, 64, "the command is missing"},
      {{"run", "x", "y", "--", "echo", "ran"}, 64, "'y' was not expected; a name with spaces"},
      {{"run", "x", "--once-keeps", "any", "--", "echo", "ran"}, 64, "--once-keeps needs --once"},
      {{"run", "x", "--nonsense", "--", "echo", "ran"}, 64, "--nonsense"},
      {{"run", "x", "-q", "--", "echo", "ran"}, 64, "-q"},
      {{"run", "x", "--ttl", "--", "echo", "ran"}, 64, "--ttl"},
      {{"run", "x", "--ttl", "1s", "--ttl", "2s", "--", "echo", "ran"},
       64,
       "--ttl was given twice"},
      {{"run", "x", "--ttl"}, 64, "--ttl needs a value: --ttl DURATION; see"},
      {{"hold"}, 64, "NAME"},
      {{"hold", "x", "--heartbeat", "0"}, 64, "--heartbeat"},
      {{"hold", "x", "--heartbeat", "1s", "--no-heartbeat"}, 64, "exclude each other"},
      {{"hold", "x", "--owner", ""}, 64, "owner"},
      {{"hold", "x", "--", "echo", "ran"}, 64, "echo"},
      {{"run", "x", "--on-lost", "shrug", "--", "echo", "ran"}, 64, "kill, term, ignore"},
      {{"run", "x", "--busy-status", "256", "--", "echo", "ran"}, 64, "from 0 to 255"},
      {{"run", "x", "--busy-status", "-1", "--", "echo", "ran"}, 64, "--busy-status"},
      {{"run", "x", "--busy-status", "1x", "--", "echo", "ran"}, 64, "--busy-status"},
      {{"run", "x", "--once", "", "--", "echo", "ran"}, 64, "--once"},
      {{"run", "x", "--once-keeps", "some", "--", "echo", "ran"}, 64, "success, any"},
      {{"run", "x", "--owner", "", "--", "echo", "ran"}, 64, "owner"},
      {{"run", "x", "--owner", "a\nb", "--", "echo", "ran"}, 64, "owner"},
      {{"run", "x", "--fenced=maybe", "--", "echo", "ran"}, 64, "--fenced takes no value"},
      {{"ls", "some", "extra"}, 64, "extra"},
      {{"ls", "--jsn"}, 64, "--jsn"},
      {{"show"}, 64, "NAME"},
      {{"show", "-dash"},
       64,
       "no option '-dash'; a name that begins with a dash stands after '--'"},
      {{"run", "--nonsense", "--", "echo", "ran"}, 64, "there is no option '--nonsense'"},
      {{"fence", "show", "--jsn"}, 64, "there is no option '--jsn'"},
      {{"release", "x", "--force", "--request", "123"}, 64, "32 hexadecimal digits"},
      {{"fence"},
       64,
       "a command is missing; there are: show, install, adopt, reset, remove, sweep, admit, enter, "
       "read, write; "
       "see "
       "'leasehold fence"},
      {{"fence", "burn"},
       64,
       "'burn' is not a command; there are: show, install, adopt, reset, remove, sweep, admit, "
       "enter, "
       "read, write"},
      {{"help", "nonsense"}, 64, "'nonsense' is not a command; there are: run, "},
      {{"fence", "show"}, 64, "URL"},
      {{"completion", "tcsh"}, 64, "bash, zsh, fish"},
      {{"probe", "extra"}, 64, "extra"},
      {{"probe", "--load", "-1"}, 64, "--load"},
      {{"probe", "--load", "257"}, 64, "from 0 to 256"},
      {{"probe", "--rate", "0"}, 64, "--rate"},
      {{"probe", "--rate", "0.5"}, 64, "--rate"},
      {{"advise"}, 64, "give --harmless yes|no"},
      {{"advise", "--harmless", "maybe"}, 64, "--harmless: 'maybe' is not one of yes, no"},
      {{"advise", "--harmless", "no"}, 64, "give --idempotent yes|no"},
      {{"advise", "--store", "mysql"}, 64, "sqlite, postgres, redis, etcd, zookeeper, none"},
      {{"advise", "yes"}, 64, "yes"},
      {{"completion"}, 64, "SHELL"},
  };
  for (const Wrong& wrong : table) check(wrong);
  EXPECT_FALSE(std::filesystem::exists(path("leasehold"))) << "no store was made for nothing";
}

TEST_F(BadInputTest, AMistypedWordIsToldTheRightOne) {
  const Wrong table[] = {
      {{"rnu", "x"}, 64, "'rnu' is not a command; did you mean 'run'?\n"},
      {{"fence", "instal"}, 64, "'instal' is not a command; did you mean 'install'?\n"},
      {{"--vrsion"}, 64, "there is no option '--vrsion'; did you mean '--version'?\n"},
      {{"run", "x", "--tll=3s", "--", "echo", "ran"},
       64,
       "there is no option '--tll'; did you mean '--ttl'?\n"},
      {{"run", "x", "ttl", "--", "echo", "ran"}, 64, "'ttl' was not expected"},
      {{"drill-wroker"}, 64, "is not a command; there are: run, "},
  };
  for (const Wrong& wrong : table) check(wrong);
}

TEST_F(BadInputTest, AStoreInTheWrongPlaceIsToldTheRightOne) {
  const Wrong table[] = {
      {{"ls", "sqlite:x.db"},
       64,
       "'sqlite:x.db' was not expected; a store is named with an option: "
       "--store sqlite:x.db"},
      {{"show", "x", "etcd://h"}, 64, "--store etcd://h"},
      {{"run", "x", "sqlite:x.db", "--", "echo", "ran"}, 64, "--store sqlite:x.db"},
      {{"doctor", "sqlite:x.db"}, 64, "--store sqlite:x.db"},
      {{"fence", "install", "--store", "sqlite:x.db"}, 64, "as in 'leasehold fence install URL'"},
      {{"fence", "show", "--store", "sqlite:x.db"}, 64, "URL is required"},
      {{"outbox", "show", "--store=sqlite:x.db"},
       64,
       "there is no option '--store'; the URL stands"},
  };
  for (const Wrong& wrong : table) check(wrong);
}

TEST_F(BadInputTest, Durations) {
  const Wrong table[] = {
      {{"run", "x", "--ttl", "5", "--", "echo", "ran"}, 64, "--ttl: '5' is not a duration"},
      {{"run", "x", "--ttl", "5 s", "--", "echo", "ran"}, 64, "--ttl"},
      {{"run", "x", "--ttl", "-5s", "--", "echo", "ran"}, 64, "--ttl"},
      {{"run", "x", "--ttl", "99ms", "--", "echo", "ran"},
       64,
       "--ttl: '99ms' is out of range: it must be 100ms"},
      {{"run", "x", "--ttl", "25h", "--", "echo", "ran"},
       64,
       "--ttl: '25h' is out of range: it must be 100ms to 24h; see 'leasehold run --help'"},
      {{"run", "x", "--ttl", "99999h", "--", "echo", "ran"}, 64, "it must be 100ms to 24h"},
      {{"run", "x", "--ttl", "0", "--", "echo", "ran"},
       64,
       "--ttl: '0' is out of range: it must be 100ms to"},
      {{"doctor", "--ttl", "25h"}, 64, "--ttl: '25h' is out of range: it must be 100ms to 24h"},
      {{"doctor", "--timeout", "11m"},
       64,
       "--timeout: '11m' is out of range: it must be 100ms to 10m"},
      {{"outbox", "relay", "sqlite:x.db", "--command", "true", "--ttl", "0"},
       64,
       "--ttl: '0' is out of range: it must be 100ms to 24h"},
      {{"run", "x", "--wait", "soon", "--", "echo", "ran"}, 64, "--wait: 'soon'"},
      {{"run", "x", "--at-least", "1w", "--", "echo", "ran"}, 64, "--at-least: '1w'"},
      {{"run", "x", "--grace", "20s", "--", "echo", "ran"}, 64, "--grace"},
      {{"run", "x", "--wait", "99999999h", "--", "echo", "ran"}, 64, "longer than a year"},
      {{"probe", "--duration", "5"}, 64, "--duration: '5' is not a duration"},
      {{"probe", "--duration", "99ms"},
       64,
       "--duration: '99ms' is out of range: it must be at least 100ms"},
      {{"probe", "--ttl", "99ms"}, 64, "--ttl: '99ms' is out of range: it must be 100ms to 24h"},
      {{"probe", "--ttl", "24h1"}, 64, "--ttl: '24h1' is not a duration"},
      {{"probe", "--ttl", "25h"}, 64, "--ttl: '25h' is out of range: it must be 100ms to 24h"},
      {{"probe", "--operation", "0"},
       64,
       "--operation: '0' is out of range: it must be 1ms to 24h"},
      {{"probe", "--operation", "25h"}, 64, "--operation"},
  };
  for (const Wrong& wrong : table) check(wrong);
}

TEST_F(BadInputTest, Rates) {
  const auto run = [](const std::string& rate, Words more = {}) {
    Words words = {"run", "x", "--rate", rate};
    words.insert(words.end(), more.begin(), more.end());
    words.insert(words.end(), {"--", "echo", "ran"});
    return words;
  };
  const Wrong table[] = {
      {run("10"), 64, "--rate: '10' has no interval; write how many in how long, as in 10/1m\n"},
      {run("10/"), 64, "--rate: '' is not a duration"},
      {run("10/60"), 64, "--rate: '60' is not a duration"},
      {run("10/0"), 64, "--rate: '0' is out of range: it must be 100ms to 24h"},
      {run("10/25h"), 64, "--rate: '25h' is out of range: it must be 100ms to 24h"},
      {run("0/1m"), 64, "--rate: '0' is not a whole number from 1 to"},
      {run("/1m"), 64, "--rate: '' is not a whole number from 1 to"},
      {run("-1/1m"), 64, "--rate: '-1' is not a whole number from 1 to"},
      {run("1m/10"), 64, "--rate: '1m' is not a whole number from 1 to"},
      {run("10/1m", {"--shared"}), 64, "--rate and --shared cannot be used together"},
      {run("10/1m", {"--permits", "10"}), 64, "--rate and --permits cannot be used together"},
      {run("10/1m", {"--fenced"}), 64, "--rate and --fenced cannot be used together"},
      {run("10/1m", {"--once", "k"}), 64, "--rate and --once cannot be used together"},
      {run("10/1m", {"--at-least", "1s"}), 64, "--rate and --at-least cannot be used together"},
      {run("10/1m", {"--on-lost", "term"}), 64, "--rate and --on-lost cannot be used together"},
      {run("10/1m", {"--ttl", "1m"}), 64, "--rate and --ttl cannot be used together"},
  };
  for (const Wrong& wrong : table) check(wrong);
}

TEST_F(BadInputTest, TheLimitsOfADurationAreWithin) {
  for (const char* ttl : {"100ms", "24h"}) {
    EXPECT_EQ(leasehold({"run", "x", "--ttl", ttl, "--", "true"}).status, 0) << ttl;
  }
}

TEST_F(BadInputTest, Names) {
  const std::string words = "lock name";
  const Wrong table[] = {
      {{"run", "", "--", "echo", "ran"}, 64, words},
      {{"run", "a\nb", "--", "echo", "ran"}, 64, words},
      {{"run", "\x1b[31m", "--", "echo", "ran"}, 64, words},
      {{"run", "\xff\xfe", "--", "echo", "ran"}, 64, words},
      {{"run", std::string(513, 'n'), "--", "echo", "ran"}, 64, "512"},
      {{"show", ""}, 64, words},
      {{"release", "", "--force"}, 64, words},
  };
  for (const Wrong& wrong : table) check(wrong);
  EXPECT_EQ(leasehold({"run", std::string(512, 'n'), "--", "true"}).status, 0);
}

TEST_F(BadInputTest, StoreUrls) {
  const Wrong table[] = {
      {{"ls", "--store", ""}, 64, "scheme"},
      {{"ls", "--store", "locks.db"}, 64, "scheme"},
      {{"ls", "--store", "sqlite:"}, 64, "path"},
      {{"ls", "--store", "sqlite:/x%zz"}, 64, "percent"},
      {{"ls", "--store", "sqlite:/x?nonsense=1"}, 64, "nonsense"},
      {{"ls", "--store", "sqlite:~/locks.db"}, 64, "write $HOME instead"},
      {{"ls", "--store", "carrier-pigeon://coop:1"}, 77, "carrier-pigeon"},
      {{"fence", "show", "carrier-pigeon://coop:1"}, 77, "carrier-pigeon"},
      {{"fence", "show", "nonsense"}, 64, "scheme"},
  };
  for (const Wrong& wrong : table) check(wrong);
}

TEST_F(BadInputTest, AStoreOfTheEnvironmentIsNamedAsSuch) {
  const auto told = [&](const std::string& url, const std::string& command) {
    const Finished done = shell("LEASEHOLD_STORE='" + url + "' leasehold " + command);
    EXPECT_NE(done.status, 0);
    EXPECT_THAT(done.err, Not(HasSubstr("geheim")));
    return done.err;
  };
  const auto names_it = ::testing::StartsWith("leasehold: LEASEHOLD_STORE: ");
  for (const char* url : {"geheim", "carrier-pigeon://me:geheim@coop:1", "sqlite:/x?nonsense=1"}) {
    for (const char* command : {"ls", "run x -- true", "doctor"}) {
      EXPECT_THAT(told(url, command), names_it) << url << " " << command;
    }
    EXPECT_THAT(told(url, "ls --store nonsense"), Not(names_it)) << url;
  }
}

TEST_F(BadInputTest, NeverRepeatsAPassword) {
  for (const char* url : {"redis://me:geheim@host:1", "redis://me:geheim@:1", "x y://me:geheim@h",
                          "sqlite://me:geheim@h:x/p", "redis:/me:geheim@h", "redis:me:geheim@h",
                          "redis://me:12?geheim@h:1"}) {
    for (const Words& words :
         {Words{"ls", "--store", url}, Words{"ls", url}, Words{url},
          Words{"advise", "--store", url}, Words{"run", "x", "--ttl", url, "--", "true"},
          Words{"drill", "--workers", url}, Words{"drill", "--fault", url},
          Words{"run", url, "--", "true"}, Words{"release", "x", "--request", url},
          Words{"completion", url}, Words{"outbox", "retry", "sqlite:" + path("outbox.db"), url},
          Words{"gate", "--state", path("gate"), "--listen", url, "--upstream", "http://h"},
          Words{"gate", "--state", path("gate"), "--listen", "127.0.0.1:0", "--upstream", url}}) {
      const Finished done = leasehold(words);
      EXPECT_NE(done.status, 0) << words.front();
      EXPECT_THAT(done.err + done.out, Not(HasSubstr("geheim"))) << words.front();
    }
  }
}

// Each place where a command takes a URL; with some that only look like one.
TEST_F(BadInputTest, NoCommandRepeatsThePasswordOfAUrl) {
  const std::string app = "sqlite:" + path("app.db");
  ASSERT_EQ(leasehold({"run", "x", "--", "true"}).status, 0);
  ASSERT_EQ(shell("sqlite3 " + path("app.db") + " 'CREATE TABLE t(x)'").status, 0);
  ASSERT_EQ(leasehold({"outbox", "install", app}).status, 0);
  const Words commands[] = {
      {"run", "x", "--store", "URL", "--", "true"},
      {"ls", "--store", "URL"},
      {"show", "x", "--store", "URL"},
      {"release", "x", "--force", "--store", "URL"},
      {"rotate-store-id", "--force", "--store", "URL"},
      {"doctor", "--store", "URL"},
      {"doctor", "--json", "--store", "URL"},
      {"doctor", "--fence", "URL"},
      {"doctor", "--json", "--fence", "URL"},
      {"doctor", "URL"},
      {"fence", "show", "URL"},
      {"fence", "install", "URL"},
      {"fence", "adopt", "URL", "r", "--store", "URL"},
      {"fence", "reset", "URL", "r"},
      {"fence", "remove", "URL", "r"},
      {"fence", "enter", "URL"},
      {"fence", "read", "URL"},
      {"fence", "write", "URL"},
      {"once", "install", "URL"},
      {"once", "forget", "URL", "--older-than", "1h"},
      {"outbox", "install", "URL"},
      {"outbox", "show", "URL"},
      {"outbox", "retry", "URL", "1"},
      {"outbox", "skip", "URL", "1"},
      {"outbox", "relay", "URL", "--command", "true"},
      {"outbox", "relay", app, "--lock-store", "URL", "--command", "true"},
      {"outbox", "relay", app, "--to", "URL"},
      {"serial", "install", "URL"},
      {"drill", "--store", "URL"},
      {"drill", "--fence", "URL"},
  };
  for (const std::string url : {"me:geheim@h:6379", "redis//me:geheim@h", "redis:/me:geheim@h/0",
                                "host=h password=geheim", "Redis://me:ge heim@h:port"}) {
    for (Words words : commands) {
      std::replace(words.begin(), words.end(), std::string("URL"), url);
      const Finished done = leasehold(words);
      EXPECT_NE(done.status, 0) << words[0] << " " << words[1] << " " << url;
      EXPECT_THAT(done.err + done.out, Not(AnyOf(HasSubstr("geheim"), HasSubstr("heim@"))))
          << words[0] << " " << words[1] << " " << url;
    }
  }
}

TEST_F(BadInputTest, AStoreIsNoLock) {
  check({{"run", "redis://h", "--", "echo", "ran"}, 64, "--store redis://h"});
  check({{"run", "ssh://me:secret@h/repo", "--", "echo", "ran"}, 64, "shown to all who look"});
  EXPECT_EQ(leasehold({"run", "redis:flush", "--", "true"}).status, 0);
  for (const char* name :
       {"https://h/page?mail=a@b.c", "https://h?at=10:30&mail=a@b.c", "://@", "ssh://git@h/repo"}) {
    EXPECT_EQ(leasehold({"run", name, "--", "true"}).status, 0) << name;
  }
}

TEST_F(BadInputTest, StoresThatCannotBeUsed) {
  write("garbage.db",
        "this is not a database, but it is long enough to be read as one" + std::string(5000, '!'));
  std::filesystem::create_directory(path("folder.db"));
  const Wrong table[] = {
      {{"run", "x", "--store", "sqlite:" + path("garbage.db"), "--", "echo", "ran"},
       69,
       "file is not a database"},
      {{"run", "x", "--store", "sqlite:" + path("folder.db"), "--", "echo", "ran"},
       69,
       "folder.db"},
      {{"run", "x", "--store", "sqlite:" + path("no/such/folder/locks.db"), "--", "echo", "ran"},
       69,
       "no/such/folder"},
      {{"run", "x", "--store", "sqlite:/proc/locks.db", "--", "echo", "ran"}, 69, "/proc/locks.db"},
      {{"ls", "--store", "sqlite:" + path("garbage.db")}, 69, "file is not a database"},
      {{"show", "x", "--store", "sqlite:" + path("garbage.db")}, 69, "file is not a database"},
      {{"release", "x", "--force", "--store", "sqlite:" + path("garbage.db")},
       69,
       "file is not a database"},
      {{"fence", "install", "sqlite:" + path("garbage.db")}, 69, "file is not a database"},
  };
  for (const Wrong& wrong : table) check(wrong);
  EXPECT_THAT(read("garbage.db"), ::testing::StartsWith("this is not a database")) << "left alone";
}

TEST_F(BadInputTest, APasswordInAnyValueIsNotRepeated) {
  const std::string secret = "redis://me:hunter2@h/x";
  const std::string database = "sqlite:" + path("app.db");
  write("app.db", "");
  const Words gate = {"gate",        "--state",    path("gate"),        "--listen",
                      "127.0.0.1:0", "--upstream", "http://127.0.0.1:1"};
  const auto expect_hidden = [&](Words words, const std::string& option) {
    words.insert(words.end(), {option, secret});
    const Finished done = leasehold(words);
    EXPECT_NE(done.status, 0) << option;
    EXPECT_THAT(done.err, AllOf(HasSubstr("redis://me:***@h/x"), Not(HasSubstr("hunter2"))))
        << option;
  };
  expect_hidden(gate, "--resource");
  expect_hidden(gate, "--probe");
  expect_hidden({"probe", "--duration", "1s"}, "--svg");
  expect_hidden({"drill", "--duration", "1s"}, "--html");
  expect_hidden({"drill", "--duration", "1s"}, "--history");
  expect_hidden({"fence", "install", database}, "--table");
}

TEST_F(BadInputTest, ADefaultStoreThatCannotBeMade) {
  const Finished done = shell("XDG_STATE_HOME=/proc/nowhere leasehold run x -- echo ran");
  EXPECT_EQ(done.status, 69);
  EXPECT_EQ(done.out, "");
  EXPECT_THAT(done.err, HasSubstr("cannot create the folder of the default store"));
}

TEST_F(BadInputTest, ReadOnlyFolder) {
  const auto check = [this](const std::filesystem::path& folder) {
    const std::string url = "sqlite:" + (folder / "locks.db").native();
    const Finished done = leasehold({"run", "x", "--store", url, "--", "echo", "ran"});
    EXPECT_EQ(done.status, 69) << done.err;
    EXPECT_EQ(done.out, "");
    EXPECT_THAT(done.err, ::testing::StartsWith("leasehold: "));
  };
  EXPECT_TRUE(leasehold::testing::passes_on_a_small_disk("", check, MS_RDONLY));
}

TEST_F(BadInputTest, FullDiskLosesNothing) {
  const auto check = [this](const std::filesystem::path& disk) {
    const auto run = [&](const std::string& lock) {
      return leasehold({"run", lock, "--store", "sqlite:" + (disk / "locks.db").native(),
                        "--fenced", "--", "printenv", "LEASEHOLD_TOKEN"});
    };
    ASSERT_EQ(run("x").out, "1\n");
    leasehold::testing::fill_disk(disk / "filler");
    Finished done;
    for (int i = 0; i < 300 && done.status <= 0; ++i) done = run("y" + std::to_string(i));
    EXPECT_EQ(done.status, 69);
    EXPECT_THAT(done.err, AllOf(::testing::StartsWith("leasehold: "), HasSubstr("full")));
    std::filesystem::remove(disk / "filler");
    std::filesystem::remove(disk / "filler-rest");
    done = run("x");
    EXPECT_EQ(done.status, 0) << done.err;
    EXPECT_GT(std::atoi(done.out.c_str()), 1) << "the counter went on";
  };
  EXPECT_TRUE(leasehold::testing::passes_on_a_small_disk("size=256k", check));
}

TEST_F(BadInputTest, AFolderOfSomebodyElse) {
  if (getuid() != 0) {
    const Finished done = leasehold({"run", "x", "--store", "sqlite:/root/locks.db", "--", "true"});
    EXPECT_EQ(done.status, 69);
    return;
  }
  const Finished done =
      finish({"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", LEASEHOLD_PROGRAM,
              "run", "x", "--store", "sqlite:" + path("locks.db"), "--", "echo", "ran"});
  EXPECT_EQ(done.status, 69) << done.err;
  EXPECT_EQ(done.out, "");
  EXPECT_THAT(done.err, ::testing::StartsWith("leasehold: "));
}

}  // namespace
}  // namespace leasehold::cli
