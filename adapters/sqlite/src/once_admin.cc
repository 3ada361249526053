#include "once_admin.h"

#include <utility>

#include "kit/try.h"
#include "leasehold/sqlite/once.h"
#include "user_file.h"

namespace leasehold::sqlite {
namespace {

class SqliteOnceAdmin final : public OnceAdmin {
 public:
  explicit SqliteOnceAdmin(UserFile file) : file_(std::move(file)) {}

  Status install() override { return file_.named(install_once(file_.handle())); }

  Result<std::int64_t> forget_older_than(std::chrono::seconds age) override {
    return file_.named(Once::open(file_.handle()).and_then([&](const Once& once) {
      return once.forget_older_than(age);
    }));
  }

 private:
  UserFile file_;
};

}  // namespace

Result<std::unique_ptr<OnceAdmin>> open_once_admin(const Url& url) {
  auto file = TRY(UserFile::open(url, "the idempotency keys"));
  return std::make_unique<SqliteOnceAdmin>(std::move(file));
}

}  // namespace leasehold::sqlite
