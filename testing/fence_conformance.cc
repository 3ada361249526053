#include "testing/fence_conformance.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <latch>
#include <limits>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "fence/refusal.h"
#include "kit/text/number.h"
#include "testing/tokens.h"

namespace leasehold::testing {

using ::testing::HasSubstr;
using enum Entry;

Result<std::string> FenceConnection::read_beside(std::string_view, const Token&) {
  return fail(ErrorCode::unsupported, "this fence knows no readers");
}

Status FenceConnection::update(std::string_view resource, const Token& token,
                               const Change& change) {
  auto value = enter_and_read(resource, token, repeatable);
  if (!value) return fail(std::move(value.error()));
  return enter_and_write(resource, token, change(std::move(*value)), repeatable);
}

void PrintTo(const FenceCase& fence, std::ostream* out) {
  *out << fence.name;
}

std::string name_of_fence_case(const ::testing::TestParamInfo<FenceCase>& info) {
  return info.param.name;
}

void FenceConformance::SetUp() {
  fence_ = GetParam().make();
  here_ = fence_->connect();
}

Lineage test_lineage(int store, std::string_view lock) {
  StoreId::Bytes bytes{};
  bytes.back() = static_cast<std::uint8_t>(store);
  return Lineage{StoreId(bytes), LockName::parse(lock).value()};
}

Token test_token(std::int64_t number, int request, const Lineage& lineage) {
  RequestId::Bytes bytes{};
  for (std::size_t i = 0; i < sizeof request; ++i) {
    bytes[i] = static_cast<std::uint8_t>(request >> (8 * i));
  }
  return Token{TokenNumber::of(number).value(), lineage, RequestId(bytes)};
}

namespace {

constexpr std::string_view kBook = "ledger";

template <class T>
::testing::AssertionResult accepted(const Result<T>& result) {
  if (result) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << to_string(result.error());
}

template <class T>
::testing::AssertionResult failed(const Result<T>& result, ErrorCode code) {
  if (result) return ::testing::AssertionFailure() << "it was accepted";
  if (result.error().code == code) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << to_string(result.error());
}

template <class T>
::testing::AssertionResult refused(const Result<T>& result, std::int64_t offered,
                                   std::int64_t mark) {
  if (auto ok = failed(result, ErrorCode::fenced_out); !ok) return ok;
  const auto& refusal = result.error().refusal;
  if (!refusal) return ::testing::AssertionFailure() << "the refusal has no numbers";
  if (refusal->offered == offered && refusal->mark == mark) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << "the refusal says " << refusal->offered << " against " << refusal->mark;
}

std::string peek(FenceConnection& connection, std::string_view resource = kBook) {
  auto value = connection.peek(resource);
  EXPECT_TRUE(accepted(value));
  return value ? *value : "<unreadable>";
}

std::optional<FenceMark> mark_of(FenceConnection& connection, std::string_view resource = kBook) {
  auto marks = connection.marks();
  EXPECT_TRUE(accepted(marks));
  if (!marks) return std::nullopt;
  const auto found = std::find_if(marks->begin(), marks->end(), [&](const FenceMark& mark) {
    return mark.resource.str() == resource;
  });
  if (found == marks->end()) return std::nullopt;
  return *found;
}

std::int64_t mark_number(FenceConnection& connection, std::string_view resource = kBook) {
  const auto found = mark_of(connection, resource);
  return found && found->mark ? found->mark->number.value() : 0;
}

std::int64_t refusals(FenceConnection& connection, std::string_view resource = kBook) {
  const auto found = mark_of(connection, resource);
  return found ? found->refused : 0;
}

// What a fence must show of a resource afterwards.
struct Played {
  std::optional<Token> mark;
  std::optional<Lineage> lineage;
  std::optional<Token> reader;
  std::int64_t refused = 0;
  bool operator==(const Played&) const = default;
};

Status take(FenceConnection& connection, const ResourceName& resource, const FenceStep& step) {
  const EntryMode mode = step.single ? single : repeatable;
  if (step.access == Access::read) {
    const auto read = connection.read_beside(resource.str(), step.token);
    return read ? Status() : fail(read.error());
  }
  if (!step.writes) {
    const auto read = connection.enter_and_read(resource.str(), step.token, mode);
    return read ? Status() : fail(read.error());
  }
  return connection.enter_and_write(resource.str(), step.token, step.content, mode, step.sequence);
}

void expect_refused(const Status& done, const Error& expected) {
  ASSERT_TRUE(failed(done, expected.code)) << to_string(expected);
  if (expected.code != ErrorCode::fenced_out) return;
  EXPECT_TRUE(refused(done, expected.refusal->offered, expected.refusal->mark));
  EXPECT_EQ(to_string(done.error().refusal->why), to_string(expected.refusal->why));
  EXPECT_THAT(done.error().message, HasSubstr(expected.message));
}

Played play(FenceConnection& connection, const ResourceName& resource, const FenceRuleCase& it,
            const FenceWays& ways) {
  if (it.adopted) {
    EXPECT_TRUE(accepted(connection.adopt(resource, lineage_of(), *it.adopted)));
  }
  std::string value;
  for (const FenceStep& step : it.before) {
    EXPECT_TRUE(accepted(take(connection, resource, step)));
    if (step.writes) value = step.content;
  }
  const fence::Mark mark = it.mark(ways);
  const fence::Attempt attempt = it.then.attempt(mark, ways);
  const auto verdict = fence::judge(mark, attempt);
  const Status done = take(connection, resource, it.then);
  FenceMark shown = mark.shown(resource, 0);
  if (const auto* refuse = std::get_if<fence::Refuse>(&verdict)) {
    const Error expected = fence::refusal(resource, attempt, refuse->why, mark);
    expect_refused(done, expected);
    shown.refused = expected.code == ErrorCode::fenced_out ? 1 : 0;
  } else {
    EXPECT_TRUE(accepted(done));
    if (const auto* enter = std::get_if<fence::Enter>(&verdict)) {
      shown = enter->next.shown(resource, 0);
      if (it.then.writes) value = it.then.content;
    }
  }
  EXPECT_EQ(peek(connection, resource.str()), value);
  return {shown.mark, shown.lineage, shown.reader, shown.refused};
}

// Values are lists of the tokens that wrote: "33,34,".
std::string with(std::string list, std::int64_t number) {
  return std::move(list) + std::to_string(number) + ",";
}

std::vector<std::int64_t> numbers_in(std::string_view list) {
  std::vector<std::int64_t> numbers;
  while (!list.empty()) {
    const auto number = kit::take_number<std::int64_t>(list);
    EXPECT_TRUE(number && list.starts_with(',')) << "a torn value, before: " << list;
    numbers.push_back(number.value_or(0));
    const std::size_t comma = list.find(',');
    list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
  }
  return numbers;
}

// A child process that runs `body` with the write end of a pipe, and never returns from it.
class Child {
 public:
  explicit Child(const std::function<void(int)>& body) {
    std::array<int, 2> ends;
    if (pipe(ends.data()) != 0) std::abort();
    pid_ = fork();
    if (pid_ < 0) std::abort();
    if (pid_ == 0) {
      close(ends[0]);
      body(ends[1]);
      _exit(0);
    }
    close(ends[1]);
    out_ = ends[0];
  }
  Child(const Child&) = delete;
  ~Child() {
    if (pid_ > 0) {
      kill();
      wait();
    }
    close(out_);
  }

