// What a drill can do with files: the number as the content of one, behind its fence.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "drill/runner/parts.h"
#include "kit/text/number.h"
#include "kit/try.h"
#include "leasehold/files/fence.h"
#include "leasehold/url.h"

namespace leasehold::files {
namespace {

using namespace drill;

class FileResource final : public Resource {
 public:
  explicit FileResource(files::Fence fence) : fence_(std::move(fence)) {}

  Result<std::uint64_t> enter(const Pass& pass) override {
    const auto text = TRY(fence_.read(*pass.token));
    return kit::number_in<std::uint64_t>(text).value_or(0);
  }
  Status write(const Pass& pass, std::uint64_t value) override {
    return fence_.write(*pass.token, std::to_string(value), {.sequence = pass.sequence});
  }
  Result<std::uint64_t> peek() override {
    std::ifstream file(fence_.path());
    const std::string text(std::istreambuf_iterator<char>(file), {});
    return kit::number_in<std::uint64_t>(text).value_or(0);
  }

 private:
  files::Fence fence_;
};

// The URL names a folder, in which each resource is a file.
Result<std::unique_ptr<Resource>> open_resource_in(const ResourceChoice& choice) {
  const auto url = TRY(Url::parse(choice.url));
  std::string name = choice.name;
  std::replace(name.begin(), name.end(), '/', '-');
  const std::filesystem::path path = std::filesystem::path(url.path) / name;
  if (choice.create) {
    std::error_code error;
    std::filesystem::create_directories(url.path, error);
    if (!std::filesystem::exists(path)) std::ofstream(path) << "0";
    TRY(files::install_fence(path));
  }
  auto fence = TRY(files::Fence::open(path));
  return std::make_unique<FileResource>(std::move(fence));
}

}  // namespace

drill::Parts drill_parts() {
  return {
      .fences = {
          {.name = "file",
           .schemes = {"file"},
           .start = [](const std::string& folder) { return file_place("file", folder + "/files"); },
           .open = open_resource_in}}};
}

}  // namespace leasehold::files
