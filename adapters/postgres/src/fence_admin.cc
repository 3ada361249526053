#include "fence_admin.h"

#include <utility>

#include "fence_functions.h"
#include "options.h"

namespace leasehold::postgres {
namespace {

constexpr auto kPatience = std::chrono::seconds(10);

class PostgresFenceAdmin final : public FenceAdmin {
 public:
  PostgresFenceAdmin(std::string address, std::unique_ptr<Connection> connection)
      : address_(std::move(address)), connection_(std::move(connection)) {}

  Status install() override { return named(install_fence_schema(session())); }
  Result<std::vector<FenceMark>> marks() override { return named(read_marks(session())); }
  Status adopt(const ResourceName& resource, const Lineage& lineage,
               TokenNumber at_least) override {
    return named(adopt_lineage(session(), resource, lineage, at_least));
  }
  Status reset(const ResourceName& resource) override {
    return named(reset_mark(session(), resource));
  }
  Status remove() override { return named(remove_fence_schema(session())); }

  Status guard(const std::string& table, const ResourceName& resource) override {
    return named(add_guard(session(), table, resource));
  }
  Status unguard(const std::string& table) override {
    return named(remove_guard(session(), table));
  }
  Result<std::vector<GuardedTable>> guards() override { return named(read_guards(session())); }

 private:
  Session session() const { return Session(connection_->handle()); }
  template <class T>
  Result<T> named(Result<T> result) const {
    if (!result) result.error().message = address_ + ": " + result.error().message;
    return result;
  }

  std::string address_;
  std::unique_ptr<Connection> connection_;
};

}  // namespace

Status check_fence_url(const Url& url) {
  return url.only_options({"tls", "ca", "cert", "key", "server_name"});
}

Result<std::unique_ptr<FenceAdmin>> open_fence_admin(const Url& url) {
  if (auto ok = check_fence_url(url); !ok) return fail(std::move(ok.error()));
  auto options = Options::of(url);
  if (!options) return fail(std::move(options.error()));
  const leasehold::detail::Alarm never;
  auto connection = Connection::open(options->hosts, {BootClock::now() + kPatience, {}}, never);
  if (!connection) {
    connection.error().message = options->address + ": " + connection.error().message;
    return fail(std::move(connection.error()));
  }
  // A server that hangs must not hang the operator's program.
  auto patience = Session((*connection)->handle())
                      .run(
                          "SELECT set_config('lock_timeout', '10s', false),"
                          " set_config('statement_timeout', '30s', false)",
                          {});
  if (!patience) return fail(std::move(patience.error()));
  return std::make_unique<PostgresFenceAdmin>(options->address, std::move(*connection));
}

}  // namespace leasehold::postgres
