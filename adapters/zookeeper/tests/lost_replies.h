// Stands between the adapter and the client library, and loses replies as the library itself does
// when a session ends while it is being closed.
#pragma once

namespace leasehold::testing {

// From now on the library takes every request to list a folder, and never answers it; until the
// object is gone.
class ListsAreLost {
 public:
  ListsAreLost();
  ~ListsAreLost();
  ListsAreLost(const ListsAreLost&) = delete;
};

}  // namespace leasehold::testing
