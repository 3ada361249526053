// leasehold partitions. The test is the command: it reads what its member is told, and answers.
#include "leasehold/partitions.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <csignal>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/run/worker_answers.h"
#include "cli/tests/blockade.h"
#include "cli/tests/cli_fixture.h"

namespace leasehold::cli {
namespace {

using nlohmann::json;
using ::testing::IsEmpty;

constexpr int kCount = 8;
// A mutant must be caught within a minute, in which several of these pass.
constexpr auto kSoon = 15s;

TEST(WorkerAnswers, AreWholeLines) {
  WorkerAnswers answers;
  answers.add("done 1");
  EXPECT_FALSE(answers.next());
  answers.add("7\ndone 3\ndone\ndone x\ndone 4 \n\ndone 99999999999\n" + std::string(100, '1'));
  EXPECT_EQ(answers.next()->done, 17);
  EXPECT_EQ(answers.next()->done, 3);
  for (const char* wrong : {"done", "done x", "done 4 ", "", "done 99999999999"}) {
    const auto answer = answers.next();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->done, std::nullopt);
    EXPECT_EQ(answer->line, wrong);
  }
  EXPECT_FALSE(answers.next());
  answers.add("\ndone 1" + std::string(WorkerAnswers::kLongest, '0') + "\n");
  EXPECT_EQ(answers.next()->line, std::string(WorkerAnswers::kLongest, '1'));
  EXPECT_EQ(answers.next()->done, std::nullopt) << "not a part of its number";
}

// A member, and the two pipes to its command.
class Member {
 public:
  Member(Child wrapper, process::Fd events, process::Fd answers)
      : wrapper(std::move(wrapper)), events_(std::move(events)), answers_(std::move(answers)) {}

  // What the command is told next; null when it has ended.
  json event() {
    while (seen_.find('\n') == std::string::npos) {
      const std::string more = read_until(events_.get(), "\n", within(kSoon));
      if (more.empty()) return nullptr;
      seen_ += more;
    }
    const std::size_t end = seen_.find('\n');
    json line = json::parse(seen_.substr(0, end));
    seen_.erase(0, end + 1);
    return line;
  }
  bool is_told_within(std::chrono::nanoseconds span) {
    return !seen_.empty() || wait_readable(events_.get(), within(span));
  }
  // Of the next so many events, which must all be of this kind.
  std::set<int> all(const std::string& kind, std::size_t count) {
    std::set<int> partitions;
    while (partitions.size() < count) {
      const json line = event();
      EXPECT_EQ(line.is_null() ? "" : line.at("event"), kind) << line;
      if (line.is_null()) break;
      const int partition = line.at("partition");
      if (!partitions.insert(partition).second) break;
      last[partition] = line;
    }
    return partitions;
  }
  void say(const std::string& text) { write_all(answers_.get(), text); }
  void done(const std::set<int>& partitions) {
    for (const int partition : partitions) say("done " + std::to_string(partition) + "\n");
  }
  // Its command has ended, with all that came from it.
  bool command_has_ended() {
    while (!event().is_null()) {
    }
    return wait_readable(events_.get(), within(0s));
  }
  int status() {
    const auto ended = wrapper.wait_for(kSoon);
    EXPECT_TRUE(ended) << "still running";
    return ended ? ended->shell_status() : -1;
  }

  Child wrapper;
  std::map<int, json> last;  // by partition

 private:
  process::Fd events_;
  process::Fd answers_;
  std::string seen_;
};

class PartitionsTest : public CliTest {
 protected:
  // A member may end before it has read all. A handler is not inherited, as ignoring would be.
  PartitionsTest() {
    std::signal(SIGPIPE, [](int) {});
  }
  ~PartitionsTest() override { std::signal(SIGPIPE, SIG_DFL); }

  static Words join(const std::string& name, Words options) {
    options = with_defaults(std::move(options), {"--count", std::to_string(kCount), "--member",
                                                 name, "--ttl", "3s", "--look-every", "50ms"});
    options.insert(options.begin(), {"partitions", "orders"});
    return options;
  }
  Member start_member(const std::string& name, Words options = {},
                      const std::string& first = "") const {
    const auto fifo = [&](const std::string& file, int mode) {
      EXPECT_EQ(mkfifo(path(file).c_str(), 0600), 0);
      return process::Fd(open(path(file).c_str(), mode | O_CLOEXEC));
    };
    process::Fd events = fifo(name + ".events", O_RDONLY | O_NONBLOCK);
    process::Fd answers = fifo(name + ".answers", O_RDWR);
    const std::string own = path(name);
    return Member(start_piped(run_shell(join(name, std::move(options)),
                                        first + "echo $$ > " + own + ".pid; exec 3> " + own +
                                            ".events; cat " + own + ".answers & exec cat >&3")),
                  std::move(events), std::move(answers));
  }
  // The same, when it has all partitions.
  Member start_alone(const std::string& name, Words options = {},
                     const std::string& first = "") const {
    Member member = start_member(name, std::move(options), first);
    EXPECT_EQ(member.all("gained", kCount).size(), static_cast<std::size_t>(kCount)) << errors();
    return member;
  }
  // A member that cannot answer.
  Finished join_and_fail(Words options, Words command = {"true"}) const {
    Words words = join("cid", std::move(options));
    words.push_back("--");
    words.insert(words.end(), command.begin(), command.end());
    return leasehold(words);
  }

