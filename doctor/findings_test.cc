#include "doctor/findings.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "leasehold/diagnosis.h"
#include "leasehold/fence_admin.h"
#include "leasehold/registry.h"
#include "testing/findings.h"

namespace leasehold::doctor {
namespace {

using namespace std::chrono_literals;
using leasehold::testing::findings_of;
using leasehold::testing::Finds;
using leasehold::testing::is_ok;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

// At `at` on this machine's clocks, a round trip of `trip`; the server is `ahead`.
ClockSample sample(Nanos at, Nanos trip, Nanos ahead, Nanos resolution = 0ns) {
  const WallTime epoch{1000h};
  return {BootTime(at), BootTime(at + trip), epoch + at, epoch + at + trip / 2 + ahead, resolution};
}

std::vector<Finding> clock(const std::vector<ClockSample>& samples,
                           Expiry expiry = Expiry::wall_clock) {
  Findings findings("server");
  judge_clock(findings, "x", samples, expiry, 30s);
  return findings.take();
}

TEST(ClockFindingTest, ClocksThatAgreeAreOkWithHalfTheRoundTripAsDoubt) {
  const auto found = clock({sample(0ms, 20ms, 3ms), sample(100ms, 2ms, 3ms)});
  EXPECT_THAT(found, is_ok("x.clock"));
  EXPECT_THAT(found.front().seen, AllOf(HasSubstr("3 ms ahead"), HasSubstr("give or take 1 ms")));
}

TEST(ClockFindingTest, WhatTheRoundTripExplainsIsNoSkew) {
  EXPECT_THAT(clock({sample(0ms, 30s, 14s)}), is_ok("x.clock"));
  EXPECT_THAT(clock({sample(0ms, 10ms, 14s)}), Not(is_ok("x.clock")));
}

TEST(ClockFindingTest, SkewMattersByItsSizeAndWhetherLeasesEndByThatClock) {
  EXPECT_THAT(clock({sample(0ms, 1ms, -5s)}), Finds("x.clock", Severity::note, "5 s behind"));
  EXPECT_THAT(clock({sample(0ms, 1ms, 10001ms)}),
              Finds("x.clock", Severity::warning, "10 s ahead"));
  EXPECT_THAT(clock({sample(0ms, 1ms, 3600s)}, Expiry::steady_clock),
              Finds("x.clock", Severity::note, "1 h ahead"));
}

TEST(ClockFindingTest, AClockThatMovesMeanwhileIsADanger) {
  const auto forward = clock({sample(0ms, 1ms, 0ms), sample(50ms, 1ms, 60s)});
  EXPECT_THAT(forward, Finds("x.clock", Severity::danger, "1 min forward"));
  EXPECT_THAT(clock({sample(0ms, 1ms, 0ms), sample(50ms, 1ms, -1s)}),
              Finds("x.clock", Severity::danger, "1 s back"));
  EXPECT_THAT(clock({sample(0ms, 1ms, 0ms), sample(50ms, 1ms, 60s)}, Expiry::steady_clock),
              Finds("x.clock", Severity::warning, "forward"));
}

TEST(ClockFindingTest, AMoveThatTheRoundTripsExplainIsNone) {
  EXPECT_THAT(clock({sample(0ms, 40ms, 0ms), sample(50ms, 40ms, 38ms)}), is_ok("x.clock"));
}

TEST(ClockFindingTest, ACoarseClockIsAsUncertainAsItsSteps) {
  const auto found = clock({sample(0ms, 2ms, -700ms, 1s)});
  EXPECT_THAT(found, is_ok("x.clock"));
  EXPECT_THAT(found.front().seen, HasSubstr("give or take 501 ms"));
}

TEST(ClockFindingTest, NoAnswerIsNotOk) {
  EXPECT_THAT(clock({}), Finds("x.clock", Severity::unseen, "not"));
}

std::vector<Finding> trips(std::vector<Nanos> times) {
  Findings findings("server");
  judge_round_trip(findings, "x.trip", "ask", std::move(times), 30s);
  return findings.take();
}

TEST(RoundTripFindingTest, JudgedByTheWorstAgainstTheTtl) {
  EXPECT_THAT(trips({1ms, 2ms, 3ms}), Finds("x.trip", Severity::ok, "2 ms, at worst 3 ms of 3"));
  EXPECT_THAT(trips({2999ms}), is_ok("x.trip"));
  EXPECT_THAT(trips({1ms, 3s, 1ms}), Finds("x.trip", Severity::warning, "at least 31s"));
  EXPECT_THAT(trips({10s}), Finds("x.trip", Severity::danger, "at least 101s"));
  EXPECT_THAT(trips({}), Finds("x.trip", Severity::unseen, "ask"));
}

TEST(FilesystemFindingTest, KnowsWhereItIs) {
  const auto on = [](const char* path) {
    Findings findings("file");
    judge_filesystem(findings, "fs", path);
    return findings.take();
  };
  EXPECT_THAT(on("/dev/shm"), Finds("fs", Severity::warning, "tmpfs"));
  EXPECT_THAT(on("/proc"), Finds("fs", Severity::warning, "not known to be local"));
  EXPECT_THAT(on("/no/such/folder"), Finds("fs", Severity::unseen, "No such file"));
}

TEST(WordsTest, SpansHaveThreeDigitsAndAUnit) {
  EXPECT_EQ(in_words(0ns), "0 s");
  EXPECT_EQ(in_words(-1500us), "1.5 ms");
  EXPECT_EQ(in_words(90s), "1.5 min");
  EXPECT_EQ(in_words(49h), "2.04 d");
}

// ---- a store and a fence together -----------------------------------------------------------

const StoreId kStore = StoreId::from_hex(std::string(32, 'a')).value();
const StoreId kOther = StoreId::from_hex(std::string(32, 'b')).value();

FenceMark mark_of(const std::string& resource, std::optional<StoreId> store,
                  std::int64_t refused = 0) {
  FenceMark mark{ResourceName::parse(resource).value(), {}, {}, refused, {}};
  if (store) mark.lineage = Lineage{*store, LockName::parse("job").value()};
  return mark;
}

struct ScriptedFence final : FenceAdmin {
  Result<std::vector<FenceMark>> all = std::vector<FenceMark>{};
  std::vector<GuardedTable> tables;
  std::vector<FenceFloor> swept;
  Status kept = {};

