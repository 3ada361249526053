// leasehold outbox on a SQLite database, with real relays that are frozen and killed.
#include <nlohmann/json.hpp>

#include "cli/tests/cli_fixture.h"

namespace leasehold::cli {
namespace {

using nlohmann::json;

class OutboxTest : public CliTest {
 protected:
  OutboxTest() {
    sql("CREATE TABLE payment(id)");
    EXPECT_EQ(leasehold({"outbox", "install", url()}).status, 0);
  }

  std::string url() const { return "sqlite:" + path("app.db"); }
  std::string sql(const std::string& text) const {
    const Finished done = finish({"sqlite3", "-cmd", ".timeout 10000", path("app.db"), text});
    EXPECT_EQ(done.err, "");
    return done.out;
  }
  // The work and the message, in one transaction.
  void pay(const std::string& key, const std::string& payload) const {
    sql("BEGIN; INSERT INTO payment VALUES(1); INSERT INTO leasehold_outbox(key, topic, payload,"
        " idempotency_key) VALUES('" +
        key + "', 'paid', '" + payload + "', 'id-" + payload + "'); COMMIT;");
  }

  Words relay_words(const std::string& command, Words more = {}) const {
    Words words = {"leasehold", "outbox", "relay", url(), "--pause",
                   "1ms",       "--poll", "5ms",   "-c",  command};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  // To its end.
  Finished relay(const std::string& command, Words more = {}) const {
    more.push_back("--until-empty");
    return finish(relay_words(command, more));
  }
  Child start_relay(const std::string& shell_command, Words more = {}) const {
    process::Command how = command(relay_words(shell_command, more));
    how.out = Piped{};
    how.err = process::ToFile{path("relay.err")};
    auto child = Child::start(how);
    EXPECT_TRUE(child) << "the relay did not start";
    return std::move(*child);
  }
  json shown() const { return json::parse(leasehold({"outbox", "show", url(), "--json"}).out); }
  // A command that appends the payload to the file, and a newline.
  std::string append_to(const std::string& file) const { return "(cat; echo) >> " + path(file); }
};

TEST_F(OutboxTest, CommandGetsTheMessage) {
  pay("order/1", "hello");
  const Finished done = relay(
      "echo \"$LEASEHOLD_OUTBOX_KEY $LEASEHOLD_OUTBOX_TOPIC $LEASEHOLD_OUTBOX_ID "
      "$LEASEHOLD_IDEMPOTENCY_KEY $LEASEHOLD_TOKEN $(cat)\"");
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_EQ(done.out, "order/1 paid 1 id-hello 1 hello\n");
  EXPECT_EQ(shown().at("waiting"), 0);
  EXPECT_EQ(shown().at("delivered"), 1);
}

TEST_F(OutboxTest, LargePayloadOfACommandThatDoesNotRead) {
  sql("INSERT INTO leasehold_outbox(key, topic, payload) VALUES('a', 't', zeroblob(1048576))");
  EXPECT_EQ(relay("test $(wc -c) = 1048576").status, 0);
  sql("INSERT INTO leasehold_outbox(key, topic, payload) VALUES('a', 't', zeroblob(1048576))");
  EXPECT_EQ(relay("true").status, 0);
}

TEST_F(OutboxTest, PoisonedMessageIsSetAsideAndSkipped) {
  pay("bad", "poison");
  pay("bad", "after");
  pay("fine", "one");
  const std::string command =
      "p=$(cat); test \"$p\" != poison || { echo no >&2; exit 9; }; echo $p >> " + path("came");
  const Finished done = relay(command, {"--attempts", "3"});
  EXPECT_EQ(done.status, 65);
  EXPECT_THAT(done.err, HasSubstr("1 message is set aside; see 'leasehold outbox show " + url()));
  EXPECT_EQ(read("came"), "one\n");
  const json problem = shown().at("set_aside").at(0);
  EXPECT_EQ(problem.at("id"), 1);
  EXPECT_EQ(problem.at("attempts"), 3);
  EXPECT_EQ(problem.at("behind"), 1);
  EXPECT_EQ(problem.at("last_error"), "the command exited with status 9");
  EXPECT_THAT(leasehold({"outbox", "show", url()}).out,
              AllOf(HasSubstr("waiting 2, delivered 1"), HasSubstr("exited with status 9")));

  EXPECT_EQ(leasehold({"outbox", "retry", url(), "1"}).status, 0);
  EXPECT_EQ(relay(command, {"--attempts", "1"}).status, 65) << "it is as bad as before";
  EXPECT_EQ(leasehold({"outbox", "skip", url(), "1"}).status, 64) << "not without --force";
  EXPECT_EQ(leasehold({"outbox", "skip", url(), "1", "--force"}).status, 0);
  EXPECT_EQ(relay(command).status, 0);
  EXPECT_EQ(read("came"), "one\nafter\n");
}

TEST_F(OutboxTest, Status75IsNotNowAndNotCounted) {
  pay("a", "one");
  const Finished done = relay(
      "echo x >> " + path("tries") + "; test $(wc -l < " + path("tries") + ") -ge 4 || exit 75",
      {"--attempts", "1", "-v"});
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_EQ(read("tries"), "x\nx\nx\nx\n");
  EXPECT_THAT(done.err, HasSubstr("could not be delivered now"));
}

TEST_F(OutboxTest, CommandThatHangsIsEndedWithItsChildren) {
  pay("a", "one");
  const Finished done = relay("sleep 1000 & sleep 1000", {"--attempts", "1", "--timeout", "100ms"});
  EXPECT_EQ(done.status, 65);
  EXPECT_THAT(shown().at("set_aside").at(0).at("last_error").get<std::string>(),
              HasSubstr("took too long"));
}

// As when a service is ended: everybody in it gets the signal.
TEST_F(OutboxTest, CommandThatEndsBecauseTheRelayIsEndedIsNoFailure) {
  pay("a", "one");
  const Finished done = relay("kill -TERM $PPID; kill -TERM $$", {"--attempts", "1"});
  EXPECT_THAT(done.err, Not(HasSubstr("set aside")));
  EXPECT_EQ(shown().at("waiting"), 1);
  EXPECT_EQ(shown().at("set_aside").size(), 0u);
}

TEST_F(OutboxTest, SecondRelayIsBusyAndTakesOverFromADeadOne) {
  pay("a", "one");
  Child first = start_relay("echo ready; exec sleep 1000", {"--ttl", "3s"});
  read_until(first.out().get(), "ready", within(kPatience));
  EXPECT_EQ(relay("true").status, 75);
  first.signal(SIGKILL);
  first.wait();
  EXPECT_EQ(relay(append_to("came"), {"--wait", "30s"}).status, 0);
  EXPECT_EQ(read("came"), "one\n");
}

// Frozen in the middle of a delivery until another relay has done its work: the old one must not
// mark, and must say so.
TEST_F(OutboxTest, FrozenRelayMarksNothingWhenItWakes) {
  pay("a", "one");
  pay("a", "two");
  write("gate", "");
  Child old = start_relay("echo ready; while test -e " + path("gate") + "; do sleep 0.01; done",
                          {"--ttl", "3s", "-v"});
  read_until(old.out().get(), "ready", within(kPatience));
  old.signal(SIGSTOP);
  // The new one fails at 'two', so that a mark by the old one would be seen.
  const Finished now = relay("p=$(cat); echo $p >> " + path("came") + "; test $p = one",
                             {"--wait", "30s", "--attempts", "1"});
  EXPECT_EQ(now.status, 65) << now.err;
  EXPECT_EQ(finish({"rm", path("gate")}).status, 0);
  old.signal(SIGCONT);
  const auto status = old.wait_for(kPatience);
  ASSERT_TRUE(status);
  EXPECT_EQ(status->shell_status(), 76) << read("relay.err");
  EXPECT_EQ(read("came"), "one\ntwo\n");
  EXPECT_EQ(shown().at("delivered"), 1);
  EXPECT_EQ(shown().at("set_aside").at(0).at("attempts"), 1);
}

TEST_F(OutboxTest, SigtermEndsAfterTheDelivery) {
  pay("a", "one");
  pay("a", "two");
  write("gate", "");
  Child running = start_relay("echo ready; while test -e " + path("gate") +
                              "; do sleep 0.01; done; " + append_to("came"));
  read_until(running.out().get(), "ready", within(kPatience));
  running.signal(SIGTERM);
  EXPECT_EQ(finish({"rm", path("gate")}).status, 0);
  const auto status = running.wait_for(kPatience);
  ASSERT_TRUE(status);
  EXPECT_EQ(status->shell_status(), 0);
  EXPECT_THAT(read("came"), ::testing::StartsWith("one\n"));
  EXPECT_EQ(relay("true").status, 0) << "the lock was given back";
}

TEST_F(OutboxTest, UntilEmptyThatIsEndedBeforeSaysThatMessagesWait) {
  pay("a", "one");
  pay("a", "two");
  const std::string end_it = "kill -TERM $PPID; " + append_to("came");
  const Finished done = relay(end_it);
  EXPECT_EQ(done.status, 66) << done.err;
  EXPECT_THAT(done.err, HasSubstr("not empty: 1 message still waits"));
  EXPECT_EQ(relay(end_it).status, 0) << "the last one was delivered: it is empty";
  EXPECT_EQ(read("came"), "one\ntwo\n");
}

TEST_F(OutboxTest, UntilEmptyThatIsEndedWhileItWaitsForTheLockSaysThatMessagesWait) {
  pay("a", "one");
  Child first = start_relay("echo ready; exec sleep 1000");
  read_until(first.out().get(), "ready", within(kPatience));
  process::Command how =
      command(relay_words("true", {"--until-empty", "--wait", "1h", "--verbose"}));
  how.err = Piped{};
  auto second = Child::start(how);
  ASSERT_TRUE(second);
  read_until(second->err().get(), "held by", within(kPatience));
  second->signal(SIGTERM);
  const auto status = second->wait_for(kPatience);
  ASSERT_TRUE(status);
  EXPECT_EQ(status->shell_status(), 66);
  first.signal(SIGKILL);
}

TEST_F(OutboxTest, UntilEmptyGivesUpWhenNothingCanBeDelivered) {
  pay("poison", "x");
  pay("a", "one");
  pay("b", "two");
  const Finished done = relay("p=$(cat); test $p != x || exit 1; test $p = two && echo $p >> " +
                                  path("came") + " || exit 75",
                              {"--give-up-after", "1s", "--attempts", "1"});
  EXPECT_EQ(done.status, 66) << done.err;
  EXPECT_THAT(done.err, HasSubstr("not empty: 1 message still waits"));
  EXPECT_EQ(read("came"), "two\n");
  EXPECT_EQ(leasehold({"outbox", "relay", url(), "-c", "true", "--give-up-after", "1s"}).status,
            64);
}

TEST_F(OutboxTest, KilledBetweenCommitAndDeliveryTheMessageStillComes) {
  EXPECT_EQ(
      shell("sqlite3 " + path("app.db") +
            " \"BEGIN; INSERT INTO payment VALUES(7); INSERT INTO leasehold_outbox(key, topic,"
            " payload, idempotency_key) VALUES('o', 'paid', 'seven', 'p7'); COMMIT;\";"
            " kill -9 $$")
          .status,
      137);
  EXPECT_EQ(relay(append_to("came")).status, 0);
  EXPECT_EQ(read("came"), "seven\n");
}

// Answers with the status in the path and prints what it got.
constexpr const char* kHttpServer = R"py(
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        names = ("Idempotency-Key", "Leasehold-Outbox-Key", "Leasehold-Outbox-Topic",
                 "Leasehold-Token", "Content-Type")
        print(*[self.headers[name] for name in names], body, flush=True)
        status = [int(code) for code in self.path[1:].split("-")]
        self.server.turn = getattr(self.server, "turn", -1) + 1
        self.send_response(status[min(self.server.turn, len(status) - 1)])
        self.end_headers()
    def log_message(self, *ignored): pass
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
)py";

class HttpReceiver {
 public:
  explicit HttpReceiver(process::Command command) {
    command.out = Piped{};
    auto child = Child::start(command);
    if (!child) throw std::runtime_error(child.error().message);
    child_.emplace(std::move(*child));
    const std::string line = read_until(child_->out().get(), "\n", within(kPatience));
    address_ = "http://127.0.0.1:" + line.substr(0, line.find('\n'));
  }
  std::string url(const std::string& statuses) const { return address_ + "/" + statuses; }
  // All that came; ends the server.
  std::string received() {
    child_->signal(SIGKILL);
    return read_all(child_->out().get(), within(kPatience));
  }