  static std::set<int> share(const std::vector<std::string>& members, const std::string& name) {
    std::set<int> mine;
    const auto owners = spread(members, kCount);
    for (int i = 0; i < kCount; ++i) {
      if (members[owners[static_cast<std::size_t>(i)]] == name) mine.insert(i);
    }
    return mine;
  }
  const std::set<int> anns_ = share({"ann", "bob"}, "ann");
  const std::set<int> bobs_ = share({"ann", "bob"}, "bob");

  json lock(const std::string& name) const {
    return json::parse(leasehold({"show", name, "--json"}).out).at("lock");
  }
  void expect_nothing_held() const {
    EXPECT_EQ(lock("orders").at("state"), "free");
    for (int i = 0; i < kCount; ++i) {
      EXPECT_EQ(lock("orders/" + std::to_string(i)).at("state"), "free");
    }
  }
  std::size_t error_lines() const {
    const std::string text = errors();
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  }
  pid_t command_of(const std::string& name) const { return std::stoi(read(name + ".pid")); }

  // As the command would, at the fence of this partition.
  std::string write_behind_fence(const json& gained) const {
    sqlite3* database = nullptr;
    EXPECT_EQ(sqlite3_open(path("data.db").c_str(), &database), SQLITE_OK);
    const std::string sql =
        "INSERT INTO leasehold_enter(resource, token, lineage, request) VALUES('orders/" +
        gained.at("partition").dump() + "', " + gained.at("token").get<std::string>() + ", '" +
        gained.at("lineage").get<std::string>() + "', '" + gained.at("request").get<std::string>() +
        "')";
    char* said = nullptr;
    sqlite3_exec(database, sql.c_str(), nullptr, nullptr, &said);
    std::string text = said == nullptr ? "entered" : said;
    sqlite3_free(said);
    sqlite3_close(database);
    return text;
  }
};

TEST_F(PartitionsTest, TellsWhatItGainedAndLeavesWithTheCommand) {
  Member ann = start_alone("ann", {"--note", "ann.example:80"});
  const json seen = lock("orders/5").at("holder");
  const json told = ann.last.at(5);
  EXPECT_EQ(told.at("lock"), "orders/5");
  EXPECT_EQ(told.at("token"), std::to_string(seen.at("token").get<long>()));
  EXPECT_EQ(told.at("request"), seen.at("request"));
  EXPECT_EQ(told.at("lineage"), lock("orders/5").at("lineage"));
  EXPECT_EQ(told.at("ttl_ms"), 3000);
  EXPECT_THAT(seen.at("note"), "member ann of 8; ann.example:80");
  ann.wrapper.signal(SIGTERM);
  EXPECT_EQ(ann.status(), 128 + SIGTERM);
  ASSERT_TRUE(ann.command_has_ended());
  expect_nothing_held();
}

TEST_F(PartitionsTest, TheCommandKnowsWhoItIsAndNothingOfAnOuterLease) {
  const Finished said = leasehold(
      {"run", "outer", "--fenced", "--", LEASEHOLD_PROGRAM, "partitions", "orders", "--count", "3",
       "--member", "ann", "--", "sh", "-c",
       "echo $LEASEHOLD_LOCK $LEASEHOLD_MEMBER $LEASEHOLD_COUNT -$LEASEHOLD_TOKEN- >&2; exit 7"});
  EXPECT_EQ(said.status, 7);
  EXPECT_THAT(said.err, HasSubstr("orders ann 3 --\n"));
  EXPECT_EQ(lock("orders").at("state"), "free");
}

TEST_F(PartitionsTest, APartitionPassesOnWhenTheCommandHasStoppedItAndNotBefore) {
  ASSERT_THAT(bobs_, Not(IsEmpty()));
  Member ann = start_alone("ann");
  Member bob = start_member("bob");
  ASSERT_EQ(ann.all("give_up", bobs_.size()), bobs_) << "all of them, before one is done";
  EXPECT_FALSE(bob.is_told_within(500ms)) << "while ann works on them";
  ann.done(bobs_);
  ASSERT_EQ(bob.all("gained", bobs_.size()), bobs_);
  EXPECT_FALSE(ann.is_told_within(100ms)) << "the others are hers as before";
  bob.wrapper.signal(SIGTERM);
  EXPECT_EQ(bob.status(), 128 + SIGTERM);
  ASSERT_EQ(ann.all("gained", bobs_.size()), bobs_);
}

TEST_F(PartitionsTest, WhatIsDoneUnaskedIsStillAtWork) {
  Member ann = start_alone("ann");
  ann.say("hello\ndone 77\n");
  ann.done(bobs_);
  while (errors().empty()) ASSERT_FALSE(ann.wrapper.wait_for(5ms)) << errors();
  Member bob = start_member("bob");
  ASSERT_EQ(ann.all("give_up", bobs_.size()), bobs_);
  EXPECT_FALSE(bob.is_told_within(300ms));
  EXPECT_EQ(error_lines(), 1U) << errors();
  EXPECT_THAT(errors(), HasSubstr("the command wrote 'hello'"));
}

TEST_F(PartitionsTest, ACommandThatDoesNotStopIsEnded) {
  Member ann = start_alone("ann", {"--drain", "200ms"});
  Member bob = start_member("bob");
  ASSERT_EQ(bob.all("gained", kCount).size(), static_cast<std::size_t>(kCount));
  ASSERT_TRUE(ann.command_has_ended());
  EXPECT_EQ(ann.status(), 76);
  EXPECT_THAT(errors(), HasSubstr("(TERM): partition"));
  EXPECT_THAT(errors(), HasSubstr("was not stopped within 200ms"));
}

TEST_F(PartitionsTest, ACommandThatDoesNotEndEitherIsKilled) {
  Member ann = start_alone("ann", {"--drain", "100ms", "--grace", "200ms"}, "trap '' TERM; ");
  Member bob = start_member("bob");
  ASSERT_TRUE(ann.command_has_ended());
  EXPECT_EQ(ann.status(), 76);
  EXPECT_THAT(errors(), HasSubstr("(KILL): it did not end after SIGTERM"));
}

TEST_F(PartitionsTest, TheEndOfAKilledMemberIsTheEndOfItsCommand) {
  Member ann = start_alone("ann");
  Member bob = start_member("bob");
  ASSERT_EQ(ann.all("give_up", bobs_.size()), bobs_);
  ann.done(bobs_);
  ASSERT_EQ(bob.all("gained", bobs_.size()), bobs_);
  ann.wrapper.signal(SIGKILL);
  EXPECT_TRUE(ann.wrapper.wait_for(kPatience));
  kill(-command_of("ann"), SIGKILL);  // what the command had started
  ASSERT_EQ(bob.all("gained", anns_.size()), anns_);
}

TEST_F(PartitionsTest, AFrozenMemberIsRefusedAndItsCommandEndedWhenItWakes) {
  ASSERT_EQ(shell("sqlite3 " + path("data.db") + " 'CREATE TABLE data(x)'").status, 0);
  ASSERT_EQ(leasehold({"fence", "install", "sqlite:" + path("data.db")}).status, 0);
  Member ann = start_alone("ann");
  EXPECT_EQ(write_behind_fence(ann.last.at(0)), "entered");
  ann.wrapper.signal(SIGSTOP);
  Member bob = start_member("bob");
  ASSERT_EQ(bob.all("gained", kCount).size(), static_cast<std::size_t>(kCount));
  EXPECT_EQ(write_behind_fence(bob.last.at(0)), "entered");
  EXPECT_THAT(write_behind_fence(ann.last.at(0)), HasSubstr("fenced_out")) << "she works on";
  EXPECT_FALSE(ann.is_told_within(0s)) << "frozen: nothing ended yet";
  ann.wrapper.signal(SIGCONT);
  EXPECT_EQ(ann.status(), 76) << errors();
  ASSERT_TRUE(ann.command_has_ended());
  EXPECT_THAT(errors(), HasSubstr("and its lease was lost"));
}

TEST_F(PartitionsTest, AStoppedCommandIsEndedAfterATtl) {
  Member ann = start_alone("ann", {"--ttl", "1s"});
  kill(-command_of("ann"), SIGSTOP);
  ASSERT_TRUE(ann.command_has_ended());
  EXPECT_EQ(ann.status(), 76);
  EXPECT_THAT(errors(), HasSubstr("it was stopped by a signal for 1s"));
  expect_nothing_held();
}

TEST_F(PartitionsTest, ACommandThatIsContinuedGoesOn) {
  Member ann = start_alone("ann", {"--ttl", "1s"});
  kill(-command_of("ann"), SIGSTOP);
  EXPECT_FALSE(ann.wrapper.wait_for(100ms));
  kill(-command_of("ann"), SIGCONT);
  EXPECT_FALSE(ann.wrapper.wait_for(1500ms)) << errors();
}

TEST_F(PartitionsTest, ALeaseThatIsTakenAwayEndsTheCommandAtOnce) {
  Member ann = start_alone("ann", {"--ttl", "1s"});
  ASSERT_EQ(leasehold({"release", "orders/3", "--force"}).status, 0);
  ASSERT_TRUE(ann.command_has_ended());
  EXPECT_EQ(ann.status(), 76);
  EXPECT_THAT(errors(), HasSubstr("(KILL): partition 3 was not stopped, and its lease was lost"));
}

TEST_F(PartitionsTest, ASilentStoreCostsThePartitionsButNotTheCommand) {
  Member ann = start_alone("ann", {"--grace", "1s"});
  {
    const Blockade silence(path("leasehold/locks.db"));
    ann.done(ann.all("give_up", kCount));
    // Their leases run out meanwhile.
    EXPECT_FALSE(ann.wrapper.wait_for(1500ms)) << errors();
  }
  ASSERT_EQ(ann.all("gained", kCount).size(), static_cast<std::size_t>(kCount)) << errors();
}

TEST_F(PartitionsTest, WhatWasStoppedForNothingIsToldAgain) {
  Member ann = start_alone("ann", {"--ttl", "6s", "--grace", "3s"});
  {
    const Blockade silence(path("leasehold/locks.db"));
    ann.done(ann.all("give_up", kCount));
  }
  ASSERT_EQ(ann.all("gained", kCount).size(), static_cast<std::size_t>(kCount)) << errors();
}

TEST_F(PartitionsTest, ACommandThatHearsNothingIsEndedInTime) {
  Member ann = start_alone("ann", {"--ttl", "2s"});
  const Blockade silence(path("leasehold/locks.db"));
  ASSERT_TRUE(ann.command_has_ended());
  EXPECT_EQ(ann.status(), 76);
  EXPECT_THAT(errors(), AllOf(HasSubstr("(KILL): partition"), HasSubstr("and its lease ends")));
}

TEST_F(PartitionsTest, WhatTheCommandLeavesBehindIsEndedBeforeOthersGetItsPartitions) {
  const Finished said = join_and_fail({}, {"sh", "-c", "sleep 600 & exit 3"});
  EXPECT_EQ(said.status, 3);
  EXPECT_THAT(said.err, HasSubstr("ended 1 process that the command left running"));
  expect_nothing_held();
}

TEST_F(PartitionsTest, WhoDoesNotAgreeStartsNothingAndLeavesNothing) {
  Member ann = start_alone("ann");
  const auto refused = [&](Words options, const std::string& why) {
    const Finished said = join_and_fail(std::move(options), {"touch", path("started")});
    EXPECT_EQ(said.status, 64);
    EXPECT_THAT(said.err, HasSubstr(why));
    EXPECT_EQ(std::count(said.err.begin(), said.err.end(), '\n'), 1) << said.err;
    EXPECT_EQ(lock("orders").at("holders").size(), 1U);
  };
  refused({"--count", "9"}, "the members of 'orders' have 8 partitions, not 9");
  refused({"--member", "ann"}, "a member of 'orders' already whose name is 'ann'");
  refused({"--member", "two words"}, "has a space");
  refused({"--member", ""}, "member name");
  refused({"--count", "0"}, "1 to 10000");
  refused({"--count", "many"}, "'many'");
  refused({"--grace", "2s"}, "--grace");
  refused({"--note", std::string(2000, 'x')}, "note");
  refused({"--shared"}, "--shared");
  EXPECT_EQ(shell("test -e " + path("started")).status, 1);
  EXPECT_FALSE(ann.is_told_within(0s));
}

TEST_F(PartitionsTest, WhatCannotBeStartedLeavesTheGroup) {
  EXPECT_EQ(join_and_fail({}, {"./no-such-program"}).status, 127);
  expect_nothing_held();
  EXPECT_EQ(leasehold({"partitions", "orders"}).status, 64);
  EXPECT_EQ(join_and_fail({"--store", "carrier-pigeon://coop"}).status, 77);
  const Child other = start_ready(run_shell({"orders"}, "echo ready; read line"));
  EXPECT_EQ(join_and_fail({}).status, 75) << "somebody holds the group alone";
}

TEST_F(PartitionsTest, SaysWhatHappensIfThatIsWanted) {
  Member ann = start_alone("ann", {"-v"});
  ann.wrapper.signal(SIGTERM);
  EXPECT_EQ(ann.status(), 128 + SIGTERM);
  EXPECT_THAT(errors(), AllOf(HasSubstr("joined 'orders' as 'ann'"),
                              HasSubstr("partition 7: gained"), HasSubstr("left 'orders'")));
}

}  // namespace
}  // namespace leasehold::cli
