#include "cli/demo/demo.h"

#include <errno.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <numeric>

#include "cli/command/arguments.h"
#include "cli/command/output.h"
#include "cli/command/own_program.h"
#include "cli/command/subcommand.h"
#include "cli/demo/book.h"
#include "cli/demo/stage.h"
#include "cli/demo/timeline.h"
#include "leasehold/sqlite/fence.h"

namespace leasehold::cli {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kOpening = 100;
constexpr std::int64_t kOfA = 10;
constexpr std::int64_t kOfB = 50;

std::string str(std::int64_t number) {
  return std::to_string(number);
}

std::string millis(BootClock::duration span) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f\u00a0ms",
                std::chrono::duration<double, std::milli>(span).count());
  return text;
}

void heading(const std::string& text) {
  tell("\n" + coloured(Colour::bold, text) + "\n\n");
}

// ---- Act 1: two cron jobs start in the same minute --------------------------------------------

// Runs until it is told to end, so that the two jobs surely meet.
constexpr const char* kExport =
    "echo started\n"
    "read -r go || exit 1\n"
    "echo exported >> \"$1\"\n";

class CronRace {
 public:
  explicit CronRace(Stage& stage)
      : stage_(stage), jobs_{Job(stage, command()), Job(stage, command())} {}
  void play();

 private:
  std::vector<std::string> command() const;
  std::size_t first_to_end();
  static void show(pid_t won, pid_t lost, const std::string& told);
  static void check_busy(const process::ExitStatus& status, const std::string& told, pid_t holder);
  std::int64_t exports() const;

  Stage& stage_;
  Job jobs_[2];
};

std::vector<std::string> CronRace::command() const {
  return {stage_.program(),       "run", "nightly", "--store",
          stage_.store(),         "--",  "sh",      stage_.file("export.sh"),
          stage_.file("exported")};
}

std::int64_t CronRace::exports() const {
  std::ifstream file(stage_.file("exported"));
  std::int64_t count = 0;
  for (std::string line; std::getline(file, line);) ++count;
  return count;
}

void CronRace::check_busy(const process::ExitStatus& status, const std::string& told,
                          pid_t holder) {
  expect(status == process::ExitStatus::exited(static_cast<int>(ExitStatus::busy)),
         "the second cron job should have been told busy, but " + status.describe() + ": " + told);
  expect(told.find(":" + std::to_string(holder) + ":") != std::string::npos,
         "the second cron job was not told who holds the lock, but: " + told);
}

// The loser: the winner's job waits to be told.
std::size_t CronRace::first_to_end() {
  const auto patience = process::within(10s);
  for (;;) {
    if (jobs_[0].child().poll()) return 0;
    if (jobs_[1].child().poll()) return 1;
    expect(std::chrono::steady_clock::now() < *patience, "both cron jobs still run");
    stage_.wait_once(-1, patience);  // SIGCHLD wakes it
  }
}

void CronRace::play() {
  const auto apart = jobs_[1].started() - jobs_[0].started();
  tell("  $ leasehold run nightly -- sh export.sh     " +
       coloured(Colour::dim, "twice, " + millis(apart) + " apart") + "\n\n");
  const std::size_t loser = first_to_end();
  Job& lost = jobs_[loser];
  Job& won = jobs_[1 - loser];
  const std::string told = lost.err();
  check_busy(lost.finish(), told, won.pid());

  process::write_all(won.child().in().get(), "go\n");
  const auto status = won.finish();
  expect(status.success(),
         "the cron job that had the lock " + status.describe() + ": " + won.err());
  expect(exports() == 1, "the export should have run once, but ran " + str(exports()) + " times");
  show(won.pid(), lost.pid(), told);
}

void CronRace::show(pid_t won, pid_t lost, const std::string& told) {
  tell("  pid " + std::to_string(won) + "   " + coloured(Colour::green, "ran") +
       "       exit status 0\n");
  tell("  pid " + std::to_string(lost) + "   " + coloured(Colour::yellow, "did not") +
       "   exit status " + label(ExitStatus::busy) + ", and was told why:\n");
  tell_wrapped(told, 14, Colour::dim);
  tell("\n");
  tell_wrapped("The export ran once. For this a lock is enough.");
}