 private:
  std::optional<Child> child_;
  std::string address_;
};

class OutboxHttpTest : public OutboxTest {
 protected:
  Finished send(const std::string& to, Words more = {}) const {
    Words words = {"outbox", "relay", url(),           "--pause", "1ms",
                   "--poll", "5ms",   "--until-empty", "--to",    to};
    words.insert(words.end(), more.begin(), more.end());
    return leasehold(words);
  }
  HttpReceiver receiver_{command({"python3", "-c", kHttpServer})};
};

TEST_F(OutboxHttpTest, MessageIsPostedWithItsIdempotencyKey) {
  pay("order/1", "hello");
  const Finished done = send(receiver_.url("202"), {"--content-type", "text/plain"});
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_EQ(receiver_.received(), "id-hello order/1 paid 1 text/plain hello\n");
}

TEST_F(OutboxHttpTest, ReceiverThatIsOverloadedIsAskedAgainAndRefusalIsCounted) {
  pay("a", "one");
  EXPECT_EQ(send(receiver_.url("503-429-200"), {"--attempts", "1"}).status, 0);
  pay("a", "two");
  EXPECT_EQ(send(receiver_.url("422"), {"--attempts", "2"}).status, 65);
  EXPECT_EQ(shown().at("set_aside").at(0).at("last_error"),
            "the receiver answered with status 422");
  EXPECT_EQ(leasehold({"outbox", "retry", url(), "2"}).status, 0);
  EXPECT_EQ(send(receiver_.url("302"), {"--attempts", "1"}).status, 65)
      << "a redirection is no delivery";
}

TEST_F(OutboxHttpTest, SettingsOfCurlAreLeftAlone) {
  pay("a", "one");
  write(".curlrc", "url = \"" + receiver_.url("200") + "\"\n");
  const Finished done =
      finish({"env", "CURL_HOME=" + path(""), "leasehold", "outbox", "relay", url(), "--to",
              receiver_.url("200"), "--until-empty", "--attempts", "1"});
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_EQ(receiver_.received(), "id-one a paid 1 application/octet-stream one\n");
}

TEST_F(OutboxHttpTest, KeyThatAHeaderWouldChangeIsNotSent) {
  sql("INSERT INTO leasehold_outbox(key, topic, payload, idempotency_key)"
      " VALUES('a', 't', 'x', ' 7')");
  EXPECT_EQ(send(receiver_.url("200"), {"--attempts", "1"}).status, 65);
  EXPECT_THAT(shown().at("set_aside").at(0).at("last_error").get<std::string>(),
              HasSubstr("begins or ends with a blank"));
  EXPECT_EQ(receiver_.received(), "");
}

TEST_F(OutboxHttpTest, WrongUrlIsRefused) {
  const Finished secret = send("http://me:hunter2@127.0.0.1/");
  EXPECT_EQ(secret.status, 64);
  EXPECT_THAT(secret.err, AllOf(HasSubstr("list of processes"), Not(HasSubstr("hunter2"))));
  EXPECT_EQ(send("http:///x").status, 64);
  EXPECT_EQ(relay("true", {"--content-type", "x"}).status, 64);
}

TEST_F(OutboxTest, AFileOfLocksIsNoPlaceForMessages) {
  ASSERT_EQ(leasehold({"run", "x", "--store", store(), "--", "true"}).status, 0);
  for (const char* what : {"outbox", "fence"}) {
    const Finished refused = leasehold({what, "install", store()});
    EXPECT_EQ(refused.status, 64);
    EXPECT_THAT(refused.err, HasSubstr("locks.db is a file of locks; the " + std::string(what)));
  }
}

TEST_F(OutboxTest, KeepsTheFenceThatItNeeds) {
  const Finished refused = leasehold({"fence", "remove", url(), "--force"});
  EXPECT_EQ(refused.status, 64);
  EXPECT_THAT(refused.err, HasSubstr("the outbox in this database needs the fence"));
  pay("a", "one");
  EXPECT_EQ(relay("true").status, 0);
  sql(refused.err.substr(refused.err.find("DROP TABLE")));
  EXPECT_EQ(leasehold({"fence", "remove", url(), "--force"}).status, 0);
  EXPECT_EQ(leasehold({"outbox", "install", url()}).status, 0);
  pay("a", "two");
  EXPECT_EQ(relay("true").status, 0) << "all of it is there again";
}

TEST_F(OutboxTest, AnotherLockIsRefusedWithTheCommandThatWouldAdoptIt) {
  ASSERT_EQ(relay("true").status, 0);
  const Finished other = relay("true", {"--lock", "other"});
  EXPECT_EQ(other.status, 76);
  const std::string command =
      other.err.substr(std::min(other.err.find("leasehold fence adopt"), other.err.size()));
  EXPECT_THAT(command, HasSubstr(" '" + url() + "' --lineage '"));
  EXPECT_EQ(shell(command.substr(0, command.find('`'))).status, 0) << command;
  EXPECT_EQ(relay("true", {"--lock", "other"}).status, 0);
}

TEST_F(OutboxTest, WhatIsWrongIsSaidInOneSentence) {
  const auto said = [&](Words words, int status, const std::string& what) {
    words.insert(words.begin(), "outbox");
    const Finished done = leasehold(words);
    EXPECT_EQ(done.status, status) << done.err;
    EXPECT_THAT(done.err, HasSubstr(what));
  };
  said({"relay", url()}, 64, "with --command or --to");
  said({"relay", url(), "-c", "x", "--to", "redis://h?stream=s"}, 64, "do not go together");
  said({"relay", url(), "-c", "sh", "./x"}, 64, "one argument: --command 'sh ./x'");
  said({"relay", url(), "--", "sh", "./x"}, 64, "one argument: --command 'sh ./x'");
  said({"relay", url(), "-c", "x", "--attempts", "0"}, 64, "whole number from 1");
  said({"relay", url(), "-c", "x", "--poll", "0"}, 64,
       "--poll: '0' is out of range: it must be at least 1ms");
  said({"relay", url(), "-c", "x", "--ttl", "1ms"}, 64, "100ms");
  said({"relay", url(), "-c", "x", "--lock", ""}, 64, "lock name");
  said({"relay", url(), "--to", "sqlite:x"}, 64, "--to takes an http:// or https:// URL, or redis");
  said({"relay", url(), "--to", "ftp://x"}, 64, "--to takes an http:// or https:// URL, or redis");
  said({"relay", "sqlite:" + path("none.db"), "-c", "x"}, 69, "there is no database");
  said({"show", "redis://localhost"}, 77, "there is no outbox for 'redis'");
  said({"retry", url(), "1x"}, 64, "is not the id of a message");
  said({"retry", url(), "1"}, 64, "is not set aside");
  finish({"sqlite3", path("empty.db"), "CREATE TABLE x(y)"});
  said({"show", "sqlite:" + path("empty.db")}, 69, "outbox install");
  said({"relay", "sqlite:" + path("empty.db"), "-c", "x"}, 69, "outbox install");
}

}  // namespace
}  // namespace leasehold::cli
