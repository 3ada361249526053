#include "file_resource.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>

#include "kit/try.h"
#include "leasehold/files/fence.h"
#include "leasehold/url.h"

namespace leasehold::drill {
namespace {

Result<std::uint64_t> number_in(const Result<std::string>& text) {
  if (!text) return fail(text.error());
  std::uint64_t value = 0;
  std::from_chars(text->data(), text->data() + text->size(), value);
  return value;
}

class FileResource final : public Resource {
 public:
  explicit FileResource(files::Fence fence) : fence_(std::move(fence)) {}

  Result<std::uint64_t> enter(const Pass& pass) override {
    return number_in(fence_.read(*pass.token));
  }
  Status write(const Pass& pass, std::uint64_t value) override {
    return fence_.write(*pass.token, std::to_string(value), {.sequence = 1});
  }
  Result<std::uint64_t> peek() override {
    std::ifstream file(fence_.path());
    return number_in(std::string(std::istreambuf_iterator<char>(file), {}));
  }

 private:
  files::Fence fence_;
};

}  // namespace

// The URL names a folder, in which each resource is a file.
Result<std::unique_ptr<Resource>> open_file_resource(const ResourceChoice& choice) {
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

}  // namespace leasehold::drill