void cron_race(Stage& stage) {
  heading("Act 1. Two cron jobs start at the same moment");
  std::ofstream(stage.file("export.sh")) << kExport;
  CronRace(stage).play();
}

// ---- Acts 2 and 3: the pause ------------------------------------------------------------------

// What is left to say when the picture is drawn.
struct PauseFacts {
  std::int64_t token_a = 0;
  std::int64_t token_b = 0;
  std::int64_t token_again = 0;  // with the fence: of A's second attempt
  BootClock::duration looked_before{};
  BootClock::duration left_then{};
  BootClock::duration frozen{};
  std::string lease_said;    // A's lease, at the moment of its late write
  std::string refused_with;  // the fence's sentence
};

class Pause {
 public:
  Pause(Stage& stage, bool fenced)
      : fenced_(fenced),
        path_(stage.file(fenced ? "fenced.db" : "bare.db")),
        book_(must(Book::create(path_, kOpening))),
        a_(prepared(stage), "A", path_, fenced),
        b_(stage, "B", path_, fenced),
        timeline_(fenced, BootClock::now()) {}

  PauseFacts play();
  std::vector<BookLine> lines() const { return must(book_.lines()); }
  // What the fence remembers, asked at the database itself.
  FenceMark mark() const;

 private:
  using Marks = std::vector<Timeline::Mark>;

  Stage& prepared(Stage& stage) {
    if (fenced_) must(sqlite::install_fence(book_.handle()));
    return stage;
  }
  Actor& actor(Lane lane) { return lane == Lane::a ? a_ : b_; }
  std::int64_t take(Lane lane);
  void show_grant(Lane lane, const Line& took);
  void read(Lane lane, std::int64_t expected);
  void look_at_lease();
  void freeze();
  void take_over();
  void add(Lane lane, std::int64_t amount, std::int64_t result);
  void thaw_and_write();
  void be_refused();
  void try_again();

  const bool fenced_;
  const std::string path_;
  Book book_;
  Actor a_;
  Actor b_;
  Timeline timeline_;
  PauseFacts facts_;
  BootTime looked_at_{};
  BootTime frozen_at_{};
};

PauseFacts Pause::play() {
  a_.hear("ready");
  b_.hear("ready");
  timeline_ = Timeline(fenced_, BootClock::now());
  timeline_.head();
  facts_.token_a = take(Lane::a);
  read(Lane::a, kOpening);
  look_at_lease();
  freeze();
  take_over();
  read(Lane::b, kOpening);
  add(Lane::b, kOfB, kOpening + kOfB);
  thaw_and_write();
  if (fenced_) try_again();
  a_.leave();
  b_.leave();
  return facts_;
}

std::int64_t Pause::take(Lane lane) {
  const Line took = actor(lane).ask("take", "took");
  show_grant(lane, took);
  return took.number(0);
}

void Pause::show_grant(Lane lane, const Line& took) {
  const std::string token = "token " + str(took.number(0));
  const std::string grant = (timeline_.taken() ? "┣ " : "┏ ") + token;
  timeline_.set_taken();
  if (lane == Lane::a) {
    timeline_.row(took.at, Marks{{Lane::a, "takes the lock"}, {Lane::lock, grant}},
                  Timeline::Arrow{Lane::a, Lane::lock});
    return;
  }
  timeline_.set_waiting(false);
  timeline_.row(took.at, Marks{{Lane::lock, grant}, {Lane::b, "takes over", Colour::green}},
                Timeline::Arrow{Lane::lock, Lane::b});
}

