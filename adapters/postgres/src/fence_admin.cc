#include "fence_admin.h"

#include <utility>

#include "admin_connection.h"
#include "fence_functions.h"
#include "kit/try.h"

namespace leasehold::postgres {
namespace {

class PostgresFenceAdmin final : public FenceAdmin {
 public:
  explicit PostgresFenceAdmin(AdminConnection connection) : connection_(std::move(connection)) {}

  Status install() override { return named(install_fence_schema(session())); }
  Result<std::vector<FenceMark>> marks() override { return named(read_marks(session())); }
  Status check_marks() override { return named(check_marks_are_kept(session())); }
  Status adopt(const ResourceName& resource, const Lineage& lineage,
               TokenNumber at_least) override {
    return named(adopt_lineage(session(), resource, lineage, at_least));
  }
  Status reset(const ResourceName& resource) override {
    return named(reset_mark(session(), resource));
  }
  Status remove() override { return named(remove_fence_schema(session())); }

  Status guard(const std::string& table, const ResourceName& resource) override {
    return named(add_guard(connection_.session_of_role(), table, resource));
  }
  Status unguard(const std::string& table) override {
    return named(remove_guard(connection_.session_of_role(), table));
  }
  Result<std::vector<GuardedTable>> guards() override {
    return named(read_guards(connection_.session_of_role()));
  }

 private:
  Session session() const { return connection_.session(); }
  template <class T>
  Result<T> named(Result<T> result) const {
    return connection_.named(std::move(result));
  }

  AdminConnection connection_;
};

}  // namespace

Result<std::unique_ptr<FenceAdmin>> open_fence_admin(const Url& url) {
  auto connection = TRY(AdminConnection::open(url));
  return std::make_unique<PostgresFenceAdmin>(std::move(connection));
}

}  // namespace leasehold::postgres
