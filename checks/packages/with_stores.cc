// with_stores COMMAND...: starts a server of every store on loopback and runs the command with the
// URLs as further arguments; ends with its status.
#include <iostream>

#include "drill/runner/parts.h"
#include "leasehold/process/child.h"
#include "rig/temp_folder.h"

namespace {

using namespace leasehold;

int run_with_stores(std::vector<std::string> argv) {
  const rig::TempFolder folder;
  std::vector<std::unique_ptr<drill::Place>> places;
  for (const drill::StorePart& part : drill::parts().stores) {
    places.push_back(part.start(folder.path(), {}));
    argv.push_back(places.back()->url());
  }
  auto child = process::Child::start({.argv = std::move(argv), .parent_death_signal = SIGKILL});
  if (!child) throw std::runtime_error(child.error().message);
  return child->wait().shell_status();
}

}  // namespace

int main(int argc, char** argv) try {
  return run_with_stores({argv + 1, argv + argc});
} catch (const std::exception& error) {
  std::cerr << "with_stores: " << error.what() << '\n';
  return 2;
}
