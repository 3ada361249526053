#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "kit/text/visible_text.h"
#include "leasehold/drill/report.h"
#include "markup.h"
#include "moments.h"
#include "packed.h"
#include "page.h"
#include "timeline.h"

namespace leasehold::drill {
namespace {

using Json = nlohmann::ordered_json;

// Of the drawn part. The rest of the page is some fifty kilobytes.
constexpr std::size_t kMostBytes = 1'700'000;

// ---- small things ------------------------------------------------------------------------------

std::string seconds(std::chrono::nanoseconds span) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g s", std::chrono::duration<double>(span).count());
  return text;
}

std::string offset(std::int64_t nanos) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6f s", static_cast<double>(nanos) / 1e9);
  return text;
}

std::string_view class_of(Mood mood) {
  if (mood == Mood::plain) return "";
  return mood == Mood::good ? "good" : "bad";
}

std::string headline(Verdict verdict) {
  switch (verdict) {
    case Verdict::held:
      return "Nothing stale got through";
    case Verdict::damage:
      return "Damage was done";
    case Verdict::too_little:
      return "Too little happened to say anything";
  }
  return "";
}

// Each {{name}} of the page replaced, in one pass: what is put in is not looked at again.
std::string filled(std::string_view page, const std::map<std::string_view, std::string>& parts) {
  std::string text;
  for (;;) {
    const std::size_t open = page.find("{{");
    const std::size_t close = page.find("}}", open);
    if (open == std::string_view::npos || close == std::string_view::npos) break;
    text += page.substr(0, open);
    text += parts.at(page.substr(open + 2, close - open - 2));
    page.remove_prefix(close + 2);
  }
  return text + std::string(page);
}

// ---- tables ------------------------------------------------------------------------------------

std::string tile(const std::string& id, const std::string& name, std::uint64_t value, Mood mood) {
  return "<div class=\"" + std::string(class_of(mood)) + "\"><dt>" + name + "</dt><dd id=\"" + id +
         "\">" + std::to_string(value) + "</dd></div>\n";
}

Mood bad_if(std::uint64_t count) {
  return count == 0 ? Mood::good : Mood::bad;
}

std::string tiles(const Outcome& outcome) {
  return tile("cycles", "full cycles", outcome.cycles, Mood::plain) +
         tile("overlaps", "overlaps at the lock", outcome.report.overlaps.count, Mood::plain) +
         tile("stale_refused", "stale writes refused", outcome.stale_refused,
              outcome.stale_refused > 0 ? Mood::good : Mood::plain) +
         tile("stale_accepted", "stale writes accepted", outcome.stale_accepted,
              bad_if(outcome.stale_accepted)) +
         tile("updates_lost", "updates lost", outcome.updates_lost, bad_if(outcome.updates_lost));
}

// As long as the timeline beside it.
std::chrono::nanoseconds length(const Outcome& outcome, const Timeline& timeline) {
  const std::chrono::nanoseconds drawn(timeline.to - timeline.from);
  return drawn.count() > 0 ? drawn : outcome.duration;
}

std::string mode_of(const Outcome& outcome) {
  if (outcome.readers > 0) return outcome.mode + ", " + std::to_string(outcome.readers) + " read";
  const unsigned pieces = outcome.permits + outcome.partitions;
  if (pieces > 0) return outcome.mode + ", " + std::to_string(pieces);
  return outcome.mode;
}

std::string setup(const Outcome& outcome, const Timeline& timeline) {
  std::string faults;
  for (const Injected& each : outcome.faults) {
    faults += (faults.empty() ? "" : ", ") + each.fault + " ×" + std::to_string(each.times);
  }
  const std::pair<const char*, std::string> facts[] = {
      {"began", outcome.began},
      {"leasehold", outcome.version},
      {"worker", outcome.worker.empty() ? "Leasehold's own" : outcome.worker},
      {"store", outcome.store},
      {"fence", outcome.fence},
      {"mode", mode_of(outcome)},
      {"faults", faults},
      {"workers", std::to_string(outcome.workers)},
      {"locks", std::to_string(outcome.locks)},
      {"ttl", std::to_string(outcome.ttl.count()) + " ms"},
      {"duration", seconds(length(outcome, timeline))},
      {"seed", std::to_string(outcome.seed)},
  };
  std::string text;
  for (const auto& [name, value] : facts) {
    text += "<div><dt>" + std::string(name) + "</dt><dd>" + escaped(value) + "</dd></div>\n";
  }
  return text;
}

std::string notes(const Outcome& outcome) {
  if (outcome.notes.empty()) return "";
  std::string text = "<ul class=\"notes\">\n";
  for (const std::string& note : outcome.notes) text += "<li>" + escaped(note) + "</li>\n";
  return text + "</ul>\n";
}

std::string number_rows(const Outcome& outcome) {
  std::string text;
  for (const Row& row : rows(outcome)) {
    text += "<tr><td>" + escaped(row.name) + "</td><td class=\"n " +
            std::string(class_of(row.mood)) + "\">" + escaped(row.value) +
            "</td><td class=\"meaning\">" + escaped(row.meaning) + "</td></tr>\n";
  }
  return text;
}