void Pause::read(Lane lane, std::int64_t expected) {
  actor(lane).tell("read");
  if (fenced_) {
    const Line entered = actor(lane).hear("entered");
    const std::string token = str(entered.number(0));
    const auto at_fence = mark().mark;
    expect(at_fence && at_fence->number.value() == entered.number(0),
           "token " + token + " has not entered the fence");
    timeline_.row(entered.at, Marks{{lane, "enters with " + token}, {Lane::fence, "║ " + token}},
                  Timeline::Arrow{lane, Lane::fence});
  }
  const Line got = actor(lane).hear("read");
  const std::string balance = str(got.number(0));
  expect(got.number(0) == expected,
         "the balance read should be " + str(expected) + ", not " + balance);
  timeline_.row(got.at, Marks{{lane, "reads " + balance}, {Lane::account, balance}},
                Timeline::Arrow{Lane::account, lane});
}

// Not shortly before a renewal: frozen in the middle of one, A would keep the store's file locked,
// and that is another story.
void Pause::look_at_lease() {
  Line looked = a_.ask("check", "checked");
  while (Millis(looked.number(0)) < kDemoTtl * 3 / 4) looked = a_.ask("check", "checked");
  facts_.left_then = Millis(looked.number(0));
  looked_at_ = looked.at;
  timeline_.row(looked.at, Marks{{Lane::a, "lease: " + seconds(facts_.left_then, 2) + " left"}});
}

void Pause::freeze() {
  frozen_at_ = a_.freeze();
  facts_.looked_before = frozen_at_ - looked_at_;
  timeline_.set_frozen(true);
  timeline_.row(frozen_at_, Marks{{Lane::a, "▓ SIGSTOP", Colour::yellow}});
  a_.tell("add " + str(kOfA));  // what it was about to do: the first thing it does when thawed
}

void Pause::take_over() {
  const Line busy = b_.ask("take", "busy");
  timeline_.row(busy.at, Marks{{Lane::b, "busy, so B waits"}},
                Timeline::Arrow{Lane::b, Lane::lock});
  timeline_.set_waiting(true);
  const auto patience = BootClock::now() + 3 * kDemoTtl;
  auto took = b_.hear_within("took", 500ms);
  for (; !took; took = b_.hear_within("took", 500ms)) {
    const BootTime now = BootClock::now();
    expect(now < patience, "B did not get the lock, although A's lease must be over");
    const std::string so_far = "▓ frozen " + seconds(now - frozen_at_, 1);
    timeline_.row(now, Marks{{Lane::a, so_far, Colour::yellow}});
  }
  facts_.token_b = took->number(0);
  expect(facts_.token_b == facts_.token_a + 1,
         "B's token should follow A's " + str(facts_.token_a) + ", but is " + str(facts_.token_b));
  show_grant(Lane::b, *took);
}

void Pause::add(Lane lane, std::int64_t amount, std::int64_t result) {
  const Line wrote = actor(lane).ask("add " + str(amount), "wrote");
  expect(wrote.number(0) == result && wrote.word(1) == "held",
         "a write with a good lease went wrong: " + wrote.text);
  timeline_.row(wrote.at,
                Marks{{lane, "writes " + str(result), Colour::green},
                      {Lane::account, str(result), Colour::green}},
                Timeline::Arrow{lane, Lane::account});
}

void Pause::thaw_and_write() {
  const BootTime thawed = a_.thaw();
  facts_.frozen = thawed - frozen_at_;
  timeline_.row(thawed, Marks{{Lane::a, "▓ SIGCONT", Colour::yellow}});
  timeline_.set_frozen(false);
  if (fenced_) return be_refused();

  const std::int64_t stale = kOpening + kOfA;
  const Line wrote = a_.hear("wrote");
  expect(wrote.number(0) == stale, "A should have written " + str(stale) + ", not " + wrote.text);
  facts_.lease_said = wrote.word(1);
  timeline_.row(wrote.at,
                Marks{{Lane::a, "writes " + str(stale), Colour::red},
                      {Lane::account, str(stale) + " ✗", Colour::red}},
                Timeline::Arrow{Lane::a, Lane::account, Colour::red});
}

