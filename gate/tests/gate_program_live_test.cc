// The program itself: killed at any step, started again, told what to do.
#include <gmock/gmock.h>
#include <unistd.h>

#include <fstream>
#include <random>
#include <sstream>

#include "gate_fixture.h"
#include "leasehold/process/child.h"
#include "ledger_format.h"
#include "rig/port.h"
#include "rig/server_process.h"
#include "state_folder.h"
#include "text.h"

namespace leasehold::gate {
namespace {

using leasehold::rig::Port;
using leasehold::rig::ServerProcess;
using process::Child;
using process::Piped;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using namespace std::chrono_literals;

struct Finished {
  int status = -1;
  std::string out;
  std::string err;
};

class GateProgramTest : public GateTest {
 protected:
  std::string state() const { return folder_.file("state"); }

  std::vector<std::string> command(std::vector<std::string> more = {}) const {
    std::vector<std::string> argv = {LEASEHOLD_PROGRAM, "gate",       "--listen",
                                     port_.address(),   "--upstream", upstream_->url(),
                                     "--state",         state()};
    argv.insert(argv.end(), more.begin(), more.end());
    return argv;
  }
  ServerProcess start(std::vector<std::string> more = {}) const {
    return ServerProcess({.argv = command(std::move(more)),
                          .log = folder_.file("gate.log"),
                          .answers = [this] { return leasehold::rig::accepts(port_.number()); }});
  }
  Finished run(std::vector<std::string> argv) const {
    argv.insert(argv.begin(), LEASEHOLD_PROGRAM);
    auto child =
        Child::start({.argv = argv, .in = process::Null{}, .out = Piped{}, .err = Piped{}});
    if (!child) return {};
    std::string err;
    std::thread errors([&] { err = process::read_all(child->err().get()); });
    std::string out = process::read_all(child->out().get());
    errors.join();
    return {child->wait().shell_status(), out, err};
  }
  HttpClient to_gate() const { return HttpClient(port_.number()); }
  void answer_everything() {
    upstream_->answer_by([](Arrival& arrival) {
      arrival.answer(200);
      return true;
    });
  }

  Port port_ = Port::take();
};

TEST_F(GateProgramTest, KilledWithARequestOnItsWayItAnswers503UntilCleared) {
  auto gate = start();
  HttpClient holder = to_gate();
  holder.send(request_text("PUT /a", with_token(33, 1), "Content-Length: 1\r\n\r\nx"));
  const auto arrival = upstream_->next();
  ASSERT_TRUE(arrival);
  gate.kill();
  EXPECT_EQ(holder.reply().status, 0);
  gate.start();
  arrival->answer(200);
  const int before = upstream_->arrived();
  HttpClient next = to_gate();
  EXPECT_EQ(type_of(next.ask("GET", "/a", with_token(34, 2))), "unanswered");
  EXPECT_EQ(type_of(next.ask("PUT", "/a", with_token(33, 1), "x")), "unanswered");
  EXPECT_EQ(next.ask("PUT", "/a", with_token(32, 1), "x").status, 409) << "the mark is there too";
  EXPECT_EQ(upstream_->arrived(), before);

  EXPECT_EQ(run({"gate", "--state", state(), "--unanswered"}).out, "a\n");
  const Finished cleared = run({"gate", "--state", state(), "--clear", "a"});
  EXPECT_EQ(cleared.status, 0) << cleared.err;
  EXPECT_EQ(cleared.out, "'a' is cleared\n");
  answer_everything();
  EXPECT_EQ(next.ask("PUT", "/a", with_token(34, 2), "y").status, 200);
  EXPECT_EQ(run({"gate", "--state", state(), "--clear", "a"}).status, 64) << "nothing to clear";
}

// Whatever the service has seen and not answered is behind a 503 after the crash, and no mark is
// lower than what the service has seen.
TEST_F(GateProgramTest, KilledAtAnyStep) {
  auto gate = start();
  std::minstd_rand random(7);
  std::int64_t number = 0;
  std::atomic<std::int64_t> seen = 0;
  std::atomic<bool> silent = false;
  upstream_->answer_by([&](Arrival& arrival) {
    const std::size_t at = arrival.head.find("Leasehold-Token: ");
    seen = std::stoll(arrival.head.substr(at + 17));
    if (silent) {
      arrival.finish();  // it goes on without a word
      return true;
    }
    arrival.answer(200);
    return true;
  });
  for (int round = 0; round < 30; ++round) {
    silent = false;
    std::atomic<std::int64_t> answered = 0;
    std::atomic<std::int64_t> sent = number;
    std::thread holder([&] {
      HttpClient client(port_.number());
      for (std::int64_t mine = number + 1;; ++mine) {
        sent = mine;
        try {
          if (client.ask("PUT", "/a", with_token(mine, 1), "x").status != 200) return;
        } catch (const std::exception&) {
          return;
        }
        answered = mine;
        answered.notify_all();
      }
    });
    const int let = std::uniform_int_distribution<int>(1, 8)(random);
    while (answered < number + let) answered.wait(answered);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 1500));
    const bool mute = round % 2 == 0;
    if (mute) {
      silent = true;  // now certainly one gets no answer
      while (seen <= answered) std::this_thread::yield();
    }
    gate.kill();
    holder.join();
    upstream_->wait_until_quiet();
    gate.start();
    const std::int64_t last_seen = seen;
    HttpClient next = to_gate();
    EXPECT_EQ(next.ask("PUT", "/a", with_token(last_seen - 1, 1), "x").status, 409)
        << "the mark is at least what the service has seen";
    const auto shut = unanswered(state());
    ASSERT_TRUE(shut);
    if (last_seen > answered) {
      ASSERT_EQ(shut->size(), 1u) << "seen " << last_seen << ", answered " << answered;
      EXPECT_EQ(next.ask("PUT", "/a", with_token(sent + 1, 1), "x").status, 503);
      EXPECT_EQ(seen, last_seen);
    }
    if (!shut->empty()) {
      ASSERT_TRUE(clear_unanswered(state(), name("a")));
    }
    number = sent;
  }
}

