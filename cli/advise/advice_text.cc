
#include "cli/advise/advice.h"
#include "cli/command/json.h"
#include "cli/command/output.h"
#include "cli/command/own_program.h"
#include "cli/command/text.h"

namespace leasehold::cli {
namespace {

std::string paragraph(const std::string& head, std::string_view text) {
  return "\n" + coloured(Colour::bold, head) + "\n  " + wrapped(text, 2) + "\n";
}

// Not wrapped, so that it can be copied.
std::string block(const std::string& head, std::string_view code) {
  if (code.empty()) return "";
  std::string text = "\n" + coloured(Colour::bold, head) + "\n";
  for (std::size_t from = 0; from < code.size();) {
    const std::size_t to = std::min(code.find('\n', from), code.size());
    const std::string_view line = code.substr(from, to - from);
    text += (line.empty() ? "" : "    " + std::string(line)) + "\n";
    from = to + 1;
  }
  return text;
}

std::string again(const Walk& walk) {
  std::string text = "leasehold advise";
  for (const Step& step : walk.path) {
    text += " --" + std::string(step.flag) + " " + std::string(step.answer);
  }
  return text;
}

std::string unused_text(const Walk& walk) {
  if (walk.unused.empty()) return "";
  std::string flags;
  for (const std::string& flag : walk.unused) flags += (flags.empty() ? "--" : ", --") + flag;
  return "  " + wrapped("Ignored, because it makes no difference here: " + flags + ".", 2) + "\n";
}

}  // namespace

std::string advice_text(const Walk& walk) {
  std::string text = coloured(Colour::bold, "You said:") + "\n";
  Table table;
  for (const Step& step : walk.path) {
    table.add({{"  --" + std::string(step.flag) + " " + std::string(step.answer)},
               {std::string(step.meaning)}});
  }
  text += table.str() + unused_text(walk);
  text += "\n" + coloured(Colour::green, walk.found->title) + "\n  " + wrapped(walk.found->why, 2) +
          "\n";
  text += block("Run this:", walk.commands());
  text += block("At the resource, in SQL:", walk.found->sql);
  text += block("Or in C++, for a SQLite database:", walk.found->cpp);
  text += paragraph("Beware:", walk.beware());
  text += paragraph("More:", document_path(walk.found->read) +
                                 ". If an answer above is wrong, change it and ask again:");
  return text + "    " + again(walk) + "\n";
}

std::string advice_json(const Walk& walk) {
  Json path = Json::array();
  for (const Step& step : walk.path) {
    path.push_back({{"flag", "--" + std::string(step.flag)},
                    {"question", question(step.flag).text},
                    {"answer", step.answer},
                    {"meaning", step.meaning}});
  }
  Json unused = Json::array();
  for (const std::string& flag : walk.unused) unused.push_back("--" + flag);
  const Json json = {{"path", path},
                     {"unused", unused},
                     {"recommendation",
                      {{"id", walk.found->id},
                       {"lock", walk.found->lock},
                       {"title", walk.found->title},
                       {"why", walk.found->why},
                       {"commands", walk.commands()},
                       {"sql", walk.found->sql},
                       {"cpp", walk.found->cpp},
                       {"beware", walk.beware()},
                       {"read", document_path(walk.found->read)}}}};
  return json_text(json);
}

}  // namespace leasehold::cli