void Pause::be_refused() {
  const Line refused = a_.hear("refused");
  const std::int64_t offered = refused.number(0);
  const std::int64_t mark = refused.number(1);
  expect(offered == facts_.token_a && mark == facts_.token_b,
         "the fence refused with other numbers: " + refused.text);
  facts_.lease_said = refused.word(2);
  facts_.refused_with =
      refused.text.substr(refused.text.find(facts_.lease_said) + facts_.lease_said.size() + 1);
  timeline_.row(refused.at,
                Marks{{Lane::a, "writes " + str(kOpening + kOfA), Colour::red},
                      {Lane::fence, "║ " + str(mark), Colour::bold},
                      {Lane::account, str(must(book_.balance())), Colour::green}},
                Timeline::Arrow{Lane::a, Lane::fence, Colour::red, true});
}

// What a good program does with a refusal: begin again, from a fresh read.
void Pause::try_again() {
  const Line released = b_.ask("give-back", "released");
  timeline_.row(released.at, Marks{{Lane::b, "gives it back"}},
                Timeline::Arrow{Lane::b, Lane::lock});
  facts_.token_again = take(Lane::a);
  read(Lane::a, kOpening + kOfB);
  add(Lane::a, kOfA, kOpening + kOfB + kOfA);
  a_.ask("give-back", "released");
}

FenceMark Pause::mark() const {
  auto fence = must(sqlite::Fence::open(book_.handle(), kDemoLock));
  auto mark = must(fence.mark());
  expect(mark.has_value(), "nobody has entered the fence");
  return std::move(*mark);
}

std::int64_t total(const std::vector<BookLine>& lines) {
  return std::accumulate(lines.begin(), lines.end(), std::int64_t{0},
                         [](std::int64_t sum, const BookLine& line) { return sum + line.amount; });
}

std::string padded(const std::string& text, std::size_t width) {
  return std::string(width - std::min(width, text.size()), ' ') + text;
}

void show_book(const std::vector<BookLine>& lines) {
  tell("\n" + coloured(Colour::dim, "    the account's book     amount   balance") + "\n");
  for (const BookLine& line : lines) {
    std::string who = line.who + (line.token > 0 ? ", token " + str(line.token) : "");
    who.resize(20, ' ');
    tell("    " + who + padded("+" + str(line.amount), 9) + padded(str(line.balance), 10) + "\n");
  }
  const std::int64_t sum = total(lines);
  const std::int64_t balance = lines.back().balance;
  const bool right = sum == balance;
  tell("    should be " + padded(str(sum), 29) + "\n");
  const std::string verdict = right ? "right" : str(sum - balance) + " lost";
  tell("    is " + padded(str(balance), 36) + "   " +
       coloured(right ? Colour::green : Colour::red, verdict) + "\n\n");
}

void check_pause(const PauseFacts& facts) {
  expect(facts.looked_before + facts.frozen > facts.left_then, "A was not frozen past its lease");
  expect(facts.lease_said == "lost",
         "A's lease should have said 'lost' after the pause, not '" + facts.lease_said + "'");
}

PauseFacts pause_without_fence(Stage& stage) {
  heading("Act 2. A holder is frozen past its lease, and nothing stands at the account");
  tell_wrapped("Account 7 holds " + str(kOpening) + ". A adds " + str(kOfA) + ", B adds " +
               str(kOfB) + ". Both lock first, for " + seconds(kDemoTtl, 0) +
               ", renewed while they live.");
  tell("\n");
  Pause pause(stage, false);
  PauseFacts facts = pause.play();
  check_pause(facts);
  const auto lines = pause.lines();
  expect(total(lines) - lines.back().balance == kOfB,
         "B's deposit should have been lost, but was not");
  show_book(lines);
  tell_wrapped("A was careful: it looked at its lease " + millis(facts.looked_before) +
               " before the freeze and had " + seconds(facts.left_then, 2) +
               " left. It woke after " + seconds(facts.frozen, 2) +
               " and wrote what it had worked out before. B's " + str(kOfB) +
               " are gone, and nobody was told.");
  return facts;
}

