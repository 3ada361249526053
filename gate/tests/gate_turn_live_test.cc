// The fence through real sockets: who passes, who waits, who is refused.
#include <unistd.h>

#include <random>

#include "gate_fixture.h"
#include "text.h"

namespace leasehold::gate {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class GateTurnTest : public GateTest {
 protected:
  // Until the token has come to /a, whether it passes or waits.
  void wait_for_mark(std::int64_t mark) {
    HttpClient zombie = client();
    Reply late;
    do {
      late = zombie.ask("GET", "/a", with_token(mark - 1, 9));
    } while (problem(late)["mark"] != mark);
  }
  // Its request has 100000 bytes to come, and its answer already.
  HttpClient answered_early() {
    start_gate_without_bodies();
    HttpClient holder = client();
    holder.send(request_text("PUT /a", with_token(33, 1), "Content-Length: 100005\r\n\r\nbegin"));
    upstream_->next()->answer(200, "yes");
    EXPECT_EQ(holder.reply_and_stay().body, "yes");
    return holder;
  }
};

TEST_F(GateTurnTest, TheZombieIsRefusedAlsoBeforeTheNewHolderHasWritten) {
  start_gate();
  answer_everything("text");
  HttpClient zombie = client();
  HttpClient holder = client();
  EXPECT_EQ(zombie.ask("PUT", "/a", with_token(33, 1), "x").status, 200);
  EXPECT_EQ(holder.ask("GET", "/a", with_token(34, 2)).body, "text");
  const int before = upstream_->arrived();
  const Reply refused = zombie.ask("PUT", "/a", with_token(33, 1), "zombie");
  EXPECT_EQ(refused.status, 409);
  const auto json = problem(refused);
  EXPECT_EQ(json["type"], "urn:leasehold:gate:fenced-out");
  EXPECT_EQ(json["offered"], 33);
  EXPECT_EQ(json["mark"], 34);
  EXPECT_EQ(json["resource"], "a");
  EXPECT_EQ(zombie.ask("GET", "/a", with_token(33, 1)).status, 409) << "on the same connection";
  EXPECT_EQ(upstream_->arrived(), before);
  EXPECT_EQ(holder.ask("PUT", "/a", with_token(34, 2), "y").status, 200);
  EXPECT_EQ(holder.ask("PUT", "/a", with_token(34, 2), "y").status, 200) << "a rightful retry";
  FieldList foreign = token_fields(test_token(99, 1, test_lineage(2)));
  EXPECT_EQ(type_of(holder.ask("PUT", "/a", foreign, "z")), "fenced-out");
  EXPECT_THAT(log(), HasSubstr("refused status=409 type=fenced-out client=127.0.0.1:"));
  EXPECT_THAT(log(), HasSubstr("resource=\"a\" offered=33 mark=34"));
  EXPECT_THAT(log(), Not(HasSubstr(test_token(33, 1).request.hex()))) << "no secrets";
}

TEST_F(GateTurnTest, AHigherTokenWaitsForTheAnswerOfTheLower) {
  start_gate();
  Pending lower = ask_later("PUT", "/a", with_token(33, 1), "slow");
  const auto slow = upstream_->next();
  ASSERT_TRUE(slow);
  Pending higher = ask_later("GET", "/a", with_token(34, 2), "");
  Pending other = ask_later("PUT", "/b", with_token(1, 3), "elsewhere");
  const auto elsewhere = upstream_->next();
  ASSERT_EQ(elsewhere->target(), "/b") << "only the same resource waits";
  elsewhere->answer(200);
  EXPECT_EQ(other.get().status, 200);
  // The mark is raised although the higher one has not gone yet.
  wait_for_mark(34);
  HttpClient zombie = client();
  EXPECT_EQ(zombie.ask("PUT", "/a", with_token(33, 1), "x").status, 409);
  EXPECT_EQ(upstream_->arrived(), 2);
  slow->answer(200);
  EXPECT_EQ(lower.get().status, 200);
  const auto next = upstream_->next();
  ASSERT_TRUE(next);
  EXPECT_EQ(next->method(), "GET");
  next->answer(200, "after");
  EXPECT_EQ(higher.get().body, "after");
}

TEST_F(GateTurnTest, TheLowerIsAnsweredOnlyWhenItsWholeAnswerHasCome) {
  start_gate();
  Pending lower = ask_later("PUT", "/a", with_token(33, 1), "slow");
  const auto slow = upstream_->next();
  slow->send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab");
  Pending higher = ask_later("PUT", "/a", with_token(34, 2), "x");
  wait_for_mark(34);
  settle();
  EXPECT_EQ(upstream_->arrived(), 1);
  slow->send("cd");
  slow->finish();
  EXPECT_EQ(lower.get().body, "abcd");
  upstream_->next()->answer(200);
  EXPECT_EQ(higher.get().status, 200);
}

TEST_F(GateTurnTest, SequenceNumbersOrderOneHolder) {
  start_gate();
  Pending first = ask_later("PUT", "/a", with_sequence(33, 1, 1), "one");
  const auto slow = upstream_->next();
  Pending second = ask_later("PUT", "/a", with_sequence(33, 1, 2), "two");
  HttpClient late = client();
  Reply reply;
  do {
    reply = late.ask("PUT", "/a", with_sequence(33, 1, 1), "one again");
    ASSERT_EQ(reply.status, 409);
    ASSERT_EQ(type_of(reply), "out-of-order");
  } while (reply.body.find("last request had number 2") == std::string::npos);
  EXPECT_EQ(upstream_->arrived(), 1) << "the second waits for the first";
  slow->answer(200);
  EXPECT_EQ(first.get().status, 200);
  const auto next = upstream_->next();
  EXPECT_EQ(next->body, "two");
  next->answer(200);
  EXPECT_EQ(second.get().status, 200);
  EXPECT_EQ(type_of(late.ask("PUT", "/a", with_token(33, 1), "x")), "sequence-missing");
  EXPECT_EQ(type_of(late.ask("PUT", "/a", with_sequence(33, 1, 2), "x")), "out-of-order");
}

TEST_F(GateTurnTest, AMissingAnswerShutsTheResourceUntilItIsCleared) {
  start_gate();
  Pending lost = ask_later("PUT", "/a", with_token(33, 1), "x");
  upstream_->next()->hang_up();
  const Reply broken = lost.get();
  EXPECT_EQ(broken.status, 502);
  EXPECT_EQ(type_of(broken), "answer-missing");
  EXPECT_THAT(broken.body, HasSubstr("until this is cleared"));
  const int before = upstream_->arrived();
  HttpClient holder = client();
  for (const auto& fields : {with_token(33, 1), with_token(34, 2)}) {
    for (const char* method : {"GET", "PUT"}) {
      const Reply shut = holder.ask(method, "/a", fields);
      EXPECT_EQ(shut.status, 503);
      EXPECT_EQ(type_of(shut), "unanswered");
      EXPECT_FALSE(shut.fields.at("retry-after").empty());
    }
  }
  EXPECT_EQ(upstream_->arrived(), before);
  const std::string state = folder_.file("state");
  EXPECT_THAT(unanswered(state).value(), ::testing::ElementsAre(name("a")));
  ASSERT_TRUE(clear_unanswered(state, name("a")));
  EXPECT_THAT(unanswered(state).value(), IsEmpty());
  EXPECT_EQ(clear_unanswered(state, name("a")).error().code, ErrorCode::invalid);
  EXPECT_EQ(served(with_token(34, 2)), 200);
}

TEST_F(GateTurnTest, AnswersThatAreNone) {
  GateOptions quick = options();
  quick.answer_timeout = Millis(1500);
  start_gate(std::move(quick));
  struct Case {
    std::string resource;
    std::string sent;
    int status;
  };
  const Case cases[] = {
      {"silence", "", 504},
      {"half a head", "HTTP/1.1 200 OK\r\nContent-Le", 504},
      {"nonsense", "ICY 200 OK\r\n\r\n", 502},
      {"two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 502},
      {"another protocol", "HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n", 502},
      {"half a body", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", 0},
      {"bad chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", 0},
  };
  for (const Case& one : cases) {
    std::string path = "/" + percent_encoded(one.resource);
    Pending pending = ask_later("PUT", path, with_token(1, 1), "x");
    const auto arrival = upstream_->next();
    arrival->send(one.sent);
    const Reply reply = pending.get();
    EXPECT_FALSE(reply.complete && reply.status < 400) << one.resource;
    if (one.status != 0) {
      EXPECT_EQ(reply.status, one.status) << one.resource;
    }
    arrival->hang_up();
    HttpClient next = client();
    EXPECT_EQ(next.ask("PUT", path, with_token(2, 2), "y").status, 503) << one.resource;
  }
}

TEST_F(GateTurnTest, ALostReadLosesNothing) {
  start_gate();
  EXPECT_EQ(lost(with_token(33, 1), "GET"), 502);
  EXPECT_EQ(served(with_token(33, 1)), 200);
}

TEST_F(GateTurnTest, AReadCountsLikeAWriteIfTheServiceIsLikeThat) {
  GateOptions careful = options();
  careful.safe_methods = SafeMethods::as_writes;
  start_gate(std::move(careful));
  EXPECT_EQ(lost(with_token(33, 1), "GET"), 502);
  HttpClient next = client();
  EXPECT_EQ(next.ask("GET", "/a", with_token(34, 2)).status, 503);
}

TEST_F(GateTurnTest, AnUnreachableUpstreamLeavesNothingUnanswered) {
  upstream_ = std::make_unique<ScriptedUpstream>();
  GateOptions elsewhere = options();
  const auto nobody = leasehold::rig::Port::take();
  elsewhere.upstream = "http://" + nobody.address();
  start_gate(std::move(elsewhere));
  HttpClient holder = client();
  for (int i = 0; i < 2; ++i) {
    const Reply reply = holder.ask("PUT", "/a", with_token(33, 1), "x");
    EXPECT_EQ(reply.status, 502);
    EXPECT_EQ(type_of(reply), "upstream-unreachable");
  }
  EXPECT_THAT(unanswered(folder_.file("state")).value(), IsEmpty());
}

TEST_F(GateTurnTest, ClientsThatLeaveDoNotEndWhatTheyBegan) {
  start_gate();
  HttpClient leaver = client();
  leaver.send(request_text("PUT /a", with_token(33, 1), "Content-Length: 1\r\n\r\nx"));
  const auto arrival = upstream_->next();
  leaver.close();
  Pending higher = ask_later("PUT", "/a", with_token(34, 2), "y");
  wait_for_mark(34);
  EXPECT_EQ(upstream_->arrived(), 1) << "still waiting for the answer nobody reads";
  arrival->answer(200, std::string(300'000, 'z'));
  upstream_->next()->answer(200);
  EXPECT_EQ(higher.get().status, 200);
}

TEST_F(GateTurnTest, AClientThatLeavesDuringItsAnswerHasNotBeenAnswered) {
  start_gate();
  HttpClient leaver = client();
  leaver.send(request_text("PUT /a", with_token(33, 1), "Content-Length: 1\r\n\r\nx"));
  const auto arrival = upstream_->next();
  arrival->send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\na");
  EXPECT_THAT(leaver.head(), HasSubstr("200"));
  leaver.close();
  for (const char* piece : {"b", "c", "d", "e"}) {  // the gate sees that it has gone
    arrival->send(piece);
    settle();
  }
  Pending higher = ask_later("PUT", "/a", with_token(34, 2), "y");
  wait_for_mark(34);
  settle();
  EXPECT_EQ(upstream_->arrived(), 1);
  arrival->send("f");
  arrival->finish();
  upstream_->next()->answer(200);
  EXPECT_EQ(higher.get().status, 200);
}

TEST_F(GateTurnTest, HalfAnUploadIsAMissingAnswer) {
  start_gate_without_bodies();
  HttpClient leaver = client();
  leaver.send(request_text("PUT /a", with_token(33, 1), "Content-Length: 1000000\r\n\r\nhalf"));
  ASSERT_TRUE(upstream_->next());
  leaver.close();
  HttpClient holder = client();
  EXPECT_EQ(type_of(holder.ask("PUT", "/a", with_token(34, 2), "y")), "unanswered");
}

TEST_F(GateTurnTest, ASmallBodyThatNeverComesBlocksNobody) {
  start_gate();
  HttpClient slow = client();
  slow.send(request_text("PUT /a", with_token(33, 1), "Content-Length: 1000\r\n\r\nhalf"));
  settle();
  EXPECT_EQ(served(with_token(34, 2)), 200);
  slow.send(std::string(996, 'x'));
  EXPECT_EQ(slow.reply().status, 409) << "it enters when its body is there, and is late";
  EXPECT_EQ(upstream_->arrived(), 1);
}

TEST_F(GateTurnTest, TheProbeClears) {
  GateOptions probing = options();
  probing.probe = "/-/done/{resource}";
  start_gate(std::move(probing));
  std::atomic<bool> done = false;
  std::atomic<int> asked = 0;
  upstream_->answer_by([&](Arrival& arrival) {
    if (!arrival.target().starts_with("/-/done/")) return false;
    EXPECT_EQ(arrival.target(), "/-/done/a%20b");
    arrival.answer(done ? 204 : 503);
    ++asked;
    asked.notify_all();
    return true;
  });
  EXPECT_EQ(lost(with_token(33, 1), "PUT", "/a%20b"), 502);
  asked.wait(0);
  HttpClient holder = client();
  EXPECT_EQ(holder.ask("PUT", "/a%20b", with_token(33, 1)).status, 503);
  done = true;
  upstream_->answer_by([&](Arrival& arrival) {
    arrival.answer(204);
    return true;
  });
  while (holder.ask("PUT", "/a%20b", with_token(33, 1)).status == 503) {
  }
  EXPECT_EQ(holder.ask("PUT", "/a%20b", with_token(33, 1)).status, 204);
  EXPECT_THAT(log(), HasSubstr("cleared by the probe: resource=\"a b\""));
}

// A service that checks its writes: one token at a time, and never a lower one after a higher.
class StrictService {
 public:
  // True if it answers; else it breaks off.
  bool write(std::int64_t token) {
    {
      const std::lock_guard lock(mutex_);
      if (token < highest_ || (busy_ > 0 && token != highest_)) ++broken_rules_;
      highest_ = std::max(highest_, token);
      ++busy_;
      ++writes_;
    }
    std::this_thread::yield();  // let others come, if they can
    const std::lock_guard lock(mutex_);
    --busy_;
    return writes_ % 17 != 0;
  }
  int broken_rules() const { return broken_rules_; }
  int writes() const { return writes_; }

 private:
  std::mutex mutex_;
  std::int64_t highest_ = 0;
  int busy_ = 0;
  std::atomic<int> writes_ = 0;
  std::atomic<int> broken_rules_ = 0;
};

TEST_F(GateTurnTest, WhateverHappensTheServiceSeesOneTokenAtATime) {
  start_gate();
  StrictService service;
  upstream_->answer_by([&](Arrival& arrival) {
    const std::size_t at = arrival.head.find("Leasehold-Token: ");
    const bool answers = service.write(std::stoll(arrival.head.substr(at + 17)));
    if (answers) {
      arrival.answer(200);
    } else {
      arrival.hang_up();
    }
    return true;
  });
  std::atomic<std::int64_t> granted = 1;
  std::atomic<int> passed = 0;
  std::atomic<int> stale = 0;
  std::atomic<int> shut = 0;
  const auto work = [&](unsigned seed) {
    std::minstd_rand random(seed);
    HttpClient holder = client();
    std::int64_t token = granted;
    for (int i = 0; i < 300; ++i) {
      if (random() % 8 == 0) token = ++granted;
      if (random() % 8 == 0) token = granted;
      const FieldList fields = with_token(token, static_cast<std::uint8_t>(token % 200));
      if (random() % 10 == 0) {  // asks, and does not stay for the answer
        holder.send(request_text("PUT /a", fields, "Content-Length: 1\r\n\r\nx"));
        holder.close();
        continue;
      }
      const int status = holder.ask("PUT", "/a", fields, "x").status;
      passed += status == 200;
      stale += status == 409;
      if (status != 503) continue;
      ++shut;
      (void)clear_unanswered(folder_.file("state"), name("a"));  // another may have been faster
    }
  };
  std::vector<std::thread> workers;
  for (unsigned seed = 1; seed <= 6; ++seed) workers.emplace_back(work, seed);
  for (std::thread& worker : workers) worker.join();
  EXPECT_EQ(service.broken_rules(), 0);
  EXPECT_GT(service.writes(), 100);
  EXPECT_GT(passed, 50);
  EXPECT_GT(stale, 0);
  EXPECT_GT(shut, 0);
}

// What the probe says is about what was missing when it was asked.
TEST_F(GateTurnTest, AnOldAnswerOfTheProbeClearsNothing) {
  GateOptions probing = options();
  probing.probe = "/-/done/{resource}";
  start_gate(std::move(probing));
  EXPECT_EQ(lost(with_token(33, 1)), 502);
  const auto old_probe = upstream_->next();
  ASSERT_EQ(old_probe->target(), "/-/done/a");
  ASSERT_TRUE(clear_unanswered(folder_.file("state"), name("a"))) << "by hand, meanwhile";
  EXPECT_EQ(lost(with_token(34, 2)), 502);
  old_probe->answer(204);
  const auto new_probe = upstream_->next();
  ASSERT_EQ(new_probe->target(), "/-/done/a") << "it asks again";
  HttpClient holder = client();
  EXPECT_EQ(type_of(holder.ask("PUT", "/a", with_token(34, 2), "z")), "unanswered");
  answer_everything("");
  new_probe->answer(204);
  while (holder.ask("PUT", "/a", with_token(34, 2), "z").status == 503) {
  }
  EXPECT_EQ(holder.ask("PUT", "/a", with_token(34, 2), "z").status, 200);
}

// A service that says yes to half a request may still be at the other half.
TEST_F(GateTurnTest, AnEarlyYesEndsTheTurnOnlyWithTheRequest) {
  HttpClient holder = answered_early();
  Pending higher = ask_later("PUT", "/a", with_token(34, 2), "y");
  wait_for_mark(34);
  EXPECT_EQ(upstream_->arrived(), 1);
  holder.send(std::string(100'000, 'x'));
  upstream_->next()->answer(200);
  EXPECT_EQ(higher.get().status, 200);
}

TEST_F(GateTurnTest, AnEarlyYesToARequestThatBreaksOffIsNoAnswer) {
  HttpClient holder = answered_early();
  Pending higher = ask_later("PUT", "/a", with_token(34, 2), "y");
  wait_for_mark(34);
  holder.close();
  EXPECT_EQ(type_of(higher.get()), "unanswered");
}

// A client that has given up may have sent the same again: what waited for it is not forwarded.
TEST_F(GateTurnTest, WhoHangsUpWhileItWaitsIsNotForwarded) {
  start_gate();
  Pending lower = ask_later("PUT", "/a", with_token(33, 1), "slow");
  const auto slow = upstream_->next();
  HttpClient leaver = client();
  leaver.send(request_text("PUT /a", with_token(34, 2), "Content-Length: 1\r\n\r\nx"));
  leaver.end_of_sending();
  wait_for_mark(34);
  slow->answer(200);
  EXPECT_EQ(lower.get().status, 200);
  const Reply refused = leaver.reply();
  EXPECT_EQ(refused.status, 400) << "it still listens, and is told";
  EXPECT_THAT(refused.body, HasSubstr("not forwarded"));
  EXPECT_EQ(upstream_->arrived(), 1);
  EXPECT_EQ(served(with_token(34, 2)), 200);
}

TEST_F(GateTurnTest, ARequestThatMeansAnotherMethodIsAWrite) {
  GateOptions open = options();
  open.safe_methods = SafeMethods::pass;
  start_gate(std::move(open));
  HttpClient sneaky = client();
  for (const char* field :
       {"X-HTTP-Method-Override", "x-http-method", "X-Method-Override", "X_HTTP_Method_Override"}) {
    for (const char* method : {"GET", "HEAD", "OPTIONS"}) {
      EXPECT_EQ(sneaky.ask(method, "/a", {{field, "PUT"}}).status, 428) << method << field;
    }
  }
  EXPECT_EQ(upstream_->arrived(), 0);
  FieldList fields = with_token(33, 1);
  fields.emplace_back("X-HTTP-Method-Override", "PUT");
  EXPECT_EQ(lost(fields, "GET"), 502);
  EXPECT_THAT(unanswered(folder_.file("state")).value(), ::testing::ElementsAre(name("a")));
}

TEST_F(GateTurnTest, TicketsThatCannotBeRead) {
  start_gate();
  const FieldList good = with_token(33, 1);
  const auto without = [&](const std::string& field) {
    FieldList fields = good;
    std::erase_if(fields, [&](const auto& one) { return one.first == field; });
    return fields;
  };
  const auto with = [&](const std::string& field, const std::string& value) {
    FieldList fields = without(field);
    fields.emplace_back(field, value);
    return fields;
  };
  const auto twice = [&](const std::string& field, const std::string& value) {
    FieldList fields = good;
    fields.emplace_back(field, value);
    return fields;
  };
  HttpClient holder = client();
  for (const char* field : {"Leasehold-Token", "Leasehold-Lineage", "Leasehold-Request"}) {
    const Reply reply = holder.ask("PUT", "/a", without(field));
    EXPECT_EQ(reply.status, 428);
    EXPECT_EQ(type_of(reply), "token-missing");
    EXPECT_THAT(reply.body, HasSubstr(field));
  }
  const FieldList wrong[] = {
      with("Leasehold-Token", "0"),
      with("Leasehold-Token", "-1"),
      with("Leasehold-Token", "+1"),
      with("Leasehold-Token", "1.0"),
      with("Leasehold-Token", "1e3"),
      with("Leasehold-Token", ""),
      with("Leasehold-Token", "9223372036854775808"),
      with("Leasehold-Token", "33, 34"),
      with("Leasehold-Lineage", "nonsense"),
      with("Leasehold-Lineage", "00112233445566778899aabbccddeeff/\xff"),
      with("Leasehold-Request", "123"),
      with("Leasehold-Sequence", "0"),
      with("Leasehold-Sequence", "-1"),
      with("Leasehold-Sequence", "1.5"),
      with("Leasehold-Sequence", "9223372036854775808"),
      with("Leasehold-Entry", "twice"),
      with("Leasehold-Access", "append"),
      twice("Leasehold-Token", "34"),
      twice("leasehold-token", "33"),
      twice("Leasehold_Token", "33"),
      twice("leasehold-REQUEST", "0123456789abcdef0123456789abcdef"),
      twice("Leasehold_Sequence", "1"),
      twice("Leasehold-Lineage", test_lineage(2).str()),
      twice("Leasehold-Request", "0123456789abcdef0123456789abcdef"),
  };
  for (const FieldList& fields : wrong) {
    const Reply reply = holder.ask("PUT", "/a", fields);
    EXPECT_EQ(reply.status, 400) << fields.back().first << fields.back().second;
    EXPECT_EQ(type_of(reply), "token-malformed");
  }
  EXPECT_EQ(upstream_->arrived(), 0);
  EXPECT_THAT(unanswered(folder_.file("state")).value(), IsEmpty());
}

TEST_F(GateTurnTest, SafeMethodsMayPass) {
  GateOptions open = options();
  open.safe_methods = SafeMethods::pass;
  start_gate(std::move(open));
  answer_everything("text");
  HttpClient anybody = client();
  EXPECT_EQ(anybody.ask("GET", "/a").body, "text");
  EXPECT_EQ(anybody.ask("OPTIONS", "/a").status, 200);
  EXPECT_EQ(anybody.ask("GET", "/a/../b").status, 400);
  EXPECT_EQ(anybody.ask("PUT", "/a", {}, "x").status, 428);
}

TEST_F(GateTurnTest, AnotherPrefixAndAFieldForTheResource) {
  GateOptions other = options();
  other.field_prefix = "X-Fence";
  other.resource_field = "X-Fence-Resource";
  start_gate(std::move(other));
  answer_everything("");
  HttpClient holder = client();
  FieldList fields = token_fields(test_token(33, 1), "X-Fence");
  EXPECT_EQ(holder.ask("PUT", "/any/path", fields, "x").status, 428);
  fields.emplace_back("X-Fence-Resource", "a%20b");
  EXPECT_EQ(holder.ask("PUT", "/any/path", fields, "x").status, 200);
  fields[0].second = "32";
  EXPECT_EQ(problem(holder.ask("PUT", "/another/path", fields, "x"))["resource"], "a b");
  fields.back().second = "%zz";
  EXPECT_EQ(holder.ask("PUT", "/any/path", fields, "x").status, 400);
}

TEST_F(GateTurnTest, NothingIsForwardedBeforeItIsSafeOnDisk) {
  GateOptions slow = options();
  struct Disk {
    std::mutex mutex;
    std::atomic<int> syncs = 0;
  };
  const auto shared = std::make_shared<Disk>();  // the gate lives longer than this function
  slow.sync = [shared](int fd) {
    ++shared->syncs;
    shared->syncs.notify_all();
    const std::lock_guard lock(shared->mutex);
    return fdatasync(fd);
  };
  slow.safe_methods = SafeMethods::pass;
  start_gate(std::move(slow));
  upstream_->answer_by([](Arrival& arrival) {
    if (arrival.method() != "GET") return false;
    arrival.answer(200);
    return true;
  });
  std::unique_lock stuck(shared->mutex);
  const int before = shared->syncs;
  Pending write = ask_later("PUT", "/a", with_token(33, 1), "x");
  shared->syncs.wait(before);
  HttpClient reader = client();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(reader.ask("GET", "/b").status, 200);
  EXPECT_EQ(upstream_->arrived(), 20) << "the write is not among them";
  stuck.unlock();
  upstream_->next()->answer(200);
  EXPECT_EQ(write.get().status, 200);
}

TEST_F(GateTurnTest, ADiskThatFailsEndsTheGate) {
  GateOptions broken = options();
  const auto fails = std::make_shared<std::atomic<bool>>(false);
  broken.sync = [fails](int fd) {
    if (!*fails) return fdatasync(fd);
    errno = EIO;
    return -1;
  };
  start_gate(std::move(broken));
  *fails = true;
  HttpClient holder = client();
  const Reply reply = holder.ask("PUT", "/a", with_token(33, 1), "x");
  EXPECT_TRUE(reply.status == 0 || reply.status == 503) << reply.status;
  thread_.join();
  ASSERT_FALSE(ended_);
  EXPECT_EQ(ended_.error().code, ErrorCode::unavailable);
  EXPECT_EQ(upstream_->arrived(), 0);
}

}  // namespace
}  // namespace leasehold::gate
