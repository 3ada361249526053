#include "fence_marks.h"

#include <algorithm>
#include <map>

#include "answer.h"
#include "fence/attempt.h"
#include "fence/record.h"
#include "kit/try.h"
#include "leasehold/registry.h"
#include "send_txn.h"

namespace leasehold::etcd {

using fence::Commit;
using fence::Passed;
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

// Kind, key and value of every operation.
std::vector<std::string> content_of(const std::vector<Operation>& operations) {
  std::vector<std::string> parts;
  for (const Operation& operation : operations) {
    const Put* put_one = std::get_if<Put>(&operation);
    parts.push_back(std::to_string(operation.index()));
    parts.push_back(key_of(operation));
    parts.push_back(put_one != nullptr ? put_one->value : "");
  }
  return parts;
}

}  // namespace

CallContext context_of(const EnterOptions& options) {
  return {BootClock::now() + options.within, options.stop};
}

Result<std::shared_ptr<FenceMarks>> FenceMarks::open(const Url& url) {
  auto options = TRY(Options::of(url));
  auto opened = TRY(open_transport(options, OpenOptions().begin()));
  return std::shared_ptr<FenceMarks>(
      new FenceMarks(std::move(options), std::move(opened.transport)));
}

// ---- one transaction -----------------------------------------------------------------------

Result<wire::TxnResponse> FenceMarks::txn(wire::TxnRequest request, const Limits& limits) {
  auto answer = answer_of<tl::expected<wire::TxnResponse, Failure>>(
      [&](auto done) { send_txn(*transport_, std::move(request), limits, std::move(done)); });
  transport_->tidy();
  if (answer) return std::move(*answer);
  Error error = answer.error().error(address_);
  if (answer.error().is_the_callers()) {
    error.code = ErrorCode::invalid;
    error.message = "etcd does not accept these operations";
  }
  return fail(std::move(error));
}

Result<SeenMark> FenceMarks::read_mark(const ResourceName& resource, const CallContext& context) {
  wire::TxnRequest request;
  *request.add_success() = get(keys_.mark(resource));
  const auto response =
      txn(std::move(request), {.deadline = context.deadline, .stop = context.stop, .repeat = true});
  if (!response) {
    Error error = response.error();
    if (error.code == ErrorCode::outcome_unknown) error.code = ErrorCode::unavailable;
    return fail(std::move(error));
  }
  return seen(resource, first_kv(*response, 0));
}

Result<SeenMark> FenceMarks::seen(const ResourceName& resource, const wire::KeyValue* kv) const {
  if (kv == nullptr) return SeenMark{};
  auto record = TRY(fence::read_record(resource, kv->value()));
  return SeenMark{std::move(record.mark), kv->mod_revision()};
}

Result<Commit> FenceMarks::commit(const ResourceName& resource, const SeenMark& before,
                                  const fence::Mark& next, const std::vector<Operation>& operations,
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
      const auto now = read_mark(resource, context);
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

Status FenceMarks::check(const std::vector<Operation>& operations) const {
  for (const Operation& operation : operations) {
    const std::string& key = key_of(operation);
    if (key.empty()) return fail(ErrorCode::invalid, "a key must have at least one byte");
    const bool own = key.starts_with(keys_.marks()) || key.starts_with(keys_.refusals());
    if (own && writes(operation)) {
      return fail(ErrorCode::invalid, "keys that begin with '" + keys_.marks() + "' or '" +
                                          keys_.refusals() + "' are the fence's own");
    }
  }
  return {};
}

fence::Pass FenceMarks::pass_at(const ResourceName& resource,
                                const std::vector<Operation>& operations,
                                const CallContext& context, TransactionResult& outcome) {
  return {
      .read = [this, &resource, &context] { return read_mark(resource, context); },
      .commit =
          [this, &resource, &operations, &context, &outcome](const SeenMark& before,
                                                             const fence::Mark& next) {
            return commit(resource, before, next, operations, context, outcome);
          },
      .count_refusal = [this, &resource, &context] { return count_refusal(resource, context); }};
}

Result<TransactionResult> FenceMarks::pass(const ResourceName& resource, const Token& token,
                                           const std::vector<Operation>& operations,
                                           const EnterOptions& options) {
  TRY(check(operations));
  const bool changes = std::any_of(operations.begin(), operations.end(), writes);
  const auto attempt = TRY(fence::attempt_of(token, options, changes, content_of(operations)));
  const CallContext context = context_of(options);
  TransactionResult outcome;
  const auto passed =
      TRY(fence::pass(resource, attempt, pass_at(resource, operations, context, outcome), context));
  outcome.repeated = passed == Passed::repeated;
  return outcome;
}

Status FenceMarks::adopt(const ResourceName& resource, const Lineage& lineage, TokenNumber at_least,
                         const CallContext& context) {
  TransactionResult unused;
  return fence::pass_adoption(resource, lineage, at_least, pass_at(resource, {}, context, unused),
                              context);
}

Status FenceMarks::reset(const ResourceName& resource, const CallContext& context) {
  TransactionResult unused;
  return fence::pass_reset(resource, pass_at(resource, {}, context, unused), context);
}

// ---- looking -------------------------------------------------------------------------------

Result<std::optional<FenceMark>> FenceMarks::read(const ResourceName& resource,
                                                  const CallContext& context) {
  wire::TxnRequest request;
  *request.add_success() = get(keys_.mark(resource));
  *request.add_success() = get_without_value(keys_.refused(resource));
  const auto response = TRY(txn(
      std::move(request), {.deadline = context.deadline, .stop = context.stop, .repeat = true}));
  const wire::KeyValue* kv = first_kv(response, 0);
  if (kv == nullptr) return std::nullopt;
  const auto found = TRY(seen(resource, kv));
  const wire::KeyValue* refused = first_kv(response, 1);
  return found.mark.shown(resource, refused == nullptr ? 0 : refused->version());
}

Result<std::vector<FenceMark>> FenceMarks::all(const CallContext& context) {
  wire::TxnRequest request;
  *request.add_success() = all_in(keys_.marks());
  *request.add_success() = all_in(keys_.refusals());
  const auto response = TRY(txn(
      std::move(request), {.deadline = context.deadline, .stop = context.stop, .repeat = true}));
  std::map<std::string, std::int64_t> refused;
  for (const wire::KeyValue& kv : response.responses(1).range().kvs()) {
    refused[kv.key().substr(keys_.refusals().size())] = kv.version();
  }
  std::map<ResourceName, FenceMark> marks;
  for (const wire::KeyValue& kv : response.responses(0).range().kvs()) {
    const std::string encoded = kv.key().substr(keys_.marks().size());
    const auto resource = ResourceName::parse(percent_decode(encoded).value_or(""));
    if (!resource) continue;  // no fence makes such a key
    const auto found = TRY(seen(*resource, &kv));
    marks.emplace(*resource, found.mark.shown(*resource, refused[encoded]));
  }
  std::vector<FenceMark> all;
  for (auto& [resource, mark] : marks) all.push_back(std::move(mark));
  return all;
}

}  // namespace leasehold::etcd
