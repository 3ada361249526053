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

std::string document_path(std::string_view page) {
  std::error_code error;
  const auto installed =
      std::filesystem::path(own_program()).parent_path().parent_path() / LEASEHOLD_DOCUMENTS / page;
  return std::filesystem::exists(installed, error) ? installed.string() : std::string(page);
}

}  // namespace leasehold::cli
