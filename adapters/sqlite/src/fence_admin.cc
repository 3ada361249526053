#include "fence_admin.h"

#include <utility>

#include "fence_table.h"
#include "guard.h"
#include "kit/try.h"
#include "user_file.h"

namespace leasehold::sqlite {
namespace {

class SqliteFenceAdmin final : public FenceAdmin {
 public:
  explicit SqliteFenceAdmin(UserFile file) : file_(std::move(file)) {}

  Status install() override { return named(install_fence_table(file_.connection())); }

  Result<std::vector<FenceMark>> marks() override { return named(read_marks(file_.connection())); }
  Status check_marks() override { return named(check_marks_are_kept(file_.connection())); }

  Status adopt(const ResourceName& resource, const Lineage& lineage,
               TokenNumber at_least) override {
    return named(adopt_lineage(file_.connection(), resource, lineage, at_least));
  }

  Status reset(const ResourceName& resource) override {
    return named(reset_mark(file_.connection(), resource));
  }
  Status remove() override { return named(remove_fence_table(file_.connection())); }

  Status guard(const std::string& table, const ResourceName& resource) override {
    return named(add_guard(file_.connection(), table, resource));
  }
  Status unguard(const std::string& table) override {
    return named(remove_guard(file_.connection(), table));
  }
  Result<std::vector<GuardedTable>> guards() override {
    return named(read_guards(file_.connection()));
  }

 private:
  template <class T>
  Result<T> named(Result<T> result) const {
    return file_.named(std::move(result));
  }

  UserFile file_;
};

}  // namespace

Result<std::unique_ptr<FenceAdmin>> open_fence_admin(const Url& url) {
  auto file = TRY(UserFile::open(url, "the fence"));
  return std::make_unique<SqliteFenceAdmin>(std::move(file));
}

}  // namespace leasehold::sqlite
