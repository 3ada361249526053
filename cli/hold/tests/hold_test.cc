// `leasehold hold` as a program in any language uses it: the test is the parent.
#include <csignal>
#include <nlohmann/json.hpp>

#include "cli/tests/blockade.h"
#include "cli/tests/cli_fixture.h"
#include "leasehold/time.h"

namespace leasehold::cli {
namespace {

using nlohmann::json;
using ::testing::AnyOf;
using ::testing::IsEmpty;

// A `leasehold hold` and the pipes to it.
class Holder {
 public:
  explicit Holder(Child child) : child(std::move(child)) {}

  void say(const std::string& text) { write_all(child.in().get(), text); }

  // The next line; null at the end of the stream.
  json event() {
    while (seen_.find('\n') == std::string::npos) {
      const std::string more = read_until(child.out().get(), "\n", within(kPatience));
      if (more.empty()) return nullptr;
      seen_ += more;
    }
    const std::size_t end = seen_.find('\n');
    json line = json::parse(seen_.substr(0, end));
    seen_.erase(0, end + 1);
    return line;
  }
  json event(const std::string& kind) {
    json line = event();
    EXPECT_EQ(line.is_null() ? "" : line.at("event"), kind) << line;
    return line;
  }
  // All that is left.
  std::vector<std::string> last_events() {
    std::vector<std::string> kinds;
    for (json line = event(); !line.is_null(); line = event()) kinds.push_back(line.at("event"));
    return kinds;
  }
  // Sends heartbeats until something is told; null if nothing is within `span`.
  json beat_until_event(std::chrono::nanoseconds span = kPatience) {
    const BootTime end = BootClock::now() + span;
    while (seen_.empty() && !wait_readable(child.out().get(), within(20ms))) {
      if (BootClock::now() >= end) return nullptr;
      say("\n");
    }
    return event();
  }
  int status() {
    const auto ended = child.wait_for(kPatience);
    EXPECT_TRUE(ended) << "still running";
    return ended ? ended->shell_status() : -1;
  }

  Child child;

 private:
  std::string seen_;
};

class HoldTest : public CliTest {
 protected:
  // A holder may end before it has read all. A handler is not inherited, as ignoring would be.
  HoldTest() {
    std::signal(SIGPIPE, [](int) {});
  }
  ~HoldTest() override { std::signal(SIGPIPE, SIG_DFL); }

  Holder start_hold(Words words) const {
    words.insert(words.begin(), "hold");
    return Holder(start_piped(std::move(words)));
  }
  // One that has the lock.
  Holder hold(Words words) const {
    Holder holder = start_hold(std::move(words));
    holder.event("held");
    return holder;
  }
  // One that waits for the lock, which the test holds in another way.
  Holder wait_in_line(Words words) const {
    Holder waiter = start_hold(std::move(words));
    while (shown().at("waiters").empty() && !waiter.child.wait_for(5ms)) {
    }
    return waiter;
  }

