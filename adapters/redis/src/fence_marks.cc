#include "fence_marks.h"

#include <map>

#include "fence/refusal.h"
#include "keys.h"
#include "kit/question.h"
#include "kit/text/number.h"
#include "kit/text/visible_text.h"
#include "kit/try.h"
#include "leasehold/resp/command.h"
#include "open_server.h"
#include "scan.h"

namespace leasehold::redis {
namespace {

constexpr auto kListTimeout = std::chrono::minutes(1);

constexpr std::int64_t kVersion = 2;  // of the script

Result<FenceMark> mark_in(const ResourceName& resource, const resp::Value& fields) {
  const auto version = kit::digits_in<std::int64_t>(fields.under("version").text);
  if (!version) return fail(fence::damaged_mark(resource));
  if (*version != kVersion) {
    return fail(fence::other_version(resource, *version, kVersion,
                                     "delete the key " + kit::in_quotes(fence_key(resource))));
  }
  FenceMark mark{resource, std::nullopt, std::nullopt, 0, std::nullopt};
  mark.refused = kit::number_in<std::int64_t>(fields.under("refused").text).value_or(0);
  if (const std::string& claim = fields.under("claim").text; !claim.empty()) {
    mark.claim = RequestId::from_hex(claim);
    if (!mark.claim) return fail(fence::damaged_mark(resource));
  }
  const std::string& lineage = fields.under("lineage").text;
  if (lineage.empty()) return mark;
  const auto parsed = Lineage::parse(lineage);
  if (!parsed) return fail(fence::damaged_mark(resource));
  mark.lineage = *parsed;
  const auto grant = [&](const char* number_field,
                         const char* request_field) -> Result<std::optional<Token>> {
    const std::string& number = fields.under(number_field).text;
    if (number.empty()) return std::nullopt;
    auto token = Token::parse(number, lineage, fields.under(request_field).text);
    if (!token) return fail(fence::damaged_mark(resource));
    return *token;
  };
  mark.mark = TRY(grant("token", "request"));
  mark.reader = TRY(grant("reader", "reader_request"));
  return mark;
}

}  // namespace

Result<std::shared_ptr<Server>> open_fenced_server(const Url& url) {
  return open_keeping_server(url, "and a mark that is gone lets stale holders in");
}

Result<std::optional<FenceMark>> read_mark(Server& server, const ResourceName& resource,
                                           const CallContext& context) {
  std::string command;
  resp::append_command(command, {"HGETALL", fence_key(resource)});
  const auto fields = TRY(kit::question(server.run(command, context)));
  if (fields.items.empty()) return std::nullopt;
  auto mark = TRY(mark_in(resource, fields));
  return mark;
}

Result<std::vector<FenceMark>> read_marks(Server& server) {
  const CallContext context{BootClock::now() + kListTimeout, {}};
  std::map<ResourceName, FenceMark> marks;
  const auto keys = TRY(find_keys(server, kFenceKeys, context));
  for (const std::string& key : keys) {
    auto resource = ResourceName::parse(std::string_view(key).substr(kFenceKeys.size()));
    if (!resource) continue;  // no fence makes such a key
    auto mark = TRY(read_mark(server, *resource, context));
    if (mark) marks.emplace(*resource, std::move(*mark));
  }
  std::vector<FenceMark> all;
  for (auto& [resource, mark] : marks) all.push_back(std::move(mark));
  return all;
}

Status adopt_lineage(Server& server, const ResourceName& resource, const Lineage& lineage,
                     TokenNumber at_least, const EnterOptions& options) {
  const FenceCall call(
      resource,
      {.mode = "adopt", .number = std::to_string(at_least.value()), .lineage = lineage.str()});
  const auto done = call.run(server, options);
  if (done) return {};
  if (done.error().store_code != kLower) return fail(done.error());
  return fail(fence::would_lower(resource, done.error().refusal->mark, at_least));
}

Status reset_mark(Server& server, const ResourceName& resource, const EnterOptions& options) {
  const auto done = FenceCall(resource, {.mode = "reset", .number = ""}).run(server, options);
  if (done) return {};
  if (done.error().store_code == kUnknown) return fail(fence::unknown_resource(resource));
  return fail(done.error());
}

}  // namespace leasehold::redis
