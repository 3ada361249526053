// `leasehold probe` as a user runs it.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/tests/terminal_program.h"
#include "leasehold/time.h"

namespace leasehold::cli {
namespace {

using Json = nlohmann::json;

class ProbeTest : public CliTest {
 protected:
  // For as long as it takes; the progress on the terminal says when it measures.
  TerminalProgram measuring(Words options) const {
    Words words = {LEASEHOLD_PROGRAM, "probe", "--duration", "24h"};
    words.insert(words.end(), options.begin(), options.end());
    TerminalProgram program(command(words));
    program.expect("measuring: ");
    return program;
  }
};

TEST_F(ProbeTest, MeasuresAndAnswers) {
  const Finished done = leasehold(
      {"probe", "--duration", "200ms", "--ttl", "5s", "--rate", "2000", "--operation", "3ms"});
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_EQ(done.err, "") << "progress is for terminals";
  EXPECT_THAT(done.out, AllOf(HasSubstr("Measured "), HasSubstr("without load"),
                              HasSubstr("With a TTL of 5s and 2000 operations a second, each 3ms"),
                              HasSubstr("No TTL makes it zero; that is what the fence is for.\n")));
  for (const char* name : {"p50", "p99", "p99.9", "p99.99", "max"}) {
    EXPECT_THAT(done.out, HasSubstr(std::string("\n  ") + name + " ")) << name;
  }
  EXPECT_THAT(done.out, Not(HasSubstr("\033")));
}

TEST_F(ProbeTest, TellsProgramsTheSame) {
  const Finished done =
      leasehold({"probe", "--duration", "200ms", "--load", "3", "--spin", "--json"});
  EXPECT_EQ(done.status, 0) << done.err;
  const Json json = Json::parse(done.out);
  const Json& measured = json["measured"];
  EXPECT_GE(measured["length_ns"], 200'000'000);
  EXPECT_EQ(measured["asked_ns"], 200'000'000);
  EXPECT_EQ(measured["load"], 3);
  EXPECT_EQ(measured["spin"], true);
  EXPECT_EQ(measured["ended_early"], false);
  EXPECT_EQ(measured["moments"],
            measured["length_ns"].get<std::int64_t>() / measured["tick_ns"].get<std::int64_t>());
  EXPECT_EQ(json["workload"]["ttl_ms"], 30000);
  EXPECT_EQ(json["workload"]["rate"], 100.0);
}

TEST_F(ProbeTest, DrawsInAsciiWithoutAUtf8Locale) {
  const auto output = [&](const std::string& locale) {
    return shell("LC_ALL=" + locale + " leasehold probe --duration 100ms").out;
  };
  EXPECT_THAT(output("C.UTF-8"), AllOf(HasSubstr("█"), Not(HasSubstr("##"))));
  const std::string plain = output("C");
  EXPECT_THAT(plain, HasSubstr("##"));
  EXPECT_TRUE(std::all_of(plain.begin(), plain.end(),
                          [](char c) { return c == '\n' || (c >= ' ' && c < 127); }));
}

TEST_F(ProbeTest, DrawsAPictureOfItsOwn) {
  write("pauses.svg", std::string(100'000, 'x'));  // longer than the picture: must be cut
  const Finished done = leasehold({"probe", "--duration", "100ms", "--svg", path("pauses.svg")});
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_THAT(read("pauses.svg"),
              AllOf(::testing::StartsWith("<svg "), ::testing::EndsWith("</svg>\n")));
  const Finished parsed = finish({"python3", "-c",
                                  "import sys, xml.dom.minidom as x; "
                                  "print(x.parse(sys.argv[1]).documentElement.tagName)",
                                  path("pauses.svg")});
  EXPECT_EQ(parsed.out, "svg\n") << parsed.err;
  const Finished piped = shell("leasehold probe --duration 100ms --svg /dev/stderr");
  EXPECT_EQ(piped.status, 0);
  EXPECT_THAT(piped.err, ::testing::StartsWith("<svg "));
}

TEST_F(ProbeTest, AFileThatCannotBeWrittenIsToldBeforeTheMeasurement) {
  const Finished done =
      leasehold({"probe", "--duration", "24h", "--svg", path("no/such/folder/x.svg")});
  EXPECT_EQ(done.status, 74);
  EXPECT_EQ(done.out, "");
  EXPECT_THAT(done.err,
              ::testing::MatchesRegex("leasehold: cannot write '[^\n]*x.svg' .No such file "
                                      "or directory.\n"));
}

TEST_F(ProbeTest, AFullDiskIsTold) {
  const Finished done = leasehold({"probe", "--duration", "100ms", "--svg", "/dev/full"});
  EXPECT_EQ(done.status, 74);
  EXPECT_EQ(done.err, "leasehold: cannot write '/dev/full' (No space left on device)\n");
}

TEST_F(ProbeTest, CtrlCEndsItWithTheResultSoFar) {
  TerminalProgram program = measuring({});
  program.type("\x03");
  const Finished done = program.finish();
  EXPECT_EQ(done.status, 0);
  EXPECT_THAT(done.out, AllOf(HasSubstr("; ended early.\n"), HasSubstr("\n  p99.99 "),
                              HasSubstr("that is what the fence is for.\n")));
}

TEST_F(ProbeTest, SigtermToo) {
  TerminalProgram program = measuring({"--json", "--load", "2"});
  program.child().signal(SIGTERM);
  const Finished done = program.finish();
  EXPECT_EQ(done.status, 0);
  EXPECT_EQ(Json::parse(done.out)["measured"]["ended_early"], true);
}

TEST_F(ProbeTest, AStopOfTheProcessIsAPause) {
  TerminalProgram program = measuring({"--json", "--ttl", "300ms"});
  ASSERT_TRUE(program.child().signal(SIGSTOP));
  while (!program.child().take_stop()) std::this_thread::yield();
  const BootTime stopped = BootClock::now();
  std::this_thread::sleep_for(400ms);  // the pause itself
  const auto pause = BootClock::now() - stopped;
  ASSERT_TRUE(program.child().signal(SIGCONT));
  program.expect("measuring: ");
  program.type("\x03");
  const Json json = Json::parse(program.finish().out);
  // It is seen from the next tick on.
  EXPECT_GE(json["delay"]["max"]["ns"], (pause - 1ms).count());
  EXPECT_GE(json["violations"]["pauses_seen"], 1);
  EXPECT_GT(json["violations"]["per_day"], 0.0);
  EXPECT_EQ(json["suspend"]["times"], 0);
}

}  // namespace
}  // namespace leasehold::cli
