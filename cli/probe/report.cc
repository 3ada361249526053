#include "cli/probe/report.h"

#include <algorithm>
#include <cmath>

#include "cli/command/json.h"
#include "cli/command/output.h"
#include "cli/command/text.h"
#include "cli/probe/bars.h"
#include "leasehold/ttl.h"

namespace leasehold::cli {
namespace {

constexpr std::size_t kBarWidth = 40;
constexpr double kSizingShare = 0.9999;
constexpr int kMissed = 3;
constexpr std::uint64_t kFew = 10;

std::string plural(double count, const std::string& word) {
  return format_number(count) + " " + word + (count == 1 ? "" : "s");
}

std::vector<std::string> assumptions(const ProbeReport& report) {
  return {
      "A pause stops the whole process, its renewals too, and begins at a random moment.",
      "The lease is renewed every third of its TTL, at once and without failure. So two thirds to "
      "all of it is left when a pause begins, less a thousandth and 2ms for the clocks.",
      "Each operation looks at its lease just before it begins, and they come evenly.",
      "Other days are like the time that was measured. Nothing is concluded about pauses longer "
      "than those seen.",
      "Moments are " + format_span(report.measured.tick) +
          " apart, so a pause may be that much longer than it was seen to be."};
}

// How many moments lie beyond the quantile: what it rests on.
std::uint64_t beyond(const ProbeReport& report, double share) {
  const auto count = static_cast<double>(report.measured.delays.count());
  return static_cast<std::uint64_t>(std::floor(count * (1 - share) + 1e-9));
}

std::string bar(double height) {
  const auto length = static_cast<std::size_t>(std::lround(height * kBarWidth));
  std::string text;
  for (std::size_t i = 0; i < length; ++i) text += locale_is_utf8() ? "█" : "#";
  return text;
}

std::string range(const Bar& bar) {
  const auto padded = [](std::string text) {
    text.insert(0, 7 - std::min<std::size_t>(text.size(), 7), ' ');
    return text;
  };
  return padded(format_span(bar.from)) + " - " + padded(format_span(bar.to));
}

std::string marks_in(const Bar& bar, const probe::Histogram& delays) {
  std::string marks;
  for (const Quantile& one : kQuantiles) {
    const Nanos value = delays.quantile(one.share);
    if (value >= bar.from && value < bar.to) marks += std::string(" ") + one.name;
  }
  return marks;
}

std::string plot(const probe::Histogram& delays) {
  const auto bars = bars_of(delays);
  std::uint64_t largest = 1;
  for (const Bar& one : bars) largest = std::max(largest, one.count);
  const std::size_t digits = std::to_string(largest).size();
  std::string text;
  for (const Bar& one : bars) {
    std::string count = std::to_string(one.count);
    count.insert(0, digits - count.size(), ' ');
    text += "  " + range(one) + "  " + count + "  " +
            coloured(Colour::green, bar(log_height(one.count, largest))) +
            coloured(Colour::bold, marks_in(one, delays)) + "\n";
  }
  return text;
}

// Empty if the quantile rests on enough moments.
std::string doubt(const ProbeReport& report, double share) {
  const std::uint64_t rests_on = beyond(report, share);
  if (share == 1 || rests_on >= kFew) return "";
  const auto wanted = static_cast<Nanos::rep>(std::lround(kFew / (1 - share)));
  const std::string what = rests_on == 0
                               ? "only the longest seen"
                               : "rests on " + plural(static_cast<double>(rests_on), "moment");
  return what + "; to rest on ten, measure " + format_span(report.measured.tick * wanted);
}

std::string quantiles(const ProbeReport& report) {
  Table table;
  for (const Quantile& one : kQuantiles) {
    std::vector<Table::Cell> row = {{std::string("  ") + one.name, Colour::bold},
                                    {format_span(report.measured.delays.quantile(one.share))}};
    if (auto text = doubt(report, one.share); !text.empty()) {
      row.push_back({std::move(text), Colour::dim});
    }
    table.add(std::move(row));
  }
  return table.str();
}

std::string suspends(const ProbeReport& report) {
  if (report.measured.suspends == 0) return "The machine was not suspended meanwhile.";
  return "The machine was suspended " +
         plural(static_cast<double>(report.measured.suspends), "time") + " meanwhile, for " +
         format_span(report.measured.suspended) + " in all. That is among the pauses.";
}

std::string paragraph(const std::string& text) {
  return "  " + wrapped(text, 2) + "\n";
}

std::string violations_text(const ProbeReport& report) {
  const probe::Left left = probe::left_of(report.work.ttl);
  const probe::Violations found = probe::violations(report.measured, report.work);
  std::string text =
      paragraph("A pause does harm if it is longer than what is left of the lease, " +
                format_span(left.least) + " to " + format_span(left.most) +
                ", and an operation is in flight: " + format_number(report.work.at_once()) +
                " at any moment, on average.");
  const std::string at_most =
      "With 95 % confidence it is at most " + format_number(found.per_day_most) + " a day";
  if (found.pauses > 0) {
    return text + paragraph("Seen: " + plural(static_cast<double>(found.pauses), "pause") +
                            " as long as that. Expect " + format_number(found.per_day) +
                            " violations a day. " + at_most + ".");
  }
  return text +
         paragraph("Seen: no such pause in " + format_span(report.measured.length) +
                   ". That is not zero. " + at_most +
                   " (three divided by the time measured). A short measurement cannot see rare "
                   "pauses: to know that it is less than one a day, measure for " +
                   format_number(found.days_for_less_than_one) + " days and see none.");
}

// Not rounded: a lease of a little less would not survive.
std::string exactly(Millis ttl) {
  const auto count = ttl.count();
  return count % 1000 == 0 ? std::to_string(count / 1000) + "s" : std::to_string(count) + "ms";
}

std::string ttl_text(const ProbeReport& report) {
  const Nanos pause = report.measured.delays.quantile(kSizingShare);
  const auto ttl = probe::surviving_ttl(pause, kMissed);
  const std::string event = "the p99.99 delay of " + format_span(pause) +
                            " at every renewal, and three renewals in a row that fail";
  if (!ttl) return paragraph("No TTL up to 24h survives " + event + ".");
  return paragraph("The shortest TTL that survives " + event + ": " + exactly(*ttl) +
                   (*ttl == Ttl::kMin ? ", and no shorter one is allowed" : "") +
                   ". The store's own delays come on top, and pauses that were not seen. A longer "
                   "TTL costs only a longer wait after a crash.");
}

}  // namespace

std::string circumstances(const ProbeReport& report) {
  const std::string load =
      report.load == 0 ? "without load" : "with " + plural(report.load, "busy thread");
  return format_span(report.measured.length) + ", " + load + ", on " +
         plural(report.processors, "processor");
}

std::string probe_text(const ProbeReport& report) {
  std::string text =
      "Measured " + circumstances(report) + (report.ended_early() ? "; ended early" : "") + ".\n";
  text += wrapped("At " + plural(static_cast<double>(report.measured.delays.count()), "moment") +
                      ", " + format_span(report.measured.tick) +
                      " apart, a thread wanted to run. So late it did (the bars are logarithmic):",
                  0) +
          "\n\n" + plot(report.measured.delays) + "\n" + quantiles(report) + "\n" +
          suspends(report) + "\n\n";
  text += wrapped("With a TTL of " + exactly(report.work.ttl) + " and " +
                      plural(report.work.per_second, "operation") + " a second, each " +
                      format_span(report.work.in_flight) + " in flight:",
                  0) +
          "\n" + violations_text(report) + ttl_text(report) +
          "\nWhat stands behind these numbers:\n";
  for (const std::string& one : assumptions(report)) text += "- " + wrapped(one, 2) + "\n";
  return text + "\n" + coloured(Colour::bold, kNeverZero) + "\n";
}

std::string probe_json(const ProbeReport& report) {
  const probe::Measurement& measured = report.measured;
  const probe::Left left = probe::left_of(report.work.ttl);
  const probe::Violations found = probe::violations(measured, report.work);
  const Nanos pause = measured.delays.quantile(kSizingShare);
  const auto ttl = probe::surviving_ttl(pause, kMissed);
  Json delay;
  for (const Quantile& one : kQuantiles) {
    delay[one.name] = {{"ns", measured.delays.quantile(one.share).count()},
                       {"moments_beyond", beyond(report, one.share)}};
  }
  Json bars = Json::array();
  for (const Bar& one : bars_of(measured.delays)) {
    bars.push_back(
        {{"from_ns", one.from.count()}, {"to_ns", one.to.count()}, {"moments", one.count}});
  }
  const Json json = {
      {"measured",
       {{"length_ns", measured.length.count()},
        {"asked_ns", report.how.duration.count()},
        {"ended_early", report.ended_early()},
        {"tick_ns", measured.tick.count()},
        {"moments", measured.delays.count()},
        {"load", report.load},
        {"spin", report.how.waiting == probe::Waiting::spin},
        {"processors", report.processors}}},
      {"delay", delay},
      {"histogram", bars},
      {"suspend", {{"times", measured.suspends}, {"total_ns", measured.suspended.count()}}},
      {"workload",
       {{"ttl_ms", report.work.ttl.count()},
        {"rate", report.work.per_second},
        {"operation_ns", report.work.in_flight.count()},
        {"in_flight", report.work.at_once()}}},
      {"violations",
       {{"lease_left_least_ns", left.least.count()},
        {"lease_left_most_ns", left.most.count()},
        {"pauses_seen", found.pauses},
        {"per_day", found.per_day},
        {"per_day_at_most", found.per_day_most},
        {"confidence", 0.95},
        {"days_to_measure_for_less_than_one", found.days_for_less_than_one}}},
      {"surviving_ttl",
       {{"ttl_ms", ttl ? Json(ttl->count()) : Json(nullptr)},
        {"pause_ns", pause.count()},
        {"missed_renewals", kMissed}}},
      {"assumptions", assumptions(report)},
      {"note", kNeverZero}};
  return json_text(json);
}

}  // namespace leasehold::cli
