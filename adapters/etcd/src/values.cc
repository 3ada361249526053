#include "leasehold/etcd/values.h"

#include <chrono>
#include <memory>
#include <utility>

#include "kit/question.h"
#include "kit/text/resource_url.h"
#include "kit/try.h"
#include "leasehold/registry.h"
#include "opening.h"
#include "send_txn.h"
#include "transactions.h"

namespace leasehold::etcd {
namespace {

class EtcdValues final : public KeyedStore<SeenKey> {
 public:
  EtcdValues(std::string address, std::unique_ptr<Transport> transport)
      : address_(std::move(address)), transport_(std::move(transport)) {}

  Status check(const std::string& key) const override {
    if (key.empty()) return fail(ErrorCode::invalid, "a key must have at least one byte");
    return {};
  }

  Result<SeenKey> read(const std::string& key) override {
    wire::TxnRequest request;
    *request.add_success() = get(key);
    const auto response = TRY(kit::question(run(std::move(request), /*repeat=*/true)));
    const wire::KeyValue* kv = first_kv(response, 0);
    if (kv == nullptr) return SeenKey{};
    return SeenKey{kv->value(), kv->mod_revision(), kv->lease()};
  }

  Result<bool> write(const std::string& key, const SeenKey& seen,
                     const std::string& value) override {
    wire::TxnRequest request;
    *request.add_compare() = modified_at(key, seen.mod_revision);
    *request.add_success() = put(key, value, seen.lease);
    const auto response = run(std::move(request), /*repeat=*/false);
    if (response) return response->succeeded();
    Error error = response.error();
    if (is_full(error)) {
      const auto now = read(key);
      error.code = code_when_full(now && now->mod_revision == seen.mod_revision);
    }
    return fail(std::move(error));
  }

 private:
  // `repeat`: it may be done twice.
  Result<wire::TxnResponse> run(wire::TxnRequest request, bool repeat) {
    const Limits limits{
        .deadline = BootClock::now() + std::chrono::seconds(5), .stop = {}, .repeat = repeat};
    auto answer = run_txn(*transport_, std::move(request), limits);
    if (answer) return std::move(*answer);
    return fail(answer.error().error(address_));
  }

  const std::string address_;
  const std::unique_ptr<Transport> transport_;
};

}  // namespace

Result<Values> Values::open(std::string_view text) {
  const Url url = TRY(kit::resource_url(text, {"etcd"}, "values in etcd are at an etcd:// URL"));
  auto options = TRY(Options::of(url));
  auto opened = TRY(open_transport(options, OpenOptions().begin()));
  return Values(std::make_shared<EtcdValues>(options.address, std::move(opened.transport)));
}

}  // namespace leasehold::etcd
