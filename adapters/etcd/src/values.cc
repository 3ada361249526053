#include "leasehold/etcd/values.h"

#include <chrono>

#include "answer.h"
#include "kit/try.h"
#include "leasehold/registry.h"
#include "opening.h"
#include "send_txn.h"
#include "transactions.h"

namespace leasehold::etcd {

// Thread safe. Calls block.
class KeyValues {
 public:
  KeyValues(std::string address, std::unique_ptr<Transport> transport)
      : address_(std::move(address)), transport_(std::move(transport)) {}

  // `repeat`: it may be done twice.
  Result<wire::TxnResponse> run(wire::TxnRequest request, bool repeat) {
    const Limits limits{
        .deadline = BootClock::now() + std::chrono::seconds(5), .stop = {}, .repeat = repeat};
    auto answer = answer_of<tl::expected<wire::TxnResponse, Failure>>(
        [&](auto done) { send_txn(*transport_, std::move(request), limits, std::move(done)); });
    transport_->tidy();
    if (answer) return std::move(*answer);
    return fail(answer.error().error(address_));
  }

 private:
  const std::string address_;
  const std::unique_ptr<Transport> transport_;
};

Result<Values> Values::open(std::string_view text) {
  auto url = TRY(Url::parse(text));
  if (url.scheme != "etcd") {
    return fail(ErrorCode::invalid,
                "values in etcd are at an etcd:// URL, not at " + url.redacted());
  }
  TRY(url.read_secrets());
  auto options = TRY(Options::of(url));
  auto opened = TRY(open_transport(options, OpenOptions().begin()));
  return Values(std::make_shared<KeyValues>(options.address, std::move(opened.transport)));
}

Result<Cell> Values::at(std::string_view key) const {
  if (key.empty()) return fail(ErrorCode::invalid, "a key must have at least one byte");
  return Cell(values_, std::string(key));
}

Result<Cell::Seen> Cell::read() const {
  wire::TxnRequest request;
  *request.add_success() = get(key_);
  auto response = values_->run(std::move(request), /*repeat=*/true);
  if (!response) {
    // Reading changes nothing, whether or not it was done.
    if (response.error().code == ErrorCode::outcome_unknown) {
      response.error().code = ErrorCode::unavailable;
    }
    return fail(std::move(response.error()));
  }
  const wire::KeyValue* kv = first_kv(*response, 0);
  if (kv == nullptr) return Seen{};
  return Seen{kv->value(), kv->mod_revision(), kv->lease()};
}

Result<bool> Cell::write(const Seen& seen, const std::string& value) const {
  wire::TxnRequest request;
  *request.add_compare() = modified_at(key_, seen.mod_revision);
  *request.add_success() = put(key_, value, seen.lease);
  const auto response = values_->run(std::move(request), /*repeat=*/false);
  if (response) return response->succeeded();
  Error error = response.error();
  if (is_full(error)) {
    const auto now = read();
    error.code = code_when_full(now && now->mod_revision == seen.mod_revision);
  }
  return fail(std::move(error));
}

}  // namespace leasehold::etcd