// The service of the step tests: answers everything, and remembers the highest token.
class SeenTokens {
 public:
  explicit SeenTokens(ScriptedUpstream& upstream) {
    upstream.answer_by([this](Arrival& arrival) {
      const std::size_t at = arrival.head.find("Leasehold-Token: ");
      highest_ = std::stoll(arrival.head.substr(at + 17));
      arrival.answer(200);
      return true;
    });
  }
  std::int64_t highest() const { return highest_; }

 private:
  std::atomic<std::int64_t> highest_ = 0;
};

// SIGKILL at the n-th call of one kind, for every n that two holders' writes come to: so at every
// point where the gate writes its ledger, syncs it, or sends and receives anything.
TEST_F(GateProgramTest, KilledBetweenAnyTwoSteps) {
  int kills = 0;
  int shut = 0;
  for (const std::string call : {"pwrite64", "fdatasync", "connect", "sendmsg", "sendto", "recvmsg",
                                 "recvfrom", "futex", "epoll_wait", "write"}) {
    for (int n = 1;; ++n) {
      const std::string where = call + " " + std::to_string(n);
      const SeenTokens seen(*upstream_);
      std::filesystem::remove_all(state());
      std::vector<std::string> argv = {"strace", "-f", "-qq", "-o", "/dev/null"};
      argv.insert(argv.end(),
                  {"-e", "inject=" + call + ":signal=SIGKILL:when=" + std::to_string(n)});
      for (std::string& word : command()) argv.push_back(std::move(word));
      auto traced = Child::start({.argv = argv,
                                  .in = process::Null{},
                                  .out = process::Null{},
                                  .err = process::ToFile{folder_.file("gate.log"), true},
                                  .placement = process::Placement::own_group,
                                  .parent_death_signal = SIGKILL});
      ASSERT_TRUE(traced) << traced.error().message;
      while (!leasehold::rig::accepts(port_.number()) && !traced->poll()) {
      }
      std::int64_t answered = 0;
      for (const std::int64_t token : {33, 34}) {
        try {
          if (to_gate().ask("PUT", "/a", with_token(token, 1), "x").status != 200) break;
        } catch (const std::exception&) {
          break;  // it is gone already
        }
        answered = token;
      }
      const bool survived = answered == 34 && !traced->wait_for(0s);
      traced->signal_group(SIGKILL);
      traced->wait();
      while (!FolderLock::take(StateFolder{state()})) {  // strace has ended, the gate perhaps not
      }
      upstream_->wait_until_quiet();
      if (survived) break;
      ++kills;

      auto gate = start();
      const auto names = unanswered(state());
      ASSERT_TRUE(names) << where << gate.log();
      const std::int64_t reached = seen.highest();
      if (reached > answered) {
        ++shut;
        EXPECT_THAT(*names, ::testing::ElementsAre(name("a"))) << where;
        EXPECT_EQ(to_gate().ask("PUT", "/a", with_token(35, 2), "y").status, 503) << where;
        EXPECT_EQ(seen.highest(), reached) << where;
      }
      if (reached > 0) {
        EXPECT_EQ(to_gate().ask("PUT", "/a", with_token(reached - 1, 3), "z").status, 409) << where;
      }
      if (!names->empty()) {
        EXPECT_TRUE(clear_unanswered(state(), name("a"))) << where;
      }
      EXPECT_EQ(to_gate().ask("PUT", "/a", with_token(35, 2), "y").status, 200) << where;
      gate.kill();
      upstream_->wait_until_quiet();
    }
  }
  EXPECT_GT(kills, 20);
  EXPECT_GT(shut, 2);
  RecordProperty("kills", kills);
  RecordProperty("shut", shut);
}