  void kill() const { ::kill(pid_, SIGKILL); }

  // false: the child has closed its end.
  bool read(void* data, std::size_t size) const {
    return ::read(out_, data, size) == ssize_t(size);
  }

  // Returns when it has stopped itself.
  void wait_until_stopped() const {
    while (waitpid(pid_, nullptr, WUNTRACED) < 0 && errno == EINTR) {
    }
  }
  void go_on() const { ::kill(pid_, SIGCONT); }

  // The signal that ended it, or 0.
  int wait() {
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  }

 private:
  pid_t pid_ = -1;
  int out_ = -1;
};

void send(int pipe, const void* data, std::size_t size) {
  if (::write(pipe, data, size) != ssize_t(size)) _exit(2);
}

// A holder number that grows, but not always: some are stale when they are tried. No two workers
// share one.
class NoisyTokens {
 public:
  NoisyTokens(int worker, int workers)
      : worker_(worker), workers_(workers), random_(static_cast<unsigned>(worker) + 1) {}
  Token next() {
    const int noise = std::uniform_int_distribution<int>(0, 31)(random_);
    return test_token((round_++ * 8 + noise) * workers_ + worker_ + 1, worker_ + 1);
  }

 private:
  int worker_;
  int workers_;
  int round_ = 0;
  std::minstd_rand random_;
};

constexpr int kWorkers = 4;
constexpr int kRounds = 60;

// The tokens of one worker's accepted updates, in order; nothing if something else went wrong.
std::optional<std::vector<std::int64_t>> work_with_noise(FenceUnderTest& fence, int worker) {
  const auto connection = fence.connect();
  NoisyTokens tokens(worker, kWorkers);
  std::vector<std::int64_t> mine;
  for (int round = 0; round < kRounds; ++round) {
    const Token token = tokens.next();
    const auto ok = connection->update(kBook, token, [&](std::string list) {
      return with(std::move(list), token.number.value());
    });
    if (ok) mine.push_back(token.number.value());
    if (!ok && ok.error().code != ErrorCode::fenced_out) return std::nullopt;
  }
  return mine;
}

void expect_every_update_once_in_order(FenceConnection& connection,
                                       std::vector<std::int64_t> accepted_numbers) {
  const auto written = numbers_in(peek(connection));
  EXPECT_TRUE(std::is_sorted(written.begin(), written.end()));
  std::sort(accepted_numbers.begin(), accepted_numbers.end());
  EXPECT_EQ(written, accepted_numbers);
  ASSERT_FALSE(written.empty());
  EXPECT_EQ(mark_number(connection), written.back());
  EXPECT_EQ(refusals(connection), kWorkers * kRounds - std::int64_t(written.size()));
}

}  // namespace

TEST_P(FenceConformance, FirstEntryIsAcceptedAndRemembered) {
  const Token token = test_token(33, 1);
  EXPECT_FALSE(mark_of(*here_));
  ASSERT_TRUE(accepted(here_->enter_and_write(kBook, token, "a", repeatable)));
  const auto found = mark_of(*here_);
  ASSERT_TRUE(found && found->mark);
  EXPECT_EQ(*found->mark, token);
  EXPECT_EQ(found->lineage, token.lineage);
  EXPECT_EQ(found->refused, 0);
  EXPECT_EQ(peek(*here_), "a");
}

TEST_P(FenceConformance, ReadingRaisesTheMarkToo) {
  const Token token = test_token(33, 1);
  const auto value = here_->enter_and_read(kBook, token, repeatable);
  ASSERT_TRUE(accepted(value));
  EXPECT_EQ(*value, "");
  EXPECT_EQ(mark_number(*here_), 33);
}

TEST_P(FenceConformance, HigherTokenTakesOver) {
  ASSERT_TRUE(accepted(here_->enter_and_write(kBook, test_token(33, 1), "a", repeatable)));
  ASSERT_TRUE(accepted(here_->enter_and_write(kBook, test_token(34, 2), "b", repeatable)));
  EXPECT_EQ(peek(*here_), "b");
  EXPECT_EQ(mark_number(*here_), 34);
}

TEST_P(FenceConformance, LowerTokenIsRefusedAndChangesNothing) {
  ASSERT_TRUE(accepted(here_->enter_and_write(kBook, test_token(34, 2), "b", repeatable)));
  const auto write = here_->enter_and_write(kBook, test_token(33, 1), "zombie", repeatable);
  EXPECT_TRUE(refused(write, 33, 34));
  EXPECT_THAT(write.error().message, HasSubstr("33"));
  EXPECT_THAT(write.error().message, HasSubstr("34"));
  EXPECT_TRUE(refused(here_->enter_and_read(kBook, test_token(33, 1), repeatable), 33, 34));
  EXPECT_TRUE(refused(here_->enter_and_write(kBook, test_token(33, 1), "zombie", single), 33, 34));
  EXPECT_TRUE(
      refused(here_->update(kBook, test_token(33, 1), [](auto) { return "zombie"; }), 33, 34));
  EXPECT_EQ(peek(*here_), "b");
  EXPECT_EQ(mark_number(*here_), 34);
}

TEST_P(FenceConformance, AnotherConnectionSeesTheMark) {
  const auto other = fence_->connect();
  ASSERT_TRUE(accepted(other->enter_and_write(kBook, test_token(34, 2), "b", repeatable)));
  EXPECT_TRUE(refused(here_->enter_and_write(kBook, test_token(33, 1), "a", repeatable), 33, 34));
  EXPECT_EQ(peek(*other), "b");
}

TEST_P(FenceConformance, RightfulHolderMayRetry) {
  const Token token = test_token(33, 1);
  ASSERT_TRUE(accepted(here_->enter_and_write(kBook, token, "a", repeatable)));
  EXPECT_TRUE(accepted(here_->enter_and_read(kBook, token, repeatable)));
  EXPECT_TRUE(accepted(here_->enter_and_write(kBook, token, "b", repeatable)));
  EXPECT_EQ(peek(*here_), "b");
  EXPECT_EQ(refusals(*here_), 0);
}

TEST_P(FenceConformance, EqualTokenOfAnotherRequestIsRefused) {
  ASSERT_TRUE(accepted(here_->enter_and_write(kBook, test_token(33, 1), "a", repeatable)));
  EXPECT_TRUE(refused(here_->enter_and_write(kBook, test_token(33, 2), "b", repeatable), 33, 33));
  EXPECT_TRUE(refused(here_->enter_and_write(kBook, test_token(33, 2), "b", single), 33, 33));
  EXPECT_EQ(peek(*here_), "a");
  EXPECT_EQ(mark_of(*here_)->mark, test_token(33, 1));
}

TEST_P(FenceConformance, OnceModeRefusesASecondEntry) {
  ASSERT_TRUE(accepted(here_->enter_and_write(kBook, test_token(33, 1), "a", single)));
  EXPECT_TRUE(refused(here_->enter_and_write(kBook, test_token(33, 1), "b", single), 33, 33));
  EXPECT_EQ(peek(*here_), "a");
  EXPECT_TRUE(accepted(here_->enter_and_write(kBook, test_token(34, 2), "c", single)));
}

TEST_P(FenceConformance, OnceModeCountsEntriesOfTheOtherMode) {
  ASSERT_TRUE(accepted(here_->enter_and_write(kBook, test_token(33, 1), "a", repeatable)));
  EXPECT_TRUE(refused(here_->enter_and_write(kBook, test_token(33, 1), "b", single), 33, 33));
  EXPECT_TRUE(accepted(here_->enter_and_write(kBook, test_token(33, 1), "c", repeatable)));
}

TEST_P(FenceConformance, ForeignLineageIsRefusedWhateverItsNumber) {
  ASSERT_TRUE(accepted(here_->enter_and_write(kBook, test_token(33, 1), "a", repeatable)));
  const std::array foreign = {test_lineage(2), test_lineage(1, "invoice/1235")};
  for (const Lineage& lineage : foreign) {
    for (const std::int64_t number : {32, 33, 34}) {
      const auto write =
          here_->enter_and_write(kBook, test_token(number, 1, lineage), "b", repeatable);
      EXPECT_TRUE(refused(write, number, 33));
      EXPECT_THAT(write.error().message, HasSubstr("lineage"));
      EXPECT_THAT(write.error().message, HasSubstr(lineage.str()));
      EXPECT_THAT(sentence(write.error()), HasSubstr("leasehold fence adopt URL --lineage '"));
      EXPECT_THAT(write.error().message, ::testing::Not(HasSubstr("RESOURCE")));
    }
  }
  EXPECT_EQ(peek(*here_), "a");
  EXPECT_EQ(refusals(*here_), 6);
}

TEST_P(FenceConformance, ResourcesDoNotShareMarks) {
  ASSERT_TRUE(accepted(here_->enter_and_write("a", test_token(34, 1), "x", repeatable)));
  ASSERT_TRUE(accepted(here_->enter_and_write("b", test_token(33, 2), "y", repeatable)));
  ASSERT_TRUE(
      accepted(here_->enter_and_write("c", test_token(1, 3, test_lineage(7)), "z", repeatable)));
  EXPECT_EQ(mark_number(*here_, "a"), 34);
  EXPECT_EQ(mark_number(*here_, "b"), 33);
  EXPECT_EQ(mark_number(*here_, "c"), 1);
}

TEST_P(FenceConformance, ZombieIsRefusedBeforeTheNewHolderHasWritten) {
  const auto zombie = fence_->connect();
  ASSERT_TRUE(accepted(zombie->enter_and_write(kBook, test_token(33, 1), "33,", repeatable)));
  const auto read = here_->enter_and_read(kBook, test_token(34, 2), repeatable);
  ASSERT_TRUE(accepted(read));
  EXPECT_TRUE(
      refused(zombie->enter_and_write(kBook, test_token(33, 1), "33,33,", repeatable), 33, 34));
  ASSERT_TRUE(
      accepted(here_->enter_and_write(kBook, test_token(34, 2), with(*read, 34), repeatable)));
  EXPECT_EQ(peek(*here_), "33,34,");
}

TEST_P(FenceConformance, NoInterleavingOfTwoHoldersLosesAnAcceptedUpdate) {
  std::string order = "NNZZ";  // each holder reads, then writes: the new one and the zombie
  int orders = 0;
  do {
    const std::string resource = "ledger/" + order;
    const std::array<Token, 2> tokens = {test_token(33, 1), test_token(34, 2)};
    const std::array<std::unique_ptr<FenceConnection>, 2> who = {fence_->connect(),
                                                                 fence_->connect()};
    std::array<std::optional<std::string>, 2> seen;
    std::array<bool, 2> has_read = {false, false};
    std::string expected;
    for (const char step : order) {
      const std::size_t i = step == 'N' ? 1 : 0;
      const bool stale = i == 0 && has_read[1];
      if (!has_read[i]) {
        has_read[i] = true;
        auto value = who[i]->enter_and_read(resource, tokens[i], repeatable);
        EXPECT_EQ(value.has_value(), !stale) << order;
        if (value) seen[i] = std::move(*value);
        continue;
      }
      const std::int64_t number = tokens[i].number.value();
      const auto ok = who[i]->enter_and_write(resource, tokens[i],
                                              with(seen[i].value_or(""), number), repeatable);
      EXPECT_EQ(ok.has_value(), !stale) << order;
      if (ok) expected = with(std::move(expected), number);
    }
    EXPECT_EQ(peek(*here_, resource), expected) << order;
    ++orders;
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_EQ(orders, 6);
}

TEST_P(FenceConformance, ReadersComeInBesideEachOther) {
  if (!fence_->ways().readers) {
    EXPECT_TRUE(failed(here_->read_beside(kBook, test_token(33, 1)), ErrorCode::unsupported));
    EXPECT_FALSE(mark_of(*here_)) << "nothing has entered";
    return;
  }
  ASSERT_TRUE(accepted(here_->enter_and_write(kBook, test_token(33, 1), "a", repeatable)));
  const auto other = fence_->connect();
  EXPECT_EQ(other->read_beside(kBook, test_token(36, 4)).value_or("refused"), "a");
  EXPECT_EQ(here_->read_beside(kBook, test_token(34, 2)).value_or("refused"), "a");
  EXPECT_EQ(here_->read_beside(kBook, test_token(33, 1)).value_or("refused"), "a")
      << "the writer may read";
  const auto found = mark_of(*here_);
  EXPECT_EQ(found->mark, test_token(33, 1));
  EXPECT_EQ(found->reader, test_token(36, 4));
  EXPECT_EQ(found->refused, 0);
}

TEST_P(FenceConformance, AWriterBelowAReaderIsRefused) {
  if (!fence_->ways().readers) return;  // as the test above says
  const auto zombie = fence_->connect();
  ASSERT_TRUE(accepted(zombie->enter_and_write(kBook, test_token(33, 1), "a", repeatable)));
  ASSERT_TRUE(accepted(here_->read_beside(kBook, test_token(35, 3))));
  EXPECT_TRUE(
      refused(zombie->enter_and_write(kBook, test_token(33, 1), "late", repeatable), 33, 35));
  EXPECT_TRUE(
      refused(here_->enter_and_write(kBook, test_token(34, 2), "late", repeatable), 34, 35));
  EXPECT_TRUE(
      refused(here_->enter_and_write(kBook, test_token(35, 2), "twin", repeatable), 35, 35));
  EXPECT_EQ(peek(*here_), "a");
  EXPECT_TRUE(accepted(here_->enter_and_write(kBook, test_token(35, 3), "b", repeatable)));
  EXPECT_EQ(peek(*here_), "b");
  EXPECT_FALSE(mark_of(*here_)->reader) << "it is the writer now";
}

TEST_P(FenceConformance, AReaderBelowAWriterIsRefused) {
  if (!fence_->ways().readers) return;
  ASSERT_TRUE(accepted(here_->read_beside(kBook, test_token(33, 1))));
  ASSERT_TRUE(accepted(here_->enter_and_write(kBook, test_token(34, 2), "a", repeatable)));
  EXPECT_TRUE(refused(here_->read_beside(kBook, test_token(33, 1)), 33, 34));
  ASSERT_TRUE(accepted(here_->read_beside(kBook, test_token(36, 3))));
  EXPECT_TRUE(refused(here_->read_beside(kBook, test_token(33, 1)), 33, 34))
      << "the number is the writer's, which it is below";
  EXPECT_TRUE(refused(here_->read_beside(kBook, test_token(34, 1)), 34, 34));
  EXPECT_TRUE(
      failed(here_->read_beside(kBook, test_token(99, 1, test_lineage(2))), ErrorCode::fenced_out));
  EXPECT_EQ(refusals(*here_), 4);
}

TEST_P(FenceConformance, WhatReadersHaveSeenSurvivesARestart) {
  if (!fence_->ways().readers) return;
  ASSERT_TRUE(accepted(here_->enter_and_write(kBook, test_token(33, 1), "a", repeatable)));
  ASSERT_TRUE(accepted(here_->read_beside(kBook, test_token(35, 3))));
  here_.reset();
  fence_->restart();
  here_ = fence_->connect();
  EXPECT_TRUE(
      refused(here_->enter_and_write(kBook, test_token(33, 1), "late", repeatable), 33, 35));
  EXPECT_TRUE(accepted(here_->read_beside(kBook, test_token(34, 2))));
}

TEST_P(FenceConformance, AStoppedWriterIsRefusedOnceSomebodyHasRead) {
  if (!fence_->ways().readers) return;
  here_.reset();
  Child zombie([&](int out) {
    const auto connection = fence_->connect();
    const auto seen = connection->enter_and_read(kBook, test_token(33, 1), repeatable);
    if (!seen) _exit(2);
    raise(SIGSTOP);
    const auto late = connection->enter_and_write(kBook, test_token(33, 1), "late", repeatable);
    const bool is_refused = !late && late.error().code == ErrorCode::fenced_out;
    send(out, is_refused ? "r" : "w", 1);
  });
  zombie.wait_until_stopped();
  here_ = fence_->connect();
  for (const std::int64_t number : {35, 34, 36}) {
    ASSERT_TRUE(accepted(here_->read_beside(kBook, test_token(number, int(number)))));
  }
  zombie.go_on();
  char verdict = 0;
  ASSERT_TRUE(zombie.read(&verdict, 1));
  EXPECT_EQ(verdict, 'r');
  EXPECT_EQ(peek(*here_), "");
}

TEST_P(FenceConformance, TokensAreExactBeyondTwoToThe53) {
  constexpr std::int64_t edge = std::int64_t{1} << 53;
  ASSERT_TRUE(accepted(here_->enter_and_write(kBook, test_token(edge, 1), "a", repeatable)));
  EXPECT_EQ(mark_number(*here_), edge);
  ASSERT_TRUE(accepted(here_->enter_and_write(kBook, test_token(edge + 1, 2), "b", repeatable)));
  EXPECT_EQ(mark_number(*here_), edge + 1);
  EXPECT_TRUE(
      refused(here_->enter_and_write(kBook, test_token(edge, 1), "a", repeatable), edge, edge + 1));
  EXPECT_TRUE(accepted(here_->enter_and_write(kBook, test_token(edge + 1, 2), "c", repeatable)));
  EXPECT_EQ(peek(*here_), "c");
}

TEST_P(FenceConformance, LargestTokenNeverWraps) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  ASSERT_TRUE(accepted(here_->enter_and_write(kBook, test_token(most, 1), "a", repeatable)));
  EXPECT_EQ(mark_number(*here_), most);
  EXPECT_TRUE(refused(here_->enter_and_write(kBook, test_token(most - 1, 2), "b", repeatable),
                      most - 1, most));
  EXPECT_TRUE(refused(here_->enter_and_write(kBook, test_token(1, 2), "b", repeatable), 1, most));
  EXPECT_TRUE(accepted(here_->enter_and_write(kBook, test_token(most, 1), "c", repeatable)));
}

TEST_P(FenceConformance, NumbersAreComparedAsNumbersNotAsText) {
  ASSERT_TRUE(accepted(here_->enter_and_write(kBook, test_token(9, 1), "a", repeatable)));
  ASSERT_TRUE(accepted(here_->enter_and_write(kBook, test_token(10, 2), "b", repeatable)));
  EXPECT_TRUE(refused(here_->enter_and_write(kBook, test_token(9, 1), "a", repeatable), 9, 10));
  std::int64_t power = 10;
  for (int digits = 3; digits <= 19; ++digits) {
    power *= 10;
    const std::int64_t nines = power - 1;
    ASSERT_TRUE(accepted(here_->enter_and_write(kBook, test_token(nines, 1), "a", repeatable)));
    ASSERT_TRUE(accepted(here_->enter_and_write(kBook, test_token(power, 2), "b", repeatable)));
    EXPECT_TRUE(refused(here_->enter_and_write(kBook, test_token(nines, 1), "a", repeatable), nines,
                        power));
  }
}

TEST_P(FenceConformance, MarkSurvivesARestart) {
  ASSERT_TRUE(accepted(here_->enter_and_write(kBook, test_token(34, 2), "b", repeatable)));
  EXPECT_TRUE(refused(here_->enter_and_write(kBook, test_token(33, 1), "a", repeatable), 33, 34));
  here_.reset();
  fence_->restart();
  here_ = fence_->connect();
  EXPECT_TRUE(refused(here_->enter_and_write(kBook, test_token(33, 1), "a", repeatable), 33, 34));
  EXPECT_TRUE(refused(here_->enter_and_write(kBook, test_token(34, 1), "a", repeatable), 34, 34));
  EXPECT_TRUE(
      failed(here_->enter_and_write(kBook, test_token(99, 1, test_lineage(2)), "a", repeatable),
             ErrorCode::fenced_out));
  EXPECT_TRUE(accepted(here_->enter_and_write(kBook, test_token(34, 2), "c", repeatable)));
  EXPECT_EQ(refusals(*here_), 4);
}

TEST_P(FenceConformance, EveryRefusalIsCounted) {
  ASSERT_TRUE(accepted(here_->enter_and_write(kBook, test_token(34, 2), "b", repeatable)));
  for (int i = 1; i <= 5; ++i) {
    EXPECT_TRUE(refused(here_->enter_and_read(kBook, test_token(33, 1), repeatable), 33, 34));
    EXPECT_EQ(refusals(*here_), i);
  }
}

TEST_P(FenceConformance, AdoptingLetsOnlyTheNewLineageIn) {
  const auto resource = ResourceName::parse(kBook).value();
  const Lineage restored = test_lineage(2);
  ASSERT_TRUE(accepted(here_->enter_and_write(kBook, test_token(900, 1), "a", repeatable)));
  ASSERT_TRUE(accepted(here_->adopt(resource, restored, TokenNumber::of(10).value())));
  EXPECT_EQ(mark_of(*here_)->lineage, restored);
  EXPECT_TRUE(refused(here_->enter_and_write(kBook, test_token(901, 1), "x", repeatable), 901, 10));
  EXPECT_TRUE(
      refused(here_->enter_and_write(kBook, test_token(9, 2, restored), "x", repeatable), 9, 10));
  EXPECT_TRUE(
      accepted(here_->enter_and_write(kBook, test_token(10, 2, restored), "b", repeatable)));
  EXPECT_EQ(peek(*here_), "b");
}

TEST_P(FenceConformance, AdoptingNeverLowersTheMarkOfALineage) {
  const auto resource = ResourceName::parse(kBook).value();
  const auto adopt = [&](std::int64_t number) {
    return here_->adopt(resource, test_lineage(), TokenNumber::of(number).value());
  };
  ASSERT_TRUE(accepted(here_->enter_and_write(kBook, test_token(34, 2), "b", repeatable)));
  EXPECT_TRUE(failed(adopt(33), ErrorCode::invalid));
  EXPECT_TRUE(accepted(adopt(34)));
  EXPECT_EQ(mark_of(*here_)->mark, test_token(34, 2));
  EXPECT_TRUE(accepted(adopt(40)));
  EXPECT_TRUE(refused(here_->enter_and_write(kBook, test_token(39, 3), "x", repeatable), 39, 40));
  EXPECT_TRUE(accepted(here_->enter_and_write(kBook, test_token(40, 3), "c", repeatable)));
}

TEST_P(FenceConformance, AdoptingComesBeforeTheFirstEntryToo) {
  const auto resource = ResourceName::parse(kBook).value();
  ASSERT_TRUE(accepted(here_->adopt(resource, test_lineage(), TokenNumber::of(5).value())));
  EXPECT_FALSE(mark_of(*here_)->mark);
  const auto lower = here_->enter_and_write(kBook, test_token(4, 1), "x", repeatable);
  EXPECT_TRUE(refused(lower, 4, 5));
  EXPECT_THAT(lower.error().message, HasSubstr("adopted from token 5 on"))
      << "nobody has entered since";
  EXPECT_TRUE(accepted(here_->enter_and_write(kBook, test_token(5, 1), "a", repeatable)));
}

TEST_P(FenceConformance, FollowsTheRule) {
  const FenceWays ways = fence_->ways();
  std::map<std::string, Played> all;
  for (const FenceRuleCase& it : fence_rule_cases(ways)) {
    SCOPED_TRACE(it.str());
    const auto resource = ResourceName::parse("case-" + std::to_string(all.size())).value();
    all.emplace(resource.str(), play(*here_, resource, it, ways));
  }
  const auto marks = here_->marks();
  ASSERT_TRUE(accepted(marks));
  std::map<std::string, Played> found;
  for (const FenceMark& mark : *marks) {
    found.emplace(mark.resource.str(), Played{mark.mark, mark.lineage, mark.reader, mark.refused});
  }
  for (const auto& [resource, expected] : all) {
    if (expected == Played{}) continue;  // nothing to remember
    EXPECT_EQ(found[resource], expected) << resource;
  }
}

TEST_P(FenceConformance, HostileNamesAreOnlyNames) {
  const std::vector<std::string> names = {"'",
                                          "\"",
                                          "a'; DROP TABLE marks; --",
                                          "`x`",
                                          "\\",
                                          "%s%n",
                                          "*[?",
                                          "../etc",
                                          "a b  ",
                                          " a b",
                                          "NULL",
                                          "?1",
                                          "Жук/ありがとう/🔒",
                                          "A",
                                          "a",
                                          "\xef\xbf\xbd",
                                          "9",
                                          "$(id)",
                                          std::string(512, 'n')};
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto number = static_cast<std::int64_t>(10 + i);
    const Token token = test_token(number, 1);
    ASSERT_TRUE(accepted(here_->enter_and_write(names[i], token, names[i], repeatable)))
        << names[i];
    EXPECT_TRUE(
        refused(here_->enter_and_write(names[i], test_token(5, 2), "x", repeatable), 5, number))
        << names[i];
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(peek(*here_, names[i]), names[i]);
    EXPECT_EQ(mark_number(*here_, names[i]), static_cast<std::int64_t>(10 + i)) << names[i];
  }
}