PauseFacts pause_with_fence(Stage& stage) {
  heading("Act 3. The same pause, with a fence at the account");
  tell_wrapped("The fence lets each token in before it reads, and no lower one after it.");
  tell("\n");
  Pause pause(stage, true);
  PauseFacts facts = pause.play();
  check_pause(facts);
  const auto lines = pause.lines();
  expect(total(lines) == lines.back().balance, "the account is wrong in spite of the fence");
  expect(lines.back().balance == kOpening + kOfA + kOfB,
         "a deposit is missing in spite of the fence");
  expect(pause.mark().refused == 1, "the fence should have counted one refusal");
  show_book(lines);
  tell_wrapped("The fence said to A:");
  tell_wrapped(facts.refused_with, 4, Colour::yellow);
  tell_wrapped("So A took the lock again, with token " + str(facts.token_again) +
               ", and began with a fresh read.");
  tell("\n");
  tell_wrapped("A's own lease knew: asked at the moment of the late write, it said '" +
               facts.lease_said + "'. But A had looked " + millis(facts.looked_before) +
               " before the freeze. Between a look and a write there is always room for a pause. "
               "The fence looks and writes in one step.");
  return facts;
}

void epilogue(const PauseFacts& bare, const PauseFacts& fenced) {
  heading("What you saw");
  tell_wrapped("A lock that ends by itself can end under a holder that is only slow.");
  tell_wrapped("Without a fence: token " + str(bare.token_a) + " wrote after token " +
               str(bare.token_b) + ", and an update was lost.");
  tell_wrapped("With a fence: token " + str(fenced.token_a) + " was refused, because token " +
               str(fenced.token_b) + " had entered. Nothing was lost.");
  heading("What to type next");
  // As this program was called: it may not be on the PATH.
  tell("  " + std::string(program_invocation_name) + " run nightly -- ./your-job.sh\n");
  tell("      one cron job at a time\n");
  tell("  less " + document_path("docs/guarantees.md") + "\n");
  tell("      what is promised, and what is not\n");
  tell("  less " + document_path("docs/fence-sqlite.md") + "\n");
  tell("      a fence at your own database\n");
}

void play(Signals& signals) {
  Stage stage(signals);
  cron_race(stage);
  stage.let_read(1200ms);
  const PauseFacts bare = pause_without_fence(stage);
  stage.let_read(1800ms);
  const PauseFacts fenced = pause_with_fence(stage);
  epilogue(bare, fenced);
}

class Demo final : public Subcommand {
 public:
  void declare(Arguments& arguments) override {
    arguments.description(
        "A story of about ten seconds: two cron jobs race for a lock; then a holder is frozen past "
        "its lease while another one works, first without a fence at the resource and then with "
        "one. Real processes, a real SIGSTOP, no server; everything happens in a temporary folder "
        "that is removed afterwards. Exits with 0 only if everything happened as told.");
    arguments.ends_with(ExitStatus::cancelled, "interrupted");
    arguments.example("leasehold demo", "see why a lock needs a fence");
  }
  Ending execute() override {
    Signals signals;
    return run_demo(signals);
  }
};

}  // namespace

ExitStatus run_demo(Signals& signals) {
  try {
    play(signals);
    return ExitStatus::done;
  } catch (const Interrupted&) {
    note("the demo was interrupted, and has cleaned up");
    return ExitStatus::cancelled;
  } catch (const OutputGone&) {
    return ExitStatus::outcome_unknown;  // print() has said why, unless nobody reads on
  } catch (const StoryBroken& reason) {
    note(std::string("the demo did not go as told: ") + reason.what());
    return ExitStatus::internal;
  }
}

SubcommandEntry demo_command() {
  return {"demo", "See why a lock needs a fence, in ten seconds", make<Demo>};
}

}  // namespace leasehold::cli