TEST_F(GateProgramTest, WhatIsAnsweredIsClosedSoon) {
  auto gate = start();
  answer_everything();
  HttpClient holder = to_gate();
  EXPECT_EQ(holder.ask("PUT", "/a", with_token(33, 1), "x").status, 200);
  // It is noted as closed in the background; once it is, a crash leaves nothing to clear.
  bool open = true;
  while (open) {
    std::ifstream file(state() + "/ledger", std::ios::binary);
    std::stringstream bytes;
    bytes << file.rdbuf();
    const auto image = decode_ledger(bytes.str());
    ASSERT_TRUE(image);
    open = image->states.at(name("a")).open;
  }
  gate.kill();
  gate.start();
  HttpClient next = to_gate();
  EXPECT_EQ(next.ask("PUT", "/a", with_token(33, 1), "x").status, 200);
}

TEST_F(GateProgramTest, SigtermEndsItWithStatus0) {
  auto child =
      Child::start({.argv = command(), .in = process::Null{}, .out = Piped{}, .err = Piped{}});
  ASSERT_TRUE(child);
  const std::string said =
      process::read_until(child->err().get(), port_.address() + "\n", process::within(30s));
  EXPECT_THAT(said, AllOf(HasSubstr("no mark is known yet"), HasSubstr("listening on ")));
  HttpClient holder = to_gate();
  holder.send(request_text("PUT /a", with_token(33, 1), "Content-Length: 1\r\n\r\nx"));
  const auto arrival = upstream_->next();
  child->signal(SIGTERM);
  EXPECT_THAT(process::read_until(child->err().get(), "stopping\n", process::within(30s)),
              HasSubstr("stopping"));
  arrival->answer(200, "done");
  EXPECT_EQ(holder.reply().body, "done");
  EXPECT_EQ(child->wait().shell_status(), 0);
}

