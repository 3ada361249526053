#include "arguments.h"
#ifdef LEASEHOLD_HAS_FILES
#include "fence_data.h"
#endif
#include "json.h"
#include "leasehold/registry.h"
#include "leasehold/stores.h"
#include "output.h"
#include "subcommand.h"
#include "subcommands.h"

namespace leasehold::cli {
namespace {

Result<std::unique_ptr<FenceAdmin>> open_fence(const std::string& url) {
  register_stores();
  return Registry::standard().open_fence(url);
}

std::vector<Table::Cell> row_of(const FenceMark& mark) {
  return {{mark.resource.str()},
          {mark.mark ? std::to_string(mark.mark->number.value()) : "-"},
          {mark.mark ? mark.mark->request.hex() : "-"},
          {std::to_string(mark.refused), mark.refused > 0 ? Colour::yellow : Colour::none},
          {mark.claim ? mark.claim->hex() : "-"},
          {mark.lineage ? mark.lineage->str() : "the first to come"}};
}

class Fence final : public Subcommand {
 public:
  void declare(Arguments& arguments) override {
    arguments.description(
        "A fence stands at the resource and refuses the token of a holder that was overtaken.");
    arguments.example("leasehold fence show sqlite:/var/lib/app/app.db", "marks and refusals");
    declare_show(arguments.subcommand("show", "Show the marks and what was refused"));
    declare_install(arguments.subcommand("install", "Create what the fence needs"));
    declare_adopt(arguments.subcommand("adopt", "Let the tokens of a new lock store in"));
#ifdef LEASEHOLD_HAS_FILES
    data_.declare(arguments);
#endif
  }

  int execute() override {
#ifdef LEASEHOLD_HAS_FILES
    if (data_.chosen()) return data_.execute();
#endif
    if (adopt_->chosen()) return adopt();
    auto fence = open_fence(url_);
    if (!fence) return report(fence.error());
    if (show_->chosen()) return show(**fence);
    if (const auto done = (*fence)->install(); !done) return report(done.error());
    return print("the fence is installed\n");
  }

 private:
  static constexpr const char* kUrlHelp = "The resource, as in sqlite:/var/lib/app/app.db";

  void declare_show(Arguments& arguments) {
    show_ = &arguments;
    arguments.positional("URL", url_, kUrlHelp);
    arguments.flag("--json", json_, "For programs: one JSON object");
    arguments.example("leasehold fence show sqlite:/var/lib/app/app.db --json",
                      "marks and refusals, for a program");
  }

  void declare_install(Arguments& arguments) {
    arguments.positional("URL", url_, kUrlHelp);
    arguments.example("leasehold fence install sqlite:/var/lib/app/app.db",
                      "create the fence's table; doing it again changes nothing");
  }

  void declare_adopt(Arguments& arguments) {
    adopt_ = &arguments;
    arguments.description(
        "After the lock store was restored or replaced, its tokens are of another lineage and the "
        "fence refuses them. This lets the new lineage in, from a number on, and nobody else.");
    arguments.positional("URL", url_, kUrlHelp);
    arguments.positional("RESOURCE", resource_, "The resource's name at the fence");
    arguments.required_option("--lineage", "LINEAGE", lineage_,
                              "The lineage to let in, as in LEASEHOLD_LINEAGE of 'leasehold run'");
    arguments.required_option("--at-least", "N", at_least_, "The lowest token to let in");
    arguments.example(
        "leasehold fence adopt sqlite:/var/lib/app/app.db invoices "
        "--lineage 00112233445566778899aabbccddeeff/invoices --at-least 1",
        "let a new lock store in");
  }

  int show(FenceAdmin& fence) const {
    const auto marks = fence.marks();
    if (!marks) return report(marks.error());
    if (json_) return print(marks_json(*marks));
    Table table;
    table.add({{"RESOURCE", Colour::bold},
               {"TOKEN", Colour::bold},
               {"REQUEST", Colour::bold},
               {"REFUSED", Colour::bold},
               {"CLAIM", Colour::bold},
               {"LINEAGE", Colour::bold}});
    for (const FenceMark& mark : *marks) table.add(row_of(mark));
    return print(table.str());
  }

  int adopt() const {
    const auto resource = ResourceName::parse(resource_);
    if (!resource) return report(resource.error());
    const auto lineage = Lineage::parse(lineage_);
    if (!lineage) return report(lineage.error());
    const auto at_least = TokenNumber::parse(at_least_);
    if (!at_least) return report(at_least.error());
    auto fence = open_fence(url_);
    if (!fence) return report(fence.error());
    if (const auto done = (*fence)->adopt(*resource, *lineage, *at_least); !done) {
      return report(done.error());
    }
    return print("'" + resource->str() + "' now lets in " + lineage->str() + " from token " +
                 std::to_string(at_least->value()) + " on\n");
  }

#ifdef LEASEHOLD_HAS_FILES
  FenceData data_;
#endif
  Arguments* show_ = nullptr;
  Arguments* adopt_ = nullptr;
  std::string url_;
  std::string resource_;
  std::string lineage_;
  std::string at_least_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Subcommand> make_fence() {
  return std::make_unique<Fence>();
}

}  // namespace leasehold::cli