TEST_P(FenceConformance, WrongNamesAreInvalid) {
  const std::vector<std::string> names = {
      "",        std::string(513, 'n'), "a\nb", std::string("a\0b", 3), "a\x7f", "\x1b[2J", "a\xff",
      "\xc2\x85"};
  for (const std::string& name : names) {
    EXPECT_TRUE(
        failed(here_->enter_and_write(name, test_token(1, 1), "x", repeatable), ErrorCode::invalid))
        << name;
  }
  EXPECT_EQ(here_->marks().value().size(), 0u);
}

TEST_P(FenceConformance, ThreadsLoseNoUpdateAndNeverLowerTheMark) {
  std::latch start(kWorkers);
  std::mutex mutex;
  std::vector<std::int64_t> all;
  int broken = 0;
  {
    std::vector<std::jthread> workers;
    for (int worker = 0; worker < kWorkers; ++worker) {
      workers.emplace_back([&, worker] {
        start.arrive_and_wait();
        const auto mine = work_with_noise(*fence_, worker);
        const std::lock_guard lock(mutex);
        if (mine) all.insert(all.end(), mine->begin(), mine->end());
        if (!mine) ++broken;
      });
    }
  }
  EXPECT_EQ(broken, 0);
  expect_every_update_once_in_order(*here_, all);
}

