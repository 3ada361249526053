// The page in a real browser, without a window. A script is added to the page that does what a
// reader would do, and writes what it sees into the document.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <regex>

#include "leasehold/drill/report.h"
#include "leasehold/process/child.h"
#include "made_up.h"
#include "rig/temp_folder.h"

namespace leasehold::drill {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using namespace std::chrono_literals;

// At its beginning: without a window, and in virtual time, no frame is ever due.
constexpr const char* kFrameScript =
    "<head><script>window.requestAnimationFrame = draw => setTimeout(draw, 16);</script>";

// At the end of the page, when all has been drawn.
constexpr const char* kLookScript = R"(
<script>
'use strict';
const said = {};
const at = id => document.getElementById(id);
const canvas = at('timeline');
// How many pixels have nearly this colour of the style sheet.
function pixels(name, data) {
  const colour = getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();
  const wanted = [1, 3, 5].map(i => parseInt(colour.substr(i, 2), 16));
  let count = 0;
  for (let i = 0; i < data.length; i += 4) {
    if (wanted.every((value, part) => Math.abs(value - data[i + part]) < 12)) ++count;
  }
  return count;
}
const settled = () => new Promise(done => setTimeout(done, 100));
const shown = () => at('shown').textContent;
async function look() {
  await settled();
  const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  for (const name of ['held', 'believed', 'frozen', 'refused', 'stale', 'accepted']) said[name] = pixels(name, data);
  said.drawn = Number(canvas.dataset.drawn);
  said.first = shown();
  at('all').click();
  await settled();
  said.whole = shown();
  said.drawn_whole = Number(canvas.dataset.drawn);
  said.far = !at('far').hidden;
  at('in').click();
  await settled();
  said.zoomed = shown();
  canvas.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight'}));
  await settled();
  said.moved = shown();
  canvas.focus();
  canvas.dispatchEvent(new WheelEvent('wheel', {deltaY: -2000, clientX: 600, cancelable: true}));
  await settled();
  said.wheeled = shown();
  at('all').click();
  at('next').click();
  await settled();
  said.next = shown();
  at('next').click();
  await settled();
  said.after_next = shown();
  location.hash = '#at=1000-3000';
  await new Promise(done => window.addEventListener('hashchange', done, {once: true}));
  await settled();
  said.linked = shown();
  const box = canvas.getBoundingClientRect();
  // Everywhere in the picture, until something is told.
  at('all').click();
  at('next').click();
  await settled();
  for (let y = 20; y < box.height && !said.told; y += 5) {
    for (let x = 160; x < box.width && !said.told; x += 4) {
      canvas.dispatchEvent(new PointerEvent('pointermove', {clientX: box.left + x, clientY: box.top + y}));
      if (/refused|ACCEPTED/.test(at('detail').textContent)) said.told = at('detail').textContent;
    }
  }
}
look().catch(error => { said.error = String(error); }).then(() => {
  const list = document.createElement('pre');
  list.id = 'said';
  list.textContent = '\n' + Object.entries(said).map(([name, value]) => name + ' = ' + value + ';').join('\n');
  document.body.append(list);
});
</script>
</body>)";

struct Seen {
  std::string dom;
  std::string errors;
  std::string said(const std::string& name) const {
    const std::regex line("\n" + name + " = ([^;]*);");
    std::smatch found;
    return std::regex_search(dom, found, line) ? found[1].str() : "nothing was said of " + name;
  }
  long number(const std::string& name) const { return std::atol(said(name).c_str()); }
};

class BrowserTest : public ::testing::Test {
 protected:
  Seen look_at(std::string page, std::vector<std::string> flags = {}) {
    const std::size_t end = page.rfind("</body>");
    page.replace(end, std::string("</body>").size(), kLookScript);
    page.replace(page.find("<head>"), std::string("<head>").size(), kFrameScript);
    return open(page, std::move(flags));
  }

  // The document after its scripts have run, and what the browser complained of.
  Seen open(const std::string& page, std::vector<std::string> flags) {
    std::ofstream(folder_.file("page.html")) << page;
    std::vector<std::string> argv{LEASEHOLD_CHROMIUM,
                                  "--headless",
                                  "--no-sandbox",
                                  "--disable-gpu",
                                  "--disable-background-networking",
                                  "--disable-component-update",
                                  "--disable-sync",
                                  "--no-first-run",
                                  "--enable-logging=stderr",
                                  "--window-size=1200,1600",
                                  "--user-data-dir=" + folder_.file("profile"),
                                  "--virtual-time-budget=20000",
                                  "--dump-dom"};
    argv.insert(argv.end(), flags.begin(), flags.end());
    argv.push_back("file://" + folder_.file("page.html"));
    auto child = process::Child::start({.argv = argv,
                                        .environment = {{"HOME", folder_.path().string()}},
                                        .out = process::Piped{},
                                        .err = process::ToFile{folder_.file("errors")},
                                        .placement = process::Placement::own_group});
    EXPECT_TRUE(child);
    Seen seen;
    seen.dom = process::read_all(child->out().get(), process::within(120s));
    EXPECT_TRUE(child->wait_for(20s)) << "the browser does not end";
    std::ifstream errors(folder_.file("errors"));
    for (std::string line; std::getline(errors, line);) {
      if (line.find("CONSOLE") != std::string::npos) seen.errors += line + "\n";
    }
    return seen;
  }

  leasehold::rig::TempFolder folder_;
};

