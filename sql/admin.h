// The operator's view of what is in a SQL database. `Place` is a connection to the one that a URL
// names: session() and, where the user's tables are meant, session_of_role() give what the
// functions of its namespace take; named() puts its address into a failure.
#pragma once

#include <utility>
#include <vector>

#include "leasehold/fence_admin.h"
#include "leasehold/once_admin.h"

namespace leasehold::sql {

template <class Place>
class SqlFenceAdmin final : public FenceAdmin {
 public:
  explicit SqlFenceAdmin(Place place) : place_(std::move(place)) {}

  Status install() override { return place_.named(make_fence(place_.session())); }
  Result<std::vector<FenceMark>> marks() override {
    return place_.named(read_marks(place_.session()));
  }
  Status check_marks() override { return place_.named(check_marks_are_kept(place_.session())); }
  Status adopt(const ResourceName& resource, const Lineage& lineage,
               TokenNumber at_least) override {
    return place_.named(adopt_lineage(place_.session(), resource, lineage, at_least));
  }
  Status reset(const ResourceName& resource) override {
    return place_.named(reset_mark(place_.session(), resource));
  }
  Result<std::int64_t> sweep(const SweepOptions& options) override {
    return place_.named(sweep_marks(place_.session(), options));
  }
  Status admit(const StoreId& store) override {
    return place_.named(admit_store(place_.session(), store));
  }
  Result<std::vector<FenceFloor>> floors() override {
    return place_.named(read_floors(place_.session()));
  }
  Status remove() override { return place_.named(drop_fence(place_.session())); }
  Status guard(const std::string& table, const ResourceName& resource) override {
    return place_.named(add_guard(place_.session_of_role(), table, resource));
  }
  Status unguard(const std::string& table) override {
    return place_.named(remove_guard(place_.session_of_role(), table));
  }
  Result<std::vector<GuardedTable>> guards() override {
    return place_.named(read_guards(place_.session_of_role()));
  }

 private:
  Place place_;
};

template <class Place, class Once>
class SqlOnceAdmin final : public OnceAdmin {
 public:
  explicit SqlOnceAdmin(Place place) : place_(std::move(place)) {}

  Status install() override { return place_.named(make_once(place_.session())); }
  Result<std::int64_t> forget_older_than(std::chrono::seconds age) override {
    return place_.named(Once::open(place_.handle()).and_then([&](const Once& once) {
      return once.forget_older_than(age);
    }));
  }

 private:
  Place place_;
};

}  // namespace leasehold::sql