TEST_P(FenceConformance, ProcessesLoseNoUpdateAndNeverLowerTheMark) {
  here_.reset();
  std::array<int, 2> gate;
  ASSERT_EQ(pipe(gate.data()), 0);
  std::vector<std::unique_ptr<Child>> children;
  for (int worker = 0; worker < kWorkers; ++worker) {
    children.push_back(std::make_unique<Child>([&, worker](int out) {
      close(gate[1]);
      char byte;
      if (::read(gate[0], &byte, 1) != 0) _exit(2);  // the gate opens when the parent closes it
      const auto mine = work_with_noise(*fence_, worker);
      const std::int64_t end = mine ? 0 : -1;
      if (mine) {
        for (const std::int64_t number : *mine) send(out, &number, sizeof number);
      }
      send(out, &end, sizeof end);
    }));
  }
  close(gate[0]);
  close(gate[1]);
  std::vector<std::int64_t> all;
  for (const auto& child : children) {
    std::int64_t number = -1;
    while (child->read(&number, sizeof number) && number > 0) all.push_back(number);
    EXPECT_EQ(number, 0) << "a child met an error that is no refusal";
    EXPECT_EQ(child->wait(), 0);
  }
  here_ = fence_->connect();
  expect_every_update_once_in_order(*here_, all);
}