std::string check_rows(const Report& report) {
  std::string text;
  for (const CheckDoc& doc : check_docs()) {
    const std::uint64_t count = report.count(doc.check);
    const bool judged = report.judged(doc.check);
    text += "<tr><td>" + std::string(to_string(doc.check)) + "</td><td>" + escaped(doc.asserts) +
            "</td><td class=\"n " + std::string(class_of(judged ? bad_if(count) : Mood::plain)) +
            "\">" + (judged ? std::to_string(count) : "not judged") + "</td></tr>\n";
  }
  return text;
}

// ---- moments -----------------------------------------------------------------------------------

std::string link_to(const Moment& moment, const Timeline& timeline) {
  const auto micros = [&](std::int64_t time) {
    return std::to_string((time - timeline.from) / 1000);
  };
  return "#at=" + micros(moment.from) + "-" + micros(moment.to);
}

std::string moment_row(const Moment& moment, const Timeline& timeline) {
  const std::size_t end = std::min(moment.details.find('\n'), moment.details.size());
  std::string details = escaped(moment.details.substr(0, end));
  if (end < moment.details.size()) {
    details += "<details><summary>records</summary><pre>" +
               escaped_lines(moment.details.substr(end + 1)) + "</pre></details>";
  }
  return "<tr><td class=\"n\"><a href=\"" + link_to(moment, timeline) + "\">" +
         offset(moment.time - timeline.from) + "</a></td><td class=\"" + (moment.bad ? "bad" : "") +
         "\">" + escaped(moment.what) + "</td><td>" + escaped(moment.where) + "</td><td>" +
         details + "</td></tr>\n";
}

std::string moment_table(const std::vector<Moment>& moments, const Timeline& timeline) {
  if (moments.empty()) return "";
  std::string text =
      "<section>\n<h2>Moments to look at</h2>\n<table id=\"moments\">\n<thead><tr><th "
      "class=\"n\">at</th><th>what</th><th>who</th><th></th></tr></thead>\n<tbody>\n";
  for (const Moment& moment : moments) text += moment_row(moment, timeline);
  return text + "</tbody>\n</table>\n</section>\n";
}

// ---- the timeline ------------------------------------------------------------------------------

// Exact if there is room. Else what is close together is drawn as one: first where all was well.
std::string fitting(const Timeline& timeline) {
  std::string text = packed(timeline);
  for (const bool quiet_only : {true, false}) {
    for (std::int64_t span = 1'000'000; span <= timeline.to - timeline.from; span *= 2) {
      if (text.size() <= kMostBytes) return text;
      text = packed(thinned(timeline, span, quiet_only));
    }
  }
  return text;
}

// What to show first: the gravest moment, else a part in which something can be seen.
std::pair<std::int64_t, std::int64_t> first_view(const Timeline& timeline,
                                                 const std::vector<Moment>& moments) {
  if (!moments.empty()) return {moments.front().from, moments.front().to};
  return {timeline.from, timeline.to};
}

std::string meta(const Outcome& outcome, const Timeline& timeline,
                 const std::vector<Moment>& moments) {
  const auto micros = [&](std::int64_t time) { return (time - timeline.from) / 1000; };
  Json lanes = Json::array();
  for (const Lane& lane : timeline.lanes) {
    Json owners = Json::array();
    for (const Lane::Owner& owner : lane.owners) {
      owners.push_back({micros(owner.from), kit::visible(owner.name)});
    }
    lanes.push_back({kit::visible(lane.lock), owners});
  }
  Json faults = Json::array();
  for (int i = 0; i <= static_cast<int>(Operation::clock); ++i) {
    faults.push_back(std::string(to_string(static_cast<Operation>(i))));
  }
  const auto [from, to] = first_view(timeline, moments);
  const Json json = {{"to", micros(timeline.to)},
                     {"show", {micros(from), micros(to)}},
                     {"cycle", std::max<std::int64_t>(outcome.ttl.count() * 2000, 1000)},
                     {"pause", static_cast<int>(Operation::pause)},
                     {"faults", faults},
                     {"lanes", lanes}};
  // Inside a script element only this character could end it.
  std::string text;
  for (const char each : json.dump(-1, ' ', true)) {
    if (each == '<') {
      text += "\\u003c";
    } else {
      text += each;
    }
  }
  return text;
}

}  // namespace

std::string to_html(const Outcome& outcome, const History& history) {
  const Timeline timeline = timeline_of(history);
  const auto moments = moments_of(outcome, history, timeline);
  const Verdict found = judge(outcome);
  return filled(kPage, {{"headline", headline(found)},
                        {"verdict", std::string(to_string(found))},
                        {"store", escaped(outcome.store)},
                        {"sentence", escaped(sentence(outcome))},
                        {"css", std::string(kStyle)},
                        {"tiles", tiles(outcome)},
                        {"setup", setup(outcome, timeline)},
                        {"notes", notes(outcome)},
                        {"moments", moment_table(moments, timeline)},
                        {"rows", number_rows(outcome)},
                        {"checks", check_rows(outcome.report)},
                        {"meta", meta(outcome, timeline, moments)},
                        {"packed", fitting(timeline)},
                        {"script", std::string(kScript)}});
}

}  // namespace leasehold::drill
