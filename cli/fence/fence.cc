#include <algorithm>

#include "cli/command/arguments.h"
#include "cli/command/exit_status.h"
#ifdef LEASEHOLD_HAS_FILES
#include "cli/fence/data.h"
#endif
#include "cli/command/output.h"
#include "cli/command/store_choice.h"
#include "cli/command/subcommand.h"
#include "cli/command/url_help.h"
#include "cli/fence/json.h"
#include "cli/fence/open_fence.h"
#include "cli/fence/sweep.h"
#include "doctor/marks_ahead.h"

namespace leasehold::cli {
namespace {

std::string lineage_of(const FenceMark& mark) {
  if (mark.lineage) return pasteable(mark.lineage->str());
  return mark.claim ? "none: it is used with claims" : "the first to come";
}

std::vector<Table::Cell> row_of(const FenceMark& mark) {
  return {{pasteable(mark.resource.str())},
          {mark.mark ? std::to_string(mark.mark->number.value()) : "-"},
          {mark.mark ? mark.mark->request.hex() : "-"},
          {mark.reader ? std::to_string(mark.reader->number.value()) : "-"},
          {std::to_string(mark.refused), mark.refused > 0 ? Colour::yellow : Colour::none},
          {mark.claim ? mark.claim->hex() : "-"},
          {lineage_of(mark)}};
}

std::string tables_text(const std::vector<GuardedTable>& tables) {
  if (tables.empty()) return "";
  Table text;
  text.add({{"TABLE", Colour::bold}, {"GUARDED BY", Colour::bold}, {"STATE", Colour::bold}});
  for (const GuardedTable& table : tables) {
    text.add({{table.table},
              {pasteable(table.resource.str())},
              {table.armed ? "armed" : "a trigger is gone, disabled or not ours: install it again",
               table.armed ? Colour::none : Colour::red}});
  }
  return "\n" + text.str();
}

std::string floors_text(const std::vector<FenceFloor>& floors) {
  if (floors.empty()) return "";
  Table text;
  text.add({{"STORE", Colour::bold}, {"WITHOUT A MARK REFUSED UP TO", Colour::bold}});
  for (const FenceFloor& it : floors) text.add({{it.store.hex()}, {std::to_string(it.floor)}});
  return "\n" + text.str();
}

bool is_among(const std::vector<FenceMark>& marks, const ResourceName& resource) {
  return std::any_of(marks.begin(), marks.end(),
                     [&](const FenceMark& mark) { return mark.resource == resource; });
}

// Those that the chosen store has not given yet. If it cannot be asked, only that is said.
std::vector<doctor::MarkAhead> ahead_of_store(const doctor::FenceMemory& memory,
                                              const std::optional<std::string>& store) {
  constexpr auto patience = std::chrono::seconds(5);
  if (memory.is_empty() || is_not_there_yet(store)) return {};
  auto client = open_existing_store(store);
  auto ahead = client ? doctor::marks_ahead(*client, memory, {BootClock::now() + patience, {}})
                      : fail(client.error());
  if (ahead) return std::move(*ahead);
  note("the marks were not compared with the lock store: " + to_string(ahead.error()));
  return {};
}

void warn_of(const std::vector<doctor::MarkAhead>& ahead) {
  for (const doctor::MarkAhead& it : ahead) note(it.sentence());
  if (ahead.empty()) return;
  note(
      "the lock store was restored from a backup, or has lost what it wrote; leasehold doctor "
      "tells what follows, and what to do");
}

ExitStatus not_without_force(std::string_view what) {
  note(std::string(what) + "; if that is what you want, add --force");
  return ExitStatus::wrong_input;
}

class Fence final : public Subcommand {
 public:
  void declare(Arguments& arguments) override {
    arguments.description(
        "A fence stands at the resource and refuses the token of a holder that was overtaken.");
    arguments.uses_store();
    arguments.ends_with(ExitStatus::lost, "refused");
    arguments.example("leasehold fence show sqlite:/var/lib/app/app.db", "marks and refusals");
    declare_show(arguments.subcommand("show", "Show the marks and what was refused"));
    declare_install(arguments.subcommand("install", "Create what the fence needs"));
    declare_adopt(arguments.subcommand("adopt", "Let the tokens of a new lock store in"));
    declare_reset(arguments.subcommand("reset", "Forget the mark of one resource"));
    declare_remove(arguments.subcommand("remove", "Take the fence or the guard of a table away"));
    sweep_.declare(arguments);
#ifdef LEASEHOLD_HAS_FILES
    data_.declare(arguments);
#endif
  }

