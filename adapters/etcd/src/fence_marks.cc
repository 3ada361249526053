#include "fence_marks.h"

#include <map>

#include "fence/record.h"
#include "fence_admin.h"
#include "kit/question.h"
#include "kit/text/resource_url.h"
#include "kit/text/visible_text.h"
#include "kit/try.h"
#include "leasehold/registry.h"
#include "send_txn.h"

namespace leasehold::etcd {

using fence::Commit;
using fence::SeenMark;

namespace {

const std::string& key_of(const Operation& operation) {
  return std::visit([](const auto& it) -> const std::string& { return it.key; }, operation);
}

bool writes(const Operation& operation) {
  return !std::holds_alternative<Get>(operation);
}

wire::RequestOp op_of(const Operation& operation) {
  if (const Get* it = std::get_if<Get>(&operation)) return get(it->key);
  if (const Put* it = std::get_if<Put>(&operation)) return put(it->key, it->value, 0);
  return erase(std::get<Delete>(operation).key);
}

}  // namespace

Result<std::unique_ptr<FenceMarks>> FenceMarks::open(const Url& url) {
  auto options = TRY(Options::of(url));
  auto opened = TRY(open_transport(options, OpenOptions().begin()));
  return std::make_unique<FenceMarks>(std::move(options), std::move(opened.transport));
}

Result<std::unique_ptr<FenceAdmin>> open_fence_admin(const Url& url) {
  return FenceMarks::open(url);
}

Result<Resources> Resources::open(std::string_view text) {
  const Url url =
      TRY(kit::resource_url(text, {"etcd"}, "the data of this fence is at an etcd:// URL"));
  auto marks = TRY(FenceMarks::open(url));
  return Resources(std::move(marks));
}

// A mark comes into being when it is first entered; what can be done before is to see that this
// user may look.
Status FenceMarks::install() {
  TRY(marks());
  return {};
}

// ---- one transaction -----------------------------------------------------------------------

Result<wire::TxnResponse> FenceMarks::txn(wire::TxnRequest request, const Limits& limits) {
  auto answer = run_txn(*transport_, std::move(request), limits);
  if (answer) return std::move(*answer);
  Error error = answer.error().error(address_);
  if (answer.error().is_the_callers()) {
    error.code = ErrorCode::invalid;
    error.message = "etcd does not accept these operations";
  }
  return fail(std::move(error));
}

Result<wire::TxnResponse> FenceMarks::ask(wire::TxnRequest request, const CallContext& context) {
  return kit::question(txn(std::move(request),
                           {.deadline = context.deadline, .stop = context.stop, .repeat = true}));
}

Result<SeenMark> FenceMarks::read(const ResourceName& resource, const CallContext& context) {
  wire::TxnRequest request;
  *request.add_success() = get(keys_.mark(resource));
  const auto response = TRY(ask(std::move(request), context));
  return seen(resource, first_kv(response, 0));
}

Result<SeenMark> FenceMarks::seen(const ResourceName& resource, const wire::KeyValue* kv) const {
  if (kv == nullptr) return SeenMark{};
  auto record = TRY(fence::read_record(resource, kv->value(),
                                       "delete the key " + kit::in_quotes(keys_.mark(resource))));
  return SeenMark{std::move(record.mark), kv->mod_revision()};
}

Result<Commit> FenceMarks::commit(const ResourceName& resource, const SeenMark& before,
                                  const fence::Mark& next, const Operations& operations,
                                  const CallContext& context, TransactionResult& outcome) {
  const bool moves = next != before.mark;
  if (!moves && operations.empty()) return Commit::done;
  wire::TxnRequest request;
  *request.add_compare() = modified_at(keys_.mark(resource), before.version);
  if (moves) *request.add_success() = put(keys_.mark(resource), fence::to_text(next), 0);
  for (const Operation& operation : operations) *request.add_success() = op_of(operation);
  const auto response =
      txn(std::move(request), {.deadline = context.deadline, .stop = context.stop});
  if (!response) {
    Error error = response.error();
    if (is_full(error)) {
      const auto now = read(resource, context);
      error.code = code_when_full(moves && now && now->version == before.version);
    }
    return fail(std::move(error));
  }
  if (!response->succeeded()) return Commit::conflict;
  for (std::size_t i = 0; i < operations.size(); ++i) {
    if (writes(operations[i])) continue;
    const auto* kv = first_kv(*response, static_cast<int>(i) + (moves ? 1 : 0));
    outcome.values.push_back(kv == nullptr ? std::nullopt : std::optional(kv->value()));
  }
  return Commit::done;
}

// etcd counts how often a key was put.
Status FenceMarks::count_refusal(const ResourceName& resource, const CallContext& context) {
  wire::TxnRequest request;
  *request.add_success() = put(keys_.refused(resource), "", 0);
  TRY(txn(std::move(request), {.deadline = context.deadline, .stop = context.stop}));
  return {};
}

// ---- entering ------------------------------------------------------------------------------

// Kind, key and value.
Result<FenceMarks::Description> FenceMarks::describe(const Operations& operations) const {
  Description about;
  for (const Operation& operation : operations) {
    const std::string& key = key_of(operation);
    if (key.empty()) return fail(ErrorCode::invalid, "a key must have at least one byte");
    const bool own = key.starts_with(keys_.marks()) || key.starts_with(keys_.refusals());
    if (own && writes(operation)) {
      return fail(ErrorCode::invalid, "keys that begin with '" + keys_.marks() + "' or '" +
                                          keys_.refusals() + "' are the fence's own");
    }
    const Put* put_one = std::get_if<Put>(&operation);
    about.writes |= writes(operation);
    about.content.push_back(std::to_string(operation.index()));
    about.content.push_back(key);
    about.content.push_back(put_one != nullptr ? put_one->value : "");
  }
  return about;
}

// ---- looking -------------------------------------------------------------------------------

Result<std::optional<FenceMark>> FenceMarks::shown_mark(const ResourceName& resource,
                                                        const CallContext& context) {
  wire::TxnRequest request;
  *request.add_success() = get(keys_.mark(resource));
  *request.add_success() = get_without_value(keys_.refused(resource));
  const auto response = TRY(ask(std::move(request), context));
  const wire::KeyValue* kv = first_kv(response, 0);
  if (kv == nullptr) return std::nullopt;
  const auto found = TRY(seen(resource, kv));
  const wire::KeyValue* refused = first_kv(response, 1);
  return found.mark.shown(resource, refused == nullptr ? 0 : refused->version());
}

Result<std::vector<FenceMark>> FenceMarks::all_marks(const CallContext& context) {
  wire::TxnRequest request;
  *request.add_success() = all_in(keys_.marks());
  *request.add_success() = all_in(keys_.refusals());
  const auto response = TRY(ask(std::move(request), context));
  std::map<std::string, std::int64_t> refused;
  for (const wire::KeyValue& kv : response.responses(1).range().kvs()) {
    refused[kv.key().substr(keys_.refusals().size())] = kv.version();
  }
  std::vector<FenceMark> all;
  for (const wire::KeyValue& kv : response.responses(0).range().kvs()) {
    const std::string encoded = kv.key().substr(keys_.marks().size());
    const auto resource = ResourceName::parse(percent_decode(encoded).value_or(""));
    if (!resource) continue;  // no fence makes such a key
    const auto found = TRY(seen(*resource, &kv));
    all.push_back(found.mark.shown(*resource, refused[encoded]));
  }
  return all;
}

}  // namespace leasehold::etcd
