// Which URL schemes are known. The only global state of the library.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "leasehold/error.h"
#include "leasehold/fence_admin.h"
#include "leasehold/store.h"
#include "leasehold/url.h"

namespace leasehold {

// What to do if a store that is a file is not there yet. Stores with a server ignore it.
enum class IfMissing { create, refuse };

struct Adapter {
  std::string scheme;
  std::string example;  // a URL to show in a message: "sqlite:/var/lib/app/locks.db"
  std::function<Result<std::unique_ptr<Store>>(const Url&, IfMissing)> open_store;
  std::function<Result<std::unique_ptr<FenceAdmin>>(const Url&)> open_fence;  // may be empty
};

// Thread safe.
class Registry {
 public:
  Registry();
  ~Registry();

  // The process-wide registry that connect() uses unless told otherwise.
  static Registry& standard();

  // Adds an adapter; a scheme that is there already is replaced.
  void add(Adapter adapter);

  // Fails with `unsupported`, naming the schemes that are known.
  [[nodiscard]] Result<Adapter> find(const std::string& scheme) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace leasehold
