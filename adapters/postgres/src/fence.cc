#include "leasehold/postgres/fence.h"

#include <string>

#include "fence_functions.h"

namespace leasehold::postgres {
namespace {

constexpr NamedStatement kEnter = {"leasehold_fence_enter_1",
                                   "SELECT leasehold_fence.enter($1, $2, $3, $4, $5)"};

// A token as the parameters of kEnter, which must not outlive it.
class Entering {
 public:
  Entering(const Token& token, Entry entry)
      : number_(std::to_string(token.number.value())),
        lineage_(token.lineage.str()),
        request_(token.request.hex()),
        once_(entry == Entry::once ? "t" : "f") {}

  const char* number() const { return number_.c_str(); }
  const char* lineage() const { return lineage_.c_str(); }
  const char* request() const { return request_.c_str(); }
  const char* once() const { return once_; }

 private:
  std::string number_;
  std::string lineage_;
  std::string request_;
  const char* once_;
};

}  // namespace

Status install_fence(pg_conn* connection) {
  return install_fence_schema(Session(connection));
}

Status remove_fence(pg_conn* connection) {
  return remove_fence_schema(Session(connection));
}

Status guard_table(pg_conn* connection, std::string_view table, const ResourceName& resource) {
  return add_guard(Session(connection), table, resource);
}

Status unguard_table(pg_conn* connection, std::string_view table) {
  return remove_guard(Session(connection), table);
}

Result<std::vector<FenceMark>> fence_marks(pg_conn* connection) {
  return read_marks(Session(connection));
}

Result<Fence> Fence::open(pg_conn* connection, std::string_view resource) {
  auto name = ResourceName::parse(resource);
  if (!name) return fail(std::move(name.error()));
  return open(connection, std::move(*name));
}

Result<Fence> Fence::open(pg_conn* connection, ResourceName resource) {
  if (auto ok = check_fence_schema(Session(connection)); !ok) return fail(std::move(ok.error()));
  return Fence(connection, std::move(resource));
}

Status Fence::enter(const Token& token, Entry entry) const {
  const Session session(connection_);
  if (auto ok = session.check_inside(); !ok) return ok;
  const Entering entering(token, entry);
  auto rows = session.run(kEnter.sql, {resource_.str().c_str(), entering.number(),
                                       entering.lineage(), entering.request(), entering.once()});
  if (!rows) return fail(std::move(rows.error()));
  return {};
}

Result<OwnedTransaction> Fence::begin(const Token& token, Entry entry) const {
  const Session session(connection_);
  if (auto ok = session.check_outside(); !ok) return fail(std::move(ok.error()));
  const Entering entering(token, entry);
  auto entered =
      session.begin_with(kEnter, {resource_.str().c_str(), entering.number(), entering.lineage(),
                                  entering.request(), entering.once()});
  if (!entered) return fail(counted(session, resource_, std::move(entered.error())));
  return OwnedTransaction(connection_);
}

Status Fence::count_refusal() const {
  return postgres::count_refusal(Session(connection_), resource_);
}

Result<std::optional<FenceMark>> Fence::mark() const {
  return read_mark(Session(connection_), resource_);
}

}  // namespace leasehold::postgres