  Ending execute() override {
#ifdef LEASEHOLD_HAS_FILES
    if (data_.chosen()) return data_.execute();
#endif
    if (sweep_.chosen()) return sweep_.execute();
    if (show_->chosen()) return show();
    if (adopt_->chosen()) return adopt();
    if (reset_->chosen()) return reset();
    if (remove_->chosen()) return remove();
    return install();
  }

 private:
  void declare_url(Arguments& arguments) {
    arguments.positional("URL", url_, "The resource: " + example_urls(kFenceOffer),
                         url_beginnings(kFenceOffer));
  }

  void declare_show(Arguments& arguments) {
    show_ = &arguments;
    declare_url(arguments);
    declare_store(arguments, store_);
    arguments.flag("--json", json_, "For programs: one JSON object");
    arguments.description(
        "Shows each mark, the highest token that has read beside others since, and how often the "
        "fence refused. Warns about marks above what the lock "
        "store has counted to: it was restored from a backup.");
    arguments.example("leasehold fence show sqlite:/var/lib/app/app.db --json",
                      "marks and refusals, for a program");
  }

  void declare_install(Arguments& arguments) {
    declare_url(arguments);
    arguments.option("--table", "TABLE", table_,
                     "Also refuse every write to this table in a transaction that has not "
                     "entered");
    arguments.option("--resource", "RESOURCE", guard_,
                     "The resource that a writer of --table must have entered; default: named as "
                     "the table");
    arguments.example(
        "leasehold fence install sqlite:/var/lib/app/app.db",
        "create the fence's table; doing it again repairs what is not as it was made");
    arguments.example("leasehold fence install postgres://app@db/shop --table orders",
                      "and let nobody write to a table who has not entered");
  }

  void declare_adopt(Arguments& arguments) {
    adopt_ = &arguments;
    arguments.description(
        "After the lock store was restored or replaced, its tokens are of another lineage and the "
        "fence refuses them. This lets the new lineage in, from a number on, and nobody else.");
    declare_url(arguments);
    arguments.positional("RESOURCE", resource_, "The resource's name at the fence");
    arguments.required_option("--lineage", "LINEAGE", lineage_,
                              "The lineage to let in, as in LEASEHOLD_LINEAGE of 'leasehold run'");
    arguments.required_option("--at-least", "N", at_least_, "The lowest token to let in");
    arguments.example(
        "leasehold fence adopt sqlite:/var/lib/app/app.db invoices "
        "--lineage 00112233445566778899aabbccddeeff/invoices --at-least 1",
        "let a new lock store in");
  }

  void declare_reset(Arguments& arguments) {
    reset_ = &arguments;
    arguments.description(
        "For a resource that was created again. Its mark, lineage and claim are forgotten, and the "
        "first to come is let in: stop all its holders before. After the lock store was replaced "
        "use 'leasehold fence adopt', which shuts the old holders out.");
    declare_url(arguments);
    arguments.positional("RESOURCE", resource_, "The resource's name at the fence");
    arguments.flag("--force", force_, "Really forget it");
    arguments.example("leasehold fence reset sqlite:/var/lib/app/app.db invoices --force",
                      "let the first to come in again");
  }

  void declare_remove(Arguments& arguments) {
    remove_ = &arguments;
    arguments.description(
        "Takes away what 'leasehold fence install' created, with all marks; or with --table only "
        "the guard of that table. From then on nobody is refused.");
    declare_url(arguments);
    arguments.option("--table", "TABLE", table_, "Only the guard of this table");
    arguments.flag("--force", force_, "Really take it away");
    arguments.example("leasehold fence remove sqlite:/var/lib/app/app.db --force",
                      "a database without a fence");
  }

  // The resource that guards table_.
  Result<ResourceName> guarding() const {
    return ResourceName::parse(guard_.value_or(table_.value_or("")));
  }