  Status install() override { return {}; }
  Result<std::vector<FenceMark>> marks() override { return all; }
  Status adopt(const ResourceName&, const Lineage&, TokenNumber) override { return {}; }
  Result<std::vector<GuardedTable>> guards() override { return tables; }
  Result<std::vector<FenceFloor>> floors() override { return swept; }
  Status check_marks() override { return kept; }
};

// Knows how far it has counted, and nothing else.
class CountingStore final : public Store {
 public:
  explicit CountingStore(std::optional<std::int64_t> to) : counted_to_(to) {}

  const StoreTraits& traits() const override { return traits_; }
  void start(StoreEvents&) override {}
  void close() override {}
  void acquire(AcquireCall, CallContext, Completion<AcquireReply>) override {}
  void renew(std::vector<RenewCall>, CallContext, Completion<std::vector<RenewReply>>) override {}
  void release(ReleaseCall, CallContext, Completion<ReleaseReply>) override {}
  void inspect(LockName lock, CallContext, Completion<LockStatus> done) override {
    done(LockStatus{.lock = std::move(lock),
                    .store = kStore,
                    .last_token = {},
                    .holders = {},
                    .waiters = {},
                    .known_as = {},
                    .counted_to = counted_to_});
  }

 private:
  const StoreTraits traits_{};
  const std::optional<std::int64_t> counted_to_;
};

struct DiagnoseTest : ::testing::Test {
  DiagnoseTest() {
    registry.add(
        {{.scheme = "sick",
          .open_store = [this](const Url&, const OpenOptions&) -> Result<std::unique_ptr<Store>> {
            if (opens) return std::make_unique<CountingStore>(counted_to);
            return fail(ErrorCode::internal, "a diagnosis must not open the store");
          },
          .offers = Offers().with<FenceAdmin>(
              [this](const Url&) { return std::make_unique<ScriptedFence>(fence); }),
          .examine = [this](const Url&, const ExamineOptions& options) -> Result<Diagnosis> {
            asked.push_back(options);
            return options.as == ExaminedAs::fence && at_fence ? *at_fence : diagnosis;
          }},
         {.scheme = "mute", .open_store = {}}});
    StoreTraits traits;
    traits.guarantee = Guarantee::correctness;
    diagnosis = Diagnosis{{}, traits, kStore};
  }

  Result<DiagnosisReport> look(std::optional<std::string> url = "sick://user:secret@fence",
                               Millis timeout = 10s) {
    return diagnose(registry, "sick://user:secret@store", url, {1min, timeout, {}});
  }

