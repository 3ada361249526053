#include "cli/command/arguments.h"
#include "cli/command/output.h"
#include "cli/command/subcommand.h"
#include "cli/command/url_help.h"
#include "leasehold/registry.h"
#include "leasehold/serial_queue_admin.h"
#include "leasehold/stores.h"

namespace leasehold::cli {
namespace {

class SerialCommand final : public Subcommand {
 public:
  void declare(Arguments& arguments) override {
    arguments.description(
        "Serial queues in your own database: the operations of one entity run one after the other, "
        "many entities side by side. docs/serial-queue.md has how to push and to work.");
    arguments.uses_store();
    arguments.example("leasehold serial install postgres://app@db/shop",
                      "create what the queues need; doing it again changes nothing");
    Arguments& install = arguments.subcommand("install", "Create what the queues need");
    install.positional("URL", url_,
                       "The database of the work: " + example_urls(SerialQueueAdmin::kOffer),
                       url_beginnings(SerialQueueAdmin::kOffer));
    install.example("leasehold serial install postgres://app@db/shop",
                    "create table and functions; doing it again changes nothing");
  }

  Ending execute() override {
    register_stores();
    const auto done = Registry::standard().open<SerialQueueAdmin>(url_).and_then(
        [](const auto& queues) { return queues->install(); });
    return done ? print("the serial queues are installed\n") : report(done.error());
  }

 private:
  std::string url_;
};

}  // namespace

SubcommandEntry serial_command() {
  return {"serial", "Prepare a database for serial queues", make<SerialCommand>};
}

}  // namespace leasehold::cli