  ExitStatus install() const {
    if (guard_ && !table_) {
      return report(Error(ErrorCode::invalid,
                          "--resource needs --table: it names the resource "
                          "that a writer of the table must have entered"));
    }
    const auto resource = guarding();
    if (table_ && !resource) return report(resource.error());
    const auto fence = open_fence(url_);
    if (!fence) return report(fence.error());
    if (const auto done = (*fence)->install(); !done) return report(done.error());
    if (!table_) return print("the fence is installed\n");
    if (const auto done = (*fence)->guard(*table_, *resource); !done) return report(done.error());
    return print("the fence is installed; table '" + visible(*table_) +
                 "' is written only by those who have entered " + in_quotes(resource->str()) +
                 "\n");
  }

  ExitStatus reset() const {
    const auto resource = ResourceName::parse(resource_);
    if (!resource) return report(resource.error());
    if (!force_) {
      return not_without_force(
          "reset lets the first to come in, which may be a holder that was overtaken");
    }
    const auto fence = open_fence(url_);
    if (!fence) return report(fence.error());
    if (const auto done = (*fence)->reset(*resource); !done) return report(done.error());
    return print(in_quotes(resource->str()) + " now lets in the first to come\n");
  }

  ExitStatus remove() const {
    if (!force_) {
      return not_without_force(table_
                                   ? "without its guard the table can be written by holders "
                                     "that were overtaken and by those that never entered"
                                   : "without the fence no holder that was overtaken is refused, "
                                     "and its marks cannot be restored");
    }
    const auto fence = open_fence(url_);
    if (!fence) return report(fence.error());
    const auto done = table_ ? (*fence)->unguard(*table_) : (*fence)->remove();
    if (!done) return report(done.error());
    return print(table_ ? "table '" + visible(*table_) + "' is not guarded any more\n"
                        : "the fence is removed\n");
  }

  ExitStatus show() const {
    const auto fence = open_fence(url_);
    if (!fence) return report(fence.error());
    const auto marks = (*fence)->marks();
    if (!marks) return report(marks.error());
    const auto tables = (*fence)->guards();
    if (!tables) return report(tables.error());
    const auto floors = (*fence)->floors();
    if (!floors) return report(floors.error());
    if (const auto kept = (*fence)->check_marks(); !kept) note(sentence(kept.error()));
    const auto ahead = ahead_of_store({*marks, *floors}, store_);
    warn_of(ahead);
    if (json_) return print(fence_json(*marks, *tables, *floors, ahead));
    Table table;
    table.add({{"RESOURCE", Colour::bold},
               {"TOKEN", Colour::bold},
               {"REQUEST", Colour::bold},
               {"READ BY", Colour::bold},
               {"REFUSED", Colour::bold},
               {"CLAIM", Colour::bold},
               {"LINEAGE", Colour::bold}});
    for (const FenceMark& mark : *marks) table.add(row_of(mark));
    return print(table.str() + tables_text(*tables) + floors_text(*floors));
  }

  ExitStatus adopt() const {
    const auto resource = ResourceName::parse(resource_);
    if (!resource) return report(resource.error());
    const auto lineage = Lineage::parse(lineage_);
    if (!lineage) return report(lineage.error());
    const auto at_least = TokenNumber::parse(at_least_);
    if (!at_least) return report(at_least.error());
    auto fence = open_fence(url_);
    if (!fence) return report(fence.error());
    const auto before = (*fence)->marks();
    if (const auto done = (*fence)->adopt(*resource, *lineage, *at_least); !done) {
      return report(done.error());
    }
    if (before && !is_among(*before, *resource)) {
      note("the fence did not know a resource " + in_quotes(resource->str()) + " until now");
    }
    return print(in_quotes(resource->str()) + " now lets in " + pasteable(lineage->str()) +
                 " from token " + std::to_string(at_least->value()) + " on\n");
  }

#ifdef LEASEHOLD_HAS_FILES
  FenceData data_;
#endif
  FenceSweep sweep_;
  Arguments* show_ = nullptr;
  Arguments* adopt_ = nullptr;
  Arguments* reset_ = nullptr;
  Arguments* remove_ = nullptr;
  std::string url_;
  std::string resource_;
  std::string lineage_;
  std::string at_least_;
  std::optional<std::string> table_;
  std::optional<std::string> guard_;
  std::optional<std::string> store_;
  bool json_ = false;
  bool force_ = false;
};

}  // namespace

SubcommandEntry fence_command() {
  return {"fence", "Manage the fences at a resource", make<Fence>};
}

}  // namespace leasehold::cli
