#include "module.h"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>

#include "kit/try.h"

namespace leasehold {
namespace {

// Where the code that asks is: the program, or a library that Leasehold was linked into.
std::filesystem::path own_folder() {
  Dl_info here{};
  const bool found = dladdr(reinterpret_cast<const void*>(&own_folder), &here) != 0;
  // A main program's name is what it was called by. Taken from the current folder, it could lead to
  // a module that somebody else has put there.
  const bool is_path = found && here.dli_fname != nullptr && here.dli_fname[0] == '/';
  std::error_code unknown;
  const auto file =
      std::filesystem::canonical(is_path ? here.dli_fname : "/proc/self/exe", unknown);
  return unknown ? std::filesystem::path("/nowhere/at/all") : file.parent_path();
}

tl::unexpected<Error> cannot_load(const std::string& path, std::string why) {
  return fail(ErrorCode::unsupported, "the module " + path + " cannot be loaded", std::move(why));
}

// As cmake/LeaseholdPackages.cmake names it.
std::string package_of(std::string technology) {
  std::replace(technology.begin(), technology.end(), '_', '-');
  return "leasehold-" + technology;
}

}  // namespace

std::string module_path(const std::string& file) {
  return (own_folder().parent_path() / LEASEHOLD_LIBDIR / "leasehold" / (file + ".so")).string();
}

Result<const void*> load_module(const Module& module) {
  const std::string path = module_path(module.file);
  std::error_code unknown;
  if (!std::filesystem::exists(path, unknown) && !unknown) {
    return fail(ErrorCode::unsupported, "the module " + path + " is not installed; the package " +
                                            package_of(module.technology) + " brings it");
  }
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return cannot_load(path, dlerror());
  const auto call = reinterpret_cast<const void* (*)()>(dlsym(handle, module.entry));
  if (call == nullptr) return cannot_load(path, dlerror());
  const void* told = call();
  const std::string_view version = *static_cast<const char* const*>(told);
  if (version != LEASEHOLD_VERSION) {
    return cannot_load(path, "it is of version " + std::string(version) +
                                 ", and this program of " LEASEHOLD_VERSION
                                 "; both must be of the same");
  }
  return told;
}

LoadAdapters in_module(const std::string& technology) {
  return [technology]() -> Result<std::vector<Adapter>> {
    const auto module = TRY(load_module({technology, technology, kModuleEntry}));
    return static_cast<const ModuleV1*>(module)->adapters();
  };
}

}  // namespace leasehold
