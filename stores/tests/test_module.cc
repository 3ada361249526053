#include "module.h"

namespace {

[[maybe_unused]] std::vector<leasehold::Adapter> adapters() {
  return {{.scheme = "good",
           .open_store = [](const leasehold::Url& url, const leasehold::OpenOptions&)
               -> leasehold::Result<std::unique_ptr<leasehold::Store>> {
             return leasehold::fail(leasehold::ErrorCode::busy, "the module saw " + url.path);
           }}};
}

}  // namespace

#ifndef MODULE_WITHOUT_ENTRY
extern "C" const leasehold::ModuleV1* leasehold_adapter_v1() {
  static const leasehold::ModuleV1 module{MODULE_VERSION, &adapters};
  return &module;
}
#endif