TEST_F(GateProgramTest, ShowAndAdoptWithAndWithoutAGate) {
  const std::string url = "gate:" + state();
  Finished done = run({"fence", "show", url});
  EXPECT_EQ(done.status, 69);
  EXPECT_THAT(done.err, HasSubstr("there is no gate's ledger"));
  EXPECT_EQ(run({"fence", "install", url}).status, 0);
  EXPECT_EQ(run({"fence", "install", url}).status, 0);
  const std::string lineage = test_lineage(2).str();
  done = run({"fence", "adopt", url, "a", "--lineage", lineage, "--at-least", "10"});
  EXPECT_EQ(done.status, 0) << done.err;
  {
    auto gate = start();
    answer_everything();
    HttpClient holder = to_gate();
    EXPECT_EQ(holder.ask("PUT", "/a", with_token(33, 1), "x").status, 409) << "another lineage";
    EXPECT_EQ(holder.ask("PUT", "/b", with_token(33, 1), "x").status, 200);
    done = run({"fence", "adopt", url, "b", "--lineage", lineage, "--at-least", "7"});
    EXPECT_EQ(done.status, 0) << done.err;
    EXPECT_EQ(holder.ask("PUT", "/b", with_token(34, 1), "x").status, 409) << "from now on";
    EXPECT_EQ(holder.ask("PUT", "/b", token_fields(test_token(7, 1, test_lineage(2))), "x").status,
              200);
    done = run({"fence", "adopt", url, "b", "--lineage", lineage, "--at-least", "6"});
    EXPECT_EQ(done.status, 64);
    EXPECT_THAT(done.err, HasSubstr("would let stale holders in"));
    EXPECT_EQ(run({"fence", "install", url}).status, 0) << "also while it runs";
  }
  done = run({"fence", "show", url, "--json"});
  EXPECT_EQ(done.status, 0) << done.err;
  const auto json = nlohmann::json::parse(done.out);
  EXPECT_EQ(json["fences"][0]["refused"], 1);
  EXPECT_EQ(json["fences"][1]["token"], 7);
}

TEST_F(GateProgramTest, WrongInput) {
  const auto fails = [&](std::vector<std::string> argv, int status, const std::string& says) {
    argv.insert(argv.begin(), "gate");
    const Finished done = run(argv);
    EXPECT_EQ(done.status, status) << done.err;
    EXPECT_EQ(done.out, "");
    EXPECT_THAT(done.err, AllOf(StartsWith("leasehold: "), HasSubstr(says)));
    EXPECT_EQ(std::count(done.err.begin(), done.err.end(), '\n'), 1) << done.err;
  };
  const std::string up = "http://127.0.0.1:1";
  fails({}, 64, "--state");
  fails({"--state", state()}, 64, "--listen");
  fails({"--state", state(), "--listen", "127.0.0.1:0"}, 64, "--upstream");
  fails({"--state", state(), "--listen", "nowhere", "--upstream", up}, 64, "nowhere");
  fails({"--state", state(), "--listen", "127.0.0.1:0", "--upstream", "https://a"}, 64, "TLS");
  fails({"--state", state(), "--listen", "127.0.0.1:0", "--upstream", up, "--resource", "/x"}, 64,
        "{resource}");
  fails({"--state", "/proc/no", "--listen", "127.0.0.1:0", "--upstream", up}, 69, "/proc/no");
  fails({"--state", state(), "--clear", "a"}, 69, "there is no gate's ledger");
  fails({"--state", state(), "--clear", ""}, 64, "resource name");
  fails({"--state", state(), "--listen", "127.0.0.1:" + std::to_string(upstream_->port()),
         "--upstream", up},
        69, "cannot listen on");
  const auto gate = start();
  fails({"--state", state(), "--listen", "127.0.0.1:0", "--upstream", up}, 69,
        "in use by another gate");
}

TEST_F(GateProgramTest, ADamagedLedgerIsNotStartedFrom) {
  start();
  {
    std::fstream file(state() + "/ledger", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(kBlockBytes + 20);
    file << "damage";
  }
  const Finished done = run(
      {"gate", "--state", state(), "--listen", "127.0.0.1:0", "--upstream", "http://127.0.0.1:1"});
  EXPECT_EQ(done.status, 69);
  EXPECT_THAT(done.err, HasSubstr("damaged"));
}

TEST_F(GateProgramTest, LongFolderNames) {
  std::string deep = folder_.file("");
  for (int i = 0; i < 5; ++i) {
    deep += std::string(60, 'd') + "/";
    std::filesystem::create_directory(deep);
  }
  GateOptions far = options();
  far.state = deep + "state";
  start_gate(std::move(far));
  Pending lost = ask_later("PUT", "/a", with_token(33, 1), "x");
  upstream_->next()->hang_up();
  EXPECT_EQ(lost.get().status, 502);
  EXPECT_TRUE(clear_unanswered(deep + "state", name("a")));
}

}  // namespace
}  // namespace leasehold::gate
