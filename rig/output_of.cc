#include "rig/output_of.h"

#include <stdexcept>

#include "leasehold/process/child.h"

namespace leasehold::rig {

std::string output_of(std::vector<std::string> argv) {
  const process::Deadline deadline = process::within(std::chrono::minutes(1));
  auto child = process::Child::start(
      {.argv = argv, .in = process::Null{}, .out = process::Piped{}, .err = process::Piped{}});
  if (!child) throw std::runtime_error(child.error().message);
  std::string said = process::read_all(child->out().get(), deadline);
  const std::string complaint = process::read_all(child->err().get(), deadline);
  const auto ended = child->wait(deadline);
  if (!ended || ended->shell_status() != 0) {
    throw std::runtime_error(argv.front() + " failed: " + said + complaint);
  }
  while (said.ends_with('\n')) said.pop_back();
  return said;
}

}  // namespace leasehold::rig
