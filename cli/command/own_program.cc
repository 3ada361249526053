#include "cli/command/own_program.h"

#include <filesystem>
#include <system_error>

namespace leasehold::cli {

std::string own_program() {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  // The link still runs if the file was replaced meanwhile.
  return error || !std::filesystem::exists(path, error) ? "/proc/self/exe" : path.string();
}

}  // namespace leasehold::cli
