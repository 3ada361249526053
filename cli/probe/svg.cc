#include <algorithm>
#include <cmath>
#include <cstdio>

#include "cli/probe/bars.h"
#include "cli/probe/report.h"

namespace leasehold::cli {
namespace {

constexpr double kWidth = 760;
constexpr double kHeight = 400;
constexpr double kLeft = 80;
constexpr double kRight = 20;
constexpr double kTop = 90;
constexpr double kBottom = 60;
constexpr double kFloor = kHeight - kBottom;

constexpr const char* kStyle =
    "<style>"
    "svg{font:13px sans-serif;background:#fff}"
    "text{fill:#222}.small{font-size:11px;fill:#555}.title{font-size:16px}"
    ".bar{fill:#3b7a57}.axis{stroke:#888}.grid{stroke:#ddd}"
    ".mark{stroke:#b03a2e;stroke-dasharray:4 3}.markname{fill:#b03a2e;font-size:11px;"
    "paint-order:stroke;stroke:#fff;stroke-width:3px}"
    "</style>\n";

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

std::string label(double x, double y, const std::string& text, const std::string& attributes) {
  return "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" " + attributes + ">" + text +
         "</text>\n";
}

std::string line(double x1, double y1, double x2, double y2, const std::string& kind) {
  return "<line class=\"" + kind + "\" x1=\"" + number(x1) + "\" y1=\"" + number(y1) + "\" x2=\"" +
         number(x2) + "\" y2=\"" + number(y2) + "\"/>\n";
}

// Both axes logarithmic. All that is written into the picture is made of our own words and numbers.
class Picture {
 public:
  explicit Picture(const ProbeReport& report)
      : report_(report), bars_(bars_of(report.measured.delays)) {
    for (const Bar& bar : bars_) largest_ = std::max(largest_, bar.count);
  }

  std::string str() const {
    return "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + number(kWidth) + " " +
           number(kHeight) + "\" role=\"img\" aria-label=\"Histogram of measured delays\">\n" +
           kStyle + head() + grid() + bars() + marks() + "</svg>\n";
  }

 private:
  double width() const {
    return (kWidth - kLeft - kRight) / static_cast<double>(std::max<std::size_t>(bars_.size(), 1));
  }
  double x_of(std::size_t bar) const { return kLeft + width() * static_cast<double>(bar); }
  double y_of(std::uint64_t count) const {
    return kFloor - (kFloor - kTop) * log_height(count, largest_);
  }
  // Within its bar by the logarithm of its length.
  double x_of(Nanos value) const {
    for (std::size_t i = 0; i < bars_.size(); ++i) {
      if (value >= bars_[i].to) continue;
      const double from = std::log(std::max(static_cast<double>(bars_[i].from.count()), 1.0));
      const double to = std::log(static_cast<double>(bars_[i].to.count()));
      const double at = std::log(std::max(static_cast<double>(value.count()), 1.0));
      return x_of(i) + width() * std::clamp((at - from) / (to - from), 0.0, 1.0);
    }
    return x_of(bars_.size());
  }

  std::string head() const {
    return label(kLeft, 26, "How late a thread ran that wanted to", "class=\"title\"") +
           label(kLeft, 44,
                 circumstances(report_) + "; " + std::to_string(report_.measured.delays.count()) +
                     " moments, " + format_span(report_.measured.tick) + " apart",
                 "class=\"small\"") +
           label(kLeft + (kWidth - kLeft - kRight) / 2, kHeight - 12,
                 "delay (bars and axes are logarithmic)", "class=\"small\" text-anchor=\"middle\"");
  }

  std::string grid() const {
    std::string text;
    for (std::uint64_t count = 1; count <= largest_; count *= 10) {
      const double y = y_of(count);
      text += line(kLeft, y, kWidth - kRight, y, "grid") +
              label(kLeft - 8, y + 4, std::to_string(count), "class=\"small\" text-anchor=\"end\"");
      if (count > largest_ / 10) break;
    }
    return text + line(kLeft, kFloor, kWidth - kRight, kFloor, "axis");
  }

  std::string bars() const {
    std::string text;
    for (std::size_t i = 0; i < bars_.size(); ++i) {
      const double top = y_of(bars_[i].count);
      text += "<rect class=\"bar\" x=\"" + number(x_of(i) + 1) + "\" y=\"" + number(top) +
              "\" width=\"" + number(std::max(width() - 2, 1.0)) + "\" height=\"" +
              number(kFloor - top) + "\"><title>" + format_span(bars_[i].from) + " to " +
              format_span(bars_[i].to) + ": " + std::to_string(bars_[i].count) +
              " moments</title></rect>\n";
      // With many bars there is no room for every label.
      if (i % (1 + bars_.size() / 12) != 0) continue;
      text += label(x_of(i), kFloor + 18, format_span(bars_[i].from),
                    "class=\"small\" text-anchor=\"middle\"");
    }
    if (bars_.empty()) return text;
    return text + line(kWidth - kRight, kFloor, kWidth - kRight, kFloor + 5, "axis");
  }

  std::string marks() const {
    std::string text;
    double y = kTop - 30;
    for (const Quantile& one : kQuantiles) {
      const Nanos value = report_.measured.delays.quantile(one.share);
      const double x = x_of(value);
      // Next to the line, on the side where there is room; one under the other, as they may be
      // near.
      const bool left = x > kWidth - 150;
      text +=
          line(x, y - 8, x, kFloor, "mark") +
          label(x + (left ? -4 : 4), y, one.name + (" " + format_span(value)),
                std::string("class=\"markname\" text-anchor=\"") + (left ? "end" : "start") + "\"");
      y += 13;
    }
    return text;
  }

  const ProbeReport& report_;
  std::vector<Bar> bars_;
  std::uint64_t largest_ = 1;
};

}  // namespace

std::string probe_svg(const ProbeReport& report) {
  return Picture(report).str();
}

}  // namespace leasehold::cli