TEST_P(FenceConformance, StoppedHolderIsRefusedBeforeTheNextOneHasWritten) {
  here_.reset();
  Child zombie([&](int out) {
    const auto connection = fence_->connect();
    const auto seen = connection->enter_and_read(kBook, test_token(33, 1), repeatable);
    if (!seen) _exit(2);
    raise(SIGSTOP);
    const auto late =
        connection->enter_and_write(kBook, test_token(33, 1), with(*seen, 33), repeatable);
    const bool is_refused = !late && late.error().code == ErrorCode::fenced_out;
    send(out, is_refused ? "r" : "w", 1);
  });
  zombie.wait_until_stopped();
  here_ = fence_->connect();
  const auto read = here_->enter_and_read(kBook, test_token(34, 2), repeatable);
  ASSERT_TRUE(accepted(read));
  zombie.go_on();
  char verdict = 0;
  ASSERT_TRUE(zombie.read(&verdict, 1));
  EXPECT_EQ(verdict, 'r');
  EXPECT_TRUE(
      accepted(here_->enter_and_write(kBook, test_token(34, 2), with(*read, 34), repeatable)));
  EXPECT_EQ(peek(*here_), "34,");
}

TEST_P(FenceConformance, KilledBetweenEntryAndCommitLeavesMarkAndValueTogether) {
  ASSERT_TRUE(accepted(here_->enter_and_write(kBook, test_token(33, 1), "33,", repeatable)));
  here_.reset();
  Child child([&](int) {
    const auto connection = fence_->connect();
    (void)connection->update(kBook, test_token(34, 2), [](std::string list) {
      raise(SIGKILL);
      return with(std::move(list), 34);
    });
  });
  EXPECT_EQ(child.wait(), SIGKILL);
  fence_->restart();
  here_ = fence_->connect();
  EXPECT_EQ(peek(*here_), "33,");
  EXPECT_EQ(mark_number(*here_), fence_->update_is_one_transaction() ? 33 : 34);
  EXPECT_TRUE(accepted(here_->update(kBook, test_token(35, 3),
                                     [](std::string list) { return with(std::move(list), 35); })));
  EXPECT_EQ(peek(*here_), "33,35,");
}