  json shown() const { return json::parse(leasehold({"show", "x", "--json"}).out).at("lock"); }
  // Nobody has it, and nobody waits for it.
  void expect_nothing_left() const {
    const json lock = shown();
    EXPECT_EQ(lock.at("state"), "free") << lock;
    EXPECT_THAT(lock.at("waiters"), IsEmpty()) << lock;
  }
  std::size_t error_lines() const {
    const std::string text = errors();
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  }
  std::string locks_file() const { return path("leasehold/locks.db"); }
};

TEST_F(HoldTest, TellsWhatItHoldsAndReleasesWhenAsked) {
  Holder holder = start_hold({"x", "--fenced", "--ttl", "30s"});
  const json held = holder.event("held");
  const json lock = shown();
  EXPECT_EQ(lock.at("state"), "held");
  EXPECT_EQ(held.at("lock"), "x");
  EXPECT_EQ(held.at("token"), std::to_string(lock.at("holder").at("token").get<long>()));
  EXPECT_EQ(held.at("lineage"), lock.at("lineage"));
  EXPECT_EQ(held.at("request"), lock.at("holder").at("request"));
  EXPECT_EQ(held.at("ttl_ms"), 30'000);
  EXPECT_EQ(held.at("heartbeat_ms"), 10'000);
  EXPECT_GT(held.at("remaining_ms"), 20'000);
  EXPECT_LT(held.at("remaining_ms"), 30'000);
  holder.say("beat\n\nrelease\nnobody reads this\n");
  EXPECT_THAT(holder.last_events(), ::testing::ElementsAre("released"));
  EXPECT_EQ(holder.status(), 0);
  EXPECT_EQ(errors(), "");
  expect_nothing_left();
}

TEST_F(HoldTest, EndOfTheInputReleases) {
  Holder holder = start_hold({"x", "--no-heartbeat"});
  const json held = holder.event("held");
  EXPECT_TRUE(held.at("token").is_null()) << "without --fenced";
  EXPECT_TRUE(held.at("lineage").is_null());
  EXPECT_TRUE(held.at("heartbeat_ms").is_null());
  EXPECT_THAT(shown().at("holder").at("owner"), HasSubstr(":cli_test")) << "for whom it is held";
  holder.say("relea");  // died in the middle of a word
  holder.child.in().reset();
  holder.event("released");
  EXPECT_EQ(holder.status(), 0);
  expect_nothing_left();
}

TEST_F(HoldTest, KilledParentReleases) {
  process::Command what = command({"sh", "-c",
                                   "cd " + path("") +
                                       " && mkfifo in && leasehold hold x --no-heartbeat <in & "
                                       "cd " +
                                       path("") +
                                       "; until [ -p in ]; do :; done; "
                                       "exec 3>in; read line"});
  what.in = Piped{};
  what.out = Piped{};
  auto parent = Child::start(what);
  ASSERT_TRUE(parent);
  EXPECT_THAT(read_until(parent->out().get(), "\n", within(kPatience)), HasSubstr("\"held\""));
  parent->signal(SIGKILL);
  EXPECT_THAT(read_all(parent->out().get(), within(kPatience)), HasSubstr("\"released\""));
  expect_nothing_left();
}

TEST_F(HoldTest, HeartbeatsKeepIt) {
  Holder holder = hold({"x", "--ttl", "900ms", "--heartbeat", "300ms"});
  EXPECT_TRUE(holder.beat_until_event(2500ms).is_null()) << "nothing to tell";
  holder.say("release\n");
  holder.event("released");
  EXPECT_EQ(holder.status(), 0);
}

TEST_F(HoldTest, FrozenParentLosesItButNotBeforeItsTime) {
  Holder holder = hold({"x", "--ttl", "2s", "--heartbeat", "300ms"});
  Child next = start({"x", "--wait", "20s", "--", "true"});
  const json uncertain = holder.event("uncertain");
  const BootTime ends = BootClock::now() + Millis(uncertain.at("remaining_ms").get<long>());
  EXPECT_EQ(uncertain.at("cause"), "heartbeat");
  EXPECT_GT(uncertain.at("remaining_ms"), 500) << "it is not over with the heartbeat";
  ASSERT_EQ(next.wait_for(kPatience), process::ExitStatus::exited(0)) << "it was renewed on and on";
  EXPECT_GE(BootClock::now() + 20ms, ends) << "somebody else had it before its time";
  const json lost = holder.event("lost");
  EXPECT_EQ(lost.at("cause"), "heartbeat");
  EXPECT_EQ(holder.status(), 76);
  EXPECT_THAT(errors(), HasSubstr("the lease on 'x' was lost: no heartbeat came"));
}

TEST_F(HoldTest, LateHeartbeatIsInTimeWhileTheLeaseIsHeld) {
  Holder holder = hold({"x", "--ttl", "3s", "--heartbeat", "300ms"});
  for (int round = 0; round < 2; ++round) {
    const json uncertain = holder.event("uncertain");
    EXPECT_EQ(uncertain.at("cause"), "heartbeat");
    const json again = holder.beat_until_event();
    EXPECT_EQ(again.at("event"), "held") << again;
    EXPECT_GT(again.at("remaining_ms"), uncertain.at("remaining_ms")) << "it has been renewed";
  }
  EXPECT_TRUE(holder.beat_until_event(4s).is_null()) << "and is renewed as before";
  holder.say("release\n");
  EXPECT_EQ(holder.status(), 0);
}

TEST_F(HoldTest, HeartbeatAtTheVeryEndIsInTimeOrNot) {
  int kept = 0;
  int lost = 0;
  for (int offset = -8; offset <= 8; offset += 2) {
    Holder holder = hold({"x", "--ttl", "400ms", "--heartbeat", "100ms"});
    const json uncertain = holder.event("uncertain");
    const BootTime end = BootClock::now() + Millis(uncertain.at("remaining_ms").get<long>());
    while (BootClock::now() < end + Millis(offset)) {
    }
    holder.say("beat\n");
    const json after = holder.event();
    if (after.at("event") == "lost") {
      ++lost;
      EXPECT_THAT(holder.last_events(), IsEmpty()) << "lost is the last word";
      EXPECT_EQ(holder.status(), 76);
    } else {
      ++kept;
      EXPECT_EQ(after.at("event"), "held") << after;
      holder.say("release\n");
      EXPECT_EQ(holder.status(), 0) << errors();
    }
  }
  EXPECT_EQ(kept + lost, 9);
}

TEST_F(HoldTest, FrozenHolderTellsTheLossWhateverItsParentHasSentMeanwhile) {
  Holder holder = hold({"x", "--ttl", "1s"});
  holder.child.signal(SIGSTOP);
  EXPECT_EQ(leasehold({"run", "x", "--wait", "60s", "--", "true"}).status, 0);
  holder.say("beat\nbeat\nrelease\n");
  holder.child.signal(SIGCONT);
  EXPECT_EQ(holder.event("lost").at("cause"), "pause");
  EXPECT_THAT(holder.last_events(), IsEmpty());
  EXPECT_EQ(holder.status(), 76);
}

TEST_F(HoldTest, LockThatIsTakenAwayIsLost) {
  Holder holder = hold({"x", "--ttl", "3s", "--no-heartbeat"});
  ASSERT_EQ(leasehold({"release", "x", "--force"}).status, 0);
  EXPECT_EQ(holder.event("lost").at("cause"), "gone");
  EXPECT_EQ(holder.status(), 76);
}

TEST_F(HoldTest, SilentStoreMakesItUncertainAndThenHeldAgainOrLost) {
  Holder holder = hold({"x", "--ttl", "2s", "--no-heartbeat"});
  for (const bool comes_back : {true, false}) {
    std::optional<Blockade> silence(locks_file());
    const json uncertain = holder.event("uncertain");
    EXPECT_EQ(uncertain.at("cause"), "store");
    EXPECT_THAT(uncertain.at("message"), HasSubstr("another process is writing"));
    if (comes_back) silence.reset();
    const json after = holder.event(comes_back ? "held" : "lost");
    if (!comes_back) EXPECT_EQ(after.at("cause"), "store");
  }
  EXPECT_EQ(holder.status(), 76);
}

TEST_F(HoldTest, SilentStoreAndFrozenParent) {
  Holder holder = hold({"x", "--ttl", "2s", "--heartbeat", "1500ms"});
  const Blockade silence(locks_file());
  EXPECT_EQ(holder.event("uncertain").at("cause"), "store");
  EXPECT_EQ(holder.event("uncertain").at("cause"), "heartbeat");
  holder.event("lost");
  EXPECT_EQ(holder.status(), 76);
}

TEST_F(HoldTest, ReleaseThatTheStoreDoesNotAnswerIsSaid) {
  Holder holder = hold({"x", "--ttl", "1h"});
  const Blockade silence(locks_file());
  holder.child.in().reset();
  EXPECT_THAT(holder.status(), AnyOf(69, 74));
  EXPECT_THAT(holder.last_events(), IsEmpty()) << "not 'released': nobody knows";
  EXPECT_THAT(errors(), HasSubstr("lock 'x' is free after 1h"));
}

TEST_F(HoldTest, WrongLineIsOneSentenceAndReleases) {
  const std::string zero("\0\n", 2);
  for (const std::string& wrong :
       {std::string("stop\n"), std::string("{\"beat\":1}\n"), zero, std::string(60'000, 'x')}) {
    write("errors", "");
    Holder holder = hold({"x", "--ttl", "1h"});
    holder.say("beat\n" + wrong);
    holder.event("released");
    EXPECT_EQ(holder.status(), 64);
    EXPECT_EQ(error_lines(), 1u) << errors();
    EXPECT_THAT(errors(), AllOf(HasSubstr("leasehold: standard input: "), HasSubstr("'beat'")));
    expect_nothing_left();
  }
}

TEST_F(HoldTest, WhoWaitsGivesUpItsPlaceForWhateverReason) {
  struct Reason {
    const char* what;
    void (*happens)(Holder&);
    int status;
    const char* says;
  };
  const Reason reasons[] = {
      {"end of input", [](Holder& it) { it.child.in().reset(); }, 130, "standard input ended"},
      {"release", [](Holder& it) { it.say("beat\nrelease\n"); }, 130, "was to be released"},
      {"wrong line", [](Holder& it) { it.say("stop\n"); }, 64, "'stop' is not a word"},
      {"signal", [](Holder& it) { it.child.signal(SIGTERM); }, 130, "a signal came"},
      {"deaf", [](Holder& it) { it.child.out().reset(); }, 74,
       "standard output cannot be written"}};
  const Child other = start_ready(run_shell({"x"}, "echo ready; read line"));
  for (const Reason& reason : reasons) {
    write("errors", "");
    Holder waiter = wait_in_line({"x", "--wait", "1h"});
    reason.happens(waiter);
    EXPECT_EQ(waiter.status(), reason.status) << reason.what;
    EXPECT_EQ(error_lines(), 1u) << errors();
    EXPECT_THAT(errors(), HasSubstr(reason.says));
    EXPECT_THAT(shown().at("waiters"), IsEmpty()) << reason.what;
  }
}

TEST_F(HoldTest, BusyLockIsAStatusAndOneSentence) {
  const Child other = start_ready(run_shell({"x"}, "echo ready; read line"));
  Holder holder = start_hold({"x"});
  EXPECT_EQ(holder.status(), 75);
  EXPECT_THAT(holder.last_events(), IsEmpty());
  EXPECT_EQ(error_lines(), 1u) << errors();
}

TEST_F(HoldTest, SignalsRelease) {
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGQUIT}) {
    Holder holder = hold({"x", "--ttl", "1h"});
    holder.child.signal(number);
    holder.event("released");
    EXPECT_EQ(holder.status(), 130);
    expect_nothing_left();
  }
}

TEST_F(HoldTest, ClosedOutputReleases) {
  Holder holder = hold({"x", "--ttl", "1h"});
  holder.child.out().reset();
  EXPECT_EQ(holder.status(), 74);
  EXPECT_THAT(errors(), HasSubstr("standard output cannot be written any more"));
  expect_nothing_left();
}

TEST_F(HoldTest, OutputThatTakesNothingReleases) {
  for (const std::string output : {">/dev/full", ">&-", ">&- 2>&-"}) {
    process::Command what =
        command({"sh", "-c", "exec leasehold hold x --no-heartbeat --ttl 1h " + output});
    what.in = Piped{};
    auto holder = Child::start(what);
    ASSERT_TRUE(holder);
    ASSERT_EQ(holder->wait_for(20s), process::ExitStatus::exited(74)) << output;
    expect_nothing_left();
  }
}

TEST_F(HoldTest, ParentMayGoAtAnyMoment) {
  for (int step = 0; step < 18; ++step) {
    write("errors", "");
    Holder holder = start_hold({"x", "--ttl", "1h"});
    EXPECT_FALSE(holder.child.wait_for(2ms * step)) << errors();
    if (step % 3 != 0) holder.child.in().reset();
    if (step % 3 != 1) holder.child.out().reset();
    EXPECT_THAT(holder.status(), AnyOf(0, 74, 130)) << step << errors();
    EXPECT_LE(error_lines(), 1u) << errors();
    expect_nothing_left();
  }
}

TEST_F(HoldTest, UnreadEventsDoNotKeepALeaseAlive) {
  const process::Pipe pipe = make_full_pipe();
  process::Command what =
      command({LEASEHOLD_PROGRAM, "hold", "x", "--ttl", "1s", "--heartbeat", "100ms"});
  what.in = Piped{};
  what.out = process::FromFd{pipe.write.get()};
  auto holder = Child::start(what);
  ASSERT_TRUE(holder);
  EXPECT_EQ(holder->wait_for(kPatience), process::ExitStatus::exited(76));
}

}  // namespace
}  // namespace leasehold::cli