  Registry registry;
  ScriptedFence fence;
  Result<Diagnosis> diagnosis = Diagnosis{};
  std::optional<Diagnosis> at_fence;  // if not the same
  std::vector<ExamineOptions> asked;
  bool opens = false;
  std::optional<std::int64_t> counted_to;
};

TEST_F(DiagnoseTest, AGoodPairIsOk) {
  fence.all = std::vector<FenceMark>{mark_of("one", kStore), mark_of("two", std::nullopt)};
  fence.tables = {{"orders", ResourceName::parse("one").value(), true}};
  const auto report = look();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->worst(), Severity::ok) << leasehold::testing::told(report->findings);
  EXPECT_THAT(report->findings, AllOf(is_ok("store.guarantee"), is_ok("fence.installed"),
                                      is_ok("fence.lineage"), is_ok("fence.guards")));
  EXPECT_THAT(report->findings,
              AllOf(Finds("fence.installed", Severity::ok, "knows 2 resources, 0 of them entered"),
                    Finds("fence.lineage", Severity::ok, "at 1 resource, the first to come at 1"),
                    Finds("fence.guards", Severity::ok, "1 guarded table with")));
  ASSERT_EQ(asked.size(), 2u);
  EXPECT_EQ(asked[0].as, ExaminedAs::store);
  EXPECT_EQ(asked[1].as, ExaminedAs::fence);
  EXPECT_EQ(asked[1].ttl, 1min);
}

TEST_F(DiagnoseTest, WhatAServerThatIsBothHasIsToldOnce) {
  Finding disk{"sick.disk", Severity::warning, "server", "12 % are free.", "It may fill up.", ""};
  Finding marks{"sick.marks", Severity::warning, "server", "No sync.", "A grant is lost.", ""};
  Finding unseen{"sick.clock", Severity::unseen, "server", "No time.", "Not known.", ""};
  diagnosis->findings = {disk, marks, unseen};
  disk.seen = "11 % are free.";
  marks.consequence = "A mark is lost.";
  unseen.seen = "No step.";
  at_fence = Diagnosis{{disk, marks}, {}, {}};
  at_fence->findings.push_back(unseen);
  const auto count = [&](const std::string& url, const std::string& check) {
    const auto found = look(url).value().findings;
    return std::count_if(found.begin(), found.end(),
                         [&](const Finding& it) { return it.check == check; });
  };
  const std::string both = "sick://user:secret@store";
  EXPECT_EQ(count(both, "sick.disk"), 1);
  EXPECT_EQ(count(both, "sick.marks"), 2) << "as a fence it does another harm";
  EXPECT_EQ(count(both, "sick.clock"), 2) << "another thing was not seen";
  EXPECT_EQ(count("sick://user:secret@fence", "sick.disk"), 2) << "it may be another database";
}

TEST_F(DiagnoseTest, NoSecretIsTold) {
  fence.all = std::vector<FenceMark>{mark_of("one", kOther)};
  const auto report = look();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->store, "sick://user@store");
  EXPECT_EQ(report->fence, "sick://user@fence");
  for (const Finding& it : report->findings) {
    EXPECT_THAT(it.where + it.seen + it.consequence + it.fix, Not(HasSubstr("secret")));
  }
}

TEST_F(DiagnoseTest, AForeignLineageComesWithTheCommandThatAdopts) {
  fence.all = std::vector<FenceMark>{mark_of("one", kStore), mark_of("two", kOther)};
  EXPECT_THAT(look()->findings, Finds("fence.lineage", Severity::warning,
                                      "leasehold fence adopt 'sick://user@fence' --lineage '" +
                                          kStore.hex() + "/job' --at-least 1 'two'"));
  diagnosis->lineage = std::nullopt;
  EXPECT_THAT(look()->findings, Finds("fence.lineage", Severity::note, "no token yet"));
}

FenceMark entered(const std::string& resource, StoreId store, std::int64_t number) {
  FenceMark mark = mark_of(resource, store);
  mark.mark = Token{TokenNumber::of(number).value(), *mark.lineage,
                    RequestId::from_hex(std::string(32, '1')).value()};
  return mark;
}

TEST_F(DiagnoseTest, AMarkThatTheStoreHasNotGivenIsADanger) {
  opens = true;
  fence.all = std::vector<FenceMark>{entered("lower", kStore, 4), entered("equal", kStore, 5),
                                     entered("higher", kStore, 6), entered("foreign", kOther, 9)};
  const auto told = [&](std::optional<std::int64_t> to) {
    counted_to = to;
    return findings_of(look()->findings, "fence.restored_store");
  };
  const auto found = told(5);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].severity, Severity::danger);
  EXPECT_THAT(found[0].seen,
              AllOf(HasSubstr("'higher'"), HasSubstr("token 6"), HasSubstr("beyond 5")));
  EXPECT_THAT(told(0), SizeIs(3));
  EXPECT_EQ(told(6).at(0).severity, Severity::ok);
  EXPECT_EQ(told(std::nullopt).at(0).severity, Severity::ok) << "a store that cannot tell";
}