TEST_P(FenceConformance, KilledAtAnyPointLeavesMarkAndValueTogether) {
  here_.reset();
  std::minstd_rand random(20);
  std::int64_t next = 1;
  std::int64_t before = 0;
  for (int round = 0; round < 20; ++round) {
    Child child([&](int out) {
      const auto connection = fence_->connect();
      for (std::int64_t number = next;; ++number) {
        const auto ok = connection->update(kBook, test_token(number, 1), [&](std::string list) {
          send(out, "e", 1);
          return with(std::move(list), number);
        });
        if (!ok) _exit(2);
        send(out, "c", 1);
      }
    });
    const int events = std::uniform_int_distribution<int>(1, 12)(random);
    std::int64_t acknowledged = 0;
    char event = 0;
    for (int i = 0; i < events && child.read(&event, 1); ++i) acknowledged += event == 'c';
    child.kill();
    while (child.read(&event, 1)) acknowledged += event == 'c';
    ASSERT_EQ(child.wait(), SIGKILL);

    fence_->restart();
    const auto connection = fence_->connect();
    const auto written = numbers_in(peek(*connection));
    EXPECT_TRUE(std::is_sorted(written.begin(), written.end()));
    EXPECT_EQ(std::set(written.begin(), written.end()).size(), written.size());
    const std::int64_t last = written.empty() ? 0 : written.back();
    // Where an update is two entries, the mark may have passed the last value that was written.
    EXPECT_GE(last, acknowledged > 0 ? next - 1 + acknowledged : before)
        << "an acknowledged update is gone";
    before = last;
    const std::int64_t mark = mark_number(*connection);
    if (fence_->update_is_one_transaction()) {
      EXPECT_EQ(mark, last);
    }
    EXPECT_GE(mark, last);
    next = mark + 1;
  }
}

}  // namespace leasehold::testing
