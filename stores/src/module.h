// Adapters in loadable modules: a program pays only for the store that it uses.
#pragma once

#include <string>
#include <vector>

#include "leasehold/registry.h"

namespace leasehold {

// What a module's entry, `extern "C" const leasehold::ModuleV1* leasehold_adapter_v1()`, tells.
// Standard library types cross the border, so both sides must be built alike: the version must
// match exactly.
struct ModuleV1 {
  const char* version;
  std::vector<Adapter> (*adapters)();
};
inline constexpr const char* kModuleEntry = "leasehold_adapter_v1";

// Where the module in `file` is: LIBDIR/leasehold beside the folder of this program or library.
std::string module_path(const std::string& file);

struct Module {
  std::string technology;  // whose package brings it
  std::string file;        // without .so
  const char* entry;       // `extern "C"`, takes nothing
};

// Loads the module, calls its entry, and gives what that returned: a pointer to a struct whose
// first member is the version, which must be this program's. `unsupported` if the module is not
// installed, with the package to install; and if it cannot be loaded or is of another version, with
// the loader's own words. A module stays loaded.
[[nodiscard]] Result<const void*> load_module(const Module& module);

// The adapters of a technology, whose module is loaded when they are first asked for. Fails as
// load_module() does.
LoadAdapters in_module(const std::string& technology);

}  // namespace leasehold