TEST_F(DiagnoseTest, AFloorThatTheStoreHasNotGivenIsADanger) {
  opens = true;
  fence.swept = {{kOther, 9}, {kStore, 6}};
  const auto told = [&](std::int64_t to) {
    counted_to = to;
    return findings_of(look()->findings, "fence.restored_store");
  };
  const auto found = told(5);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].severity, Severity::danger);
  EXPECT_THAT(found[0].seen,
              AllOf(HasSubstr("Swept marks"), HasSubstr("token 6"), HasSubstr("beyond 5")));
  EXPECT_THAT(found[0].fix, HasSubstr("fence admit"));
  EXPECT_EQ(told(6).at(0).severity, Severity::ok);
}

TEST_F(DiagnoseTest, AStoreThatCannotBeAskedForItsTokensIsUnseen) {
  fence.all = std::vector<FenceMark>{entered("one", kStore, 6)};
  EXPECT_THAT(look()->findings,
              Finds("fence.restored_store", Severity::unseen, "must not open the store"));
}

TEST_F(DiagnoseTest, ManyForeignLineagesAreSummedUp) {
  std::vector<FenceMark> marks;
  for (int i = 0; i < 50; ++i) marks.push_back(mark_of("r" + std::to_string(i), kOther));
  fence.all = marks;
  const auto found = findings_of(look()->findings, "fence.lineage");
  EXPECT_THAT(found, SizeIs(11));
  EXPECT_THAT(found.back().seen, HasSubstr("40 more"));
}

TEST_F(DiagnoseTest, AFenceThatIsNotThereIsADanger) {
  fence.all = fail(ErrorCode::unavailable, "it is not installed");
  EXPECT_THAT(look()->findings,
              Finds("fence.installed", Severity::danger, "leasehold fence install"));
}

TEST_F(DiagnoseTest, MarksThatAreNotKeptAreADanger) {
  fence.kept = fail(ErrorCode::unavailable, "a trigger is gone");
  EXPECT_THAT(look()->findings, Finds("fence.marks", Severity::danger, "a trigger is gone"));
}

TEST_F(DiagnoseTest, AGuardWithoutItsTriggerIsADanger) {
  fence.tables = {{"orders", ResourceName::parse("one").value(), false}};
  EXPECT_THAT(look()->findings, Finds("fence.guards", Severity::danger, "'orders'"));
}

TEST_F(DiagnoseTest, RefusalsAreTold) {
  fence.all = std::vector<FenceMark>{mark_of("one", kStore, 3), mark_of("two", kStore, 4)};
  EXPECT_THAT(look()->findings, Finds("fence.refused", Severity::note, "7 times"));
}

TEST_F(DiagnoseTest, AStoreWithoutTokensIsOnlyAWarningIfThereIsAFence) {
  diagnosis->traits->guarantee = Guarantee::efficiency;
  EXPECT_THAT(look(std::nullopt)->findings, Finds("store.guarantee", Severity::note, "efficiency"));
  EXPECT_THAT(look()->findings, Finds("store.guarantee", Severity::warning, "refused"));
  diagnosis->traits = std::nullopt;
  EXPECT_THAT(look()->findings, Finds("store.guarantee", Severity::unseen, "worth"));
}

TEST_F(DiagnoseTest, WhenTheTimeIsOverTheFenceIsUnseen) {
  EXPECT_THAT(look("sick://user:secret@fence", -1ms)->findings,
              Finds("fence.installed", Severity::unseen, "--timeout"));
}

TEST_F(DiagnoseTest, WhatCannotBeReachedIsAnErrorAndNoReport) {
  diagnosis = fail(ErrorCode::unavailable, "nobody answers");
  EXPECT_EQ(look().error().code, ErrorCode::unavailable);
  EXPECT_EQ(diagnose(registry, "mute://x", std::nullopt, {}).error().code, ErrorCode::unsupported);
  EXPECT_EQ(diagnose(registry, "who://x", std::nullopt, {}).error().code, ErrorCode::unsupported);
  EXPECT_EQ(diagnose(registry, "nonsense", std::nullopt, {}).error().code, ErrorCode::invalid);
}

TEST(SeverityTest, UnseenIsWorseThanANoteAndBetterThanAWarning) {
  DiagnosisReport report;
  EXPECT_EQ(report.worst(), Severity::ok);
  for (const Severity next :
       {Severity::note, Severity::unseen, Severity::warning, Severity::danger}) {
    report.findings.push_back({"x", next, "", "", "", ""});
    report.findings.push_back({"x", Severity::ok, "", "", "", ""});
    EXPECT_EQ(report.worst(), next);
  }
}

}  // namespace
}  // namespace leasehold::doctor