std::string page_of(const MadeUpPlan& plan) {
  const MadeUp made = made_up(plan);
  return to_html(made.outcome, made.history);
}

TEST_F(BrowserTest, ShowsTheNumbersAndDrawsWhatHappened) {
  const Seen seen = look_at(page_of({}));
  EXPECT_EQ(seen.errors, "");
  EXPECT_THAT(seen.dom, HasSubstr("data-ready=\"yes\""));
  EXPECT_THAT(seen.dom, HasSubstr("<dd id=\"stale_refused\">100</dd>"));
  EXPECT_THAT(seen.dom, HasSubstr("<dd id=\"stale_accepted\">0</dd>"));
  EXPECT_THAT(seen.dom, HasSubstr("data-verdict=\"held\""));
  EXPECT_EQ(seen.said("error"), "nothing was said of error");
  EXPECT_GT(seen.number("held"), 1000);
  EXPECT_GT(seen.number("believed"), 1000);
  EXPECT_GT(seen.number("frozen"), 500);
  EXPECT_GT(seen.number("refused"), 10);
  EXPECT_GT(seen.number("accepted"), 5);
  EXPECT_EQ(seen.number("stale"), 0);
}

TEST_F(BrowserTest, ShowsDamage) {
  const Seen seen = look_at(page_of({.fenced = false}));
  EXPECT_EQ(seen.errors, "");
  EXPECT_THAT(seen.dom, HasSubstr("data-verdict=\"damage\""));
  EXPECT_THAT(seen.dom, HasSubstr("<dd id=\"stale_accepted\">100</dd>"));
  EXPECT_GT(seen.number("stale"), 20);
  EXPECT_THAT(seen.said("told"), HasSubstr("A STALE WRITE WAS ACCEPTED"));
}

TEST_F(BrowserTest, CanBeMovedAndZoomed) {
  const Seen seen = look_at(page_of({}));
  EXPECT_EQ(seen.errors, "");
  EXPECT_THAT(seen.said("first"), HasSubstr("0.018 s to 0.069 s of 3.985 s"));
  EXPECT_THAT(seen.said("whole"), HasSubstr("0.000 s to 3.985 s"));
  EXPECT_THAT(seen.said("zoomed"), HasSubstr("0.996 s to 2.988 s"));
  EXPECT_THAT(seen.said("moved"), HasSubstr("1.395 s to 3.387 s"));
  EXPECT_THAT(seen.said("wheeled"), Not(HasSubstr(seen.said("moved"))));
  EXPECT_THAT(seen.said("next"), Not(HasSubstr(seen.said("whole"))));
  EXPECT_THAT(seen.said("after_next"), Not(HasSubstr(seen.said("next"))));
  EXPECT_THAT(seen.said("linked"), HasSubstr("0.001 s to 0.003 s"));
  EXPECT_THAT(seen.said("told"), AllOf(HasSubstr("worker-"), HasSubstr("refused, token ")));
}

// What is drawn is bounded by the width of the picture, not by the length of the drill: that is
// what makes it smooth.
TEST_F(BrowserTest, FiveMinutesTakeNoMoreDrawingThanFiveSeconds) {
  const std::string page = page_of({.seconds = 300, .cycles_per_second = 25});
  EXPECT_LE(page.size(), 2'000'000);
  const Seen seen = look_at(page);
  EXPECT_EQ(seen.errors, "");
  EXPECT_THAT(seen.dom, HasSubstr("<dd id=\"stale_refused\">7500</dd>"));
  EXPECT_EQ(seen.said("far"), "true");
  EXPECT_GT(seen.number("drawn_whole"), 500);
  EXPECT_LT(seen.number("drawn_whole"), 6 * 1200 * 2);  // six lanes
  EXPECT_GT(seen.number("drawn"), 5);
  EXPECT_LT(seen.number("drawn"), 6 * 1200 * 2);
}

TEST_F(BrowserTest, IsDarkWhereTheReaderWantsItDark) {
  const auto ground = R"(<script>
    const look = document.createElement('pre');
    look.textContent = '\nground = ' + getComputedStyle(document.body).backgroundColor + ';';
    document.body.append(look);
  </script></body>)";
  std::string page = page_of({.seconds = 1});
  page.replace(page.rfind("</body>"), 7, ground);
  EXPECT_EQ(open(page, {"--blink-settings=preferredColorScheme=1"}).said("ground"),
            "rgb(255, 255, 255)");
  EXPECT_EQ(open(page, {"--blink-settings=preferredColorScheme=0"}).said("ground"),
            "rgb(20, 24, 29)");
}

TEST_F(BrowserTest, TellsTokensBeyondFiftyThreeBitsExactly) {
  const Seen seen = look_at(page_of({.seconds = 1, .first_token = 9'007'199'254'740'994}));
  EXPECT_EQ(seen.errors, "");
  // The first of this lane is odd: no double has it, and the others count from it.
  EXPECT_THAT(seen.said("told"), AllOf(HasSubstr("refused, token 9007199254741022"),
                                       HasSubstr("lease, token 9007199254741022")));
}

TEST_F(BrowserTest, RunsNothingThatANameBrings) {
  const Seen seen = look_at(page_of({.seconds = 1, .lock_prefix = "</script><script>alert(1)//"}));
  EXPECT_EQ(seen.errors, "");
  EXPECT_GT(seen.number("held"), 1000);
}

}  // namespace
}  // namespace leasehold::drill
