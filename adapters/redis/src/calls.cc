#include "calls.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "kit/text/number.h"
#include "leasehold/resp/command.h"
#include "store_base/busy_label.h"
#include "store_base/mode_conflict.h"

namespace leasehold::redis {

using resp::Type;
using resp::Value;

namespace {

// How long an acquire may be on its way.
constexpr Millis kReleaseRemembered = std::chrono::hours(1);

constexpr const char* kStranger = "another program";

std::string text(Millis time) {
  return std::to_string(time.count());
}

// As it is at a lock's key while nobody waits: a 0, and 16 digits.
std::string number_text(std::int64_t number) {
  std::string digits = std::to_string(number);
  return std::string(17 - std::min<std::size_t>(digits.size(), 16), '0') + digits;
}

// As it is at the store's key.
std::string store_text(const std::optional<StoreId>& store) {
  return store ? std::string(kStoreFormat) + ' ' + store->hex() : "";
}

std::string said_by(const AcquireCall& call) {
  return call.note.empty() ? call.owner.str() : call.owner.str() + '\n' + call.note.str();
}

template <class... Words>
std::vector<std::string> list_of(Words... words) {
  std::vector<std::string> list;
  list.reserve(sizeof...(words));
  (list.push_back(std::move(words)), ...);
  return list;
}

tl::unexpected<Error> unexpected_reply() {
  return fail(ErrorCode::outcome_unknown, "the server's answer is not what the script answers");
}

// The text before the first space, which is removed from `rest` with it.
std::string_view take_word(std::string_view& rest) {
  const auto end = std::min(rest.find(' '), rest.size());
  const std::string_view word = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return word;
}

std::optional<TokenNumber> token_in(std::string_view digits) {
  auto token = TokenNumber::parse(digits);
  if (!token) return std::nullopt;
  return *token;
}

// Not negative, whatever another program wrote.
std::int64_t elapsed(std::int64_t since, std::int64_t now) {
  return since < 0 || since >= now ? 0 : now - since;
}

// By LockValue::since.
std::int64_t held_for(std::int64_t since, std::int64_t now, std::int64_t left) {
  if (since >= 0) return elapsed(since, now);
  return left < 0 || since < -Ttl::kMax.count() ? 0 : elapsed(left, -since);
}

std::pair<std::string, std::string> owner_and_note(std::string_view text) {
  const auto end = std::min(text.find('\n'), text.size());
  const std::string_view note = text.substr(std::min(end + 1, text.size()));
  return {readable_label(text.substr(0, end)), readable_note(note)};
}

std::optional<Mode> mode_in(std::string_view digits) {
  const auto code = kit::number_in<std::int64_t>(digits);
  return code ? Mode::from_code(*code) : std::nullopt;
}

std::optional<Slot> slot_in(std::string_view digits) {
  const auto number = kit::number_in<std::int64_t>(digits);
  if (!number || *number < 0) return std::nullopt;
  return Slot{*number};
}

// As the lock is used, if the answer is that it is used otherwise.
Mode used_mode(const Value& reply) {
  return Mode::from_code(reply.at(1).integer).value_or(Mode::exclusive());
}

// One of those in crowd_lua.h; nothing if it is none. A stranger if its entry cannot be read.
std::optional<LockStatus::Holder> holder_beside(std::string_view member, std::string_view end,
                                                std::string_view entry, std::int64_t now) {
  const bool kept = member.starts_with('+');
  const auto request = RequestId::from_hex(member.substr(kept ? 1 : 0));
  if (!request) return std::nullopt;
  const Millis left(elapsed(now, kit::number_in<std::int64_t>(end).value_or(0)));
  const auto token = token_in(take_word(entry));
  const auto store = StoreId::from_hex(take_word(entry));
  const auto since = kit::number_in<std::int64_t>(take_word(entry));
  const auto call = kit::number_in<std::int64_t>(take_word(entry));
  const auto mode = mode_in(take_word(entry));
  const auto slot = slot_in(take_word(entry));
  if (!token || !store || !since || !call || !mode || !slot) {
    return LockStatus::Holder{.request = *request,
                              .token = TokenNumber::of(1).value(),
                              .owner = kStranger,
                              .held_for = Millis(0),
                              .remaining = left,
                              .kept = kept,
                              .foreign = true,
                              .foreign_end = LockStatus::Holder::End::timed};
  }
  auto [owner, note] = owner_and_note(entry);
  return LockStatus::Holder{.request = *request,
                            .token = *token,
                            .owner = std::move(owner),
                            .held_for = Millis(elapsed(*since, now)),
                            .remaining = left,
                            .kept = kept,
                            .mode = *mode,
                            .slot = mode->is_permit() ? slot : std::nullopt,
                            .note = std::move(note)};
}

// Who is in the way: the holder by the lock's value, else the first waiter.
std::string ahead_of(const Value& value, const Value& waiter) {
  if (value.text.empty()) return waiter.text.empty() ? "" : readable_label(waiter.text);
  const LockValue holder = LockValue::parse(value.text);
  return busy_label(holder.owner, holder.kept);
}

}  // namespace

ScriptCall acquire_call(const LockKeys& keys, const AcquireCall& call, bool queue,
                        const std::string& channel, const std::optional<StoreId>& store,
                        std::int64_t number) {
  ScriptCall script{Scripts::all().acquire, list_of(keys.lock),
                    list_of(call.request.hex(), text(call.ttl.length()), number_text(number),
                            store_text(store), said_by(call))};
  if (queue || !call.mode.is_exclusive()) {
    script.arguments.push_back(std::to_string(call.mode.code()));
  }
  if (queue) script.arguments.push_back(channel);
  return script;
}

ScriptCall renew_call(const std::string& prefix, const std::vector<RenewCall>& calls) {
  ScriptCall script{Scripts::all().renew, {}};
  for (const RenewCall& call : calls) {
    const LockKeys keys = LockKeys::of(prefix, call.lock);
    for (std::string key : {keys.lock, keys.ends(), keys.holders(), keys.slots()}) {
      script.keys.push_back(std::move(key));
    }
    script.arguments.push_back(call.request.hex());
    script.arguments.push_back(text(call.ttl.length()));
  }
  return script;
}

ScriptCall release_call(const LockKeys& keys, const ReleaseCall& call, bool doubtful,
                        std::int64_t number) {
  ScriptCall script{Scripts::all().release, list_of(keys.lock),
                    list_of(call.request.hex() + ' ', number_text(number))};
  if (doubtful || call.keep_for > Millis(0)) {
    script.arguments.push_back(text(std::max(call.keep_for, Millis(0))));
    script.arguments.push_back(doubtful ? text(kReleaseRemembered) : "0");
  }
  return script;
}

ScriptCall acquire_many_call(const std::optional<StoreId>& store, std::int64_t number) {
  return {Scripts::all().acquire_many, {}, list_of(number_text(number), store_text(store))};
}

void add_acquire(ScriptCall& many, LockKeys keys, const AcquireCall& call) {
  many.keys.push_back(std::move(keys.lock));
  many.arguments.push_back(call.request.hex());
  many.arguments.push_back(text(call.ttl.length()));
  many.arguments.push_back(said_by(call));
}

ScriptCall release_many_call(std::int64_t number) {
  return {Scripts::all().release_many, {}, list_of(number_text(number))};
}

void add_release(ScriptCall& many, LockKeys keys, const ReleaseCall& call) {
  many.keys.push_back(std::move(keys.lock));
  many.arguments.push_back(call.request.hex() + ' ');
}

ScriptCall force_release_call(const LockKeys& keys, const RequestId& seen) {
  return {Scripts::all().force_release,
          {keys.lock, keys.queue(), keys.waiters(), keys.permits(), keys.ends(), keys.holders(),
           keys.slots()},
          {seen.hex()}};
}

ScriptCall set_permits_call(const LockKeys& keys, std::optional<std::int64_t> permits) {
  return {Scripts::all().set_permits,
          {kStoreKey, keys.lock, keys.queue(), keys.waiters(), keys.permits(), keys.ends(),
           keys.holders(), keys.slots()},
          {permits ? std::to_string(*permits) : ""}};
}

ScriptCall inspect_call(const LockKeys& keys) {
  return {Scripts::all().inspect,
          {keys.lock, kStoreKey, keys.queue(), keys.waiters(), keys.permits(), keys.ends(),
           keys.holders()}};
}

ScriptCall record_call(const LockKeys& keys, const RequestId& request, const std::string& key,
                       const OnceRecord& what) {
  return {Scripts::all().record,
          {keys.lock, keys.once(), keys.ends()},
          {request.hex(), key,
           std::to_string(what.parameters.size()) + " " + what.parameters + what.result}};
}

ScriptCall begin_call(const StoreId& new_store) {
  return {Scripts::all().begin, {kStoreKey}, {new_store.hex(), "begin"}};
}

ScriptCall rotate_call(const StoreId& id) {
  return {Scripts::all().begin, {kStoreKey}, {id.hex(), "rotate"}};
}

ScriptCall look_call() {
  return {Scripts::all().begin, {kStoreKey}, {"", "look"}};
}

std::string recall_command(const LockKeys& keys, const std::string& key) {
  std::string command;
  resp::append_command(command, {"HGET", keys.once(), key});
  return command;
}

std::string list_keys_command(const LockKeys& keys) {
  std::string command;
  resp::append_command(command, {"HKEYS", keys.once()});
  return command;
}

std::string forget_command(const LockKeys& keys, const std::string& key) {
  std::string command;
  resp::append_command(command, {"HDEL", keys.once(), key});
  return command;
}

LockValue LockValue::parse(std::string_view value) {
  LockValue stranger;
  stranger.owner = kStranger;
  if (value.size() < 33) return stranger;
  LockValue ours;
  ours.request = RequestId::from_hex(value.substr(0, 32));
  ours.kept = value[32] == '+';
  if (!ours.request || (value[32] != ' ' && !ours.kept)) return stranger;
  value.remove_prefix(33);
  const auto call = kit::number_in<std::int64_t>(take_word(value));
  ours.token = token_in(take_word(value));
  const auto format = take_word(value);
  ours.store = StoreId::from_hex(take_word(value));
  const auto since = kit::number_in<std::int64_t>(take_word(value));
  if (!call || !ours.token || format != kStoreFormat || !ours.store || !since) return stranger;
  ours.since = *since;
  std::tie(ours.owner, ours.note) = owner_and_note(value);
  return ours;
}

Status check_count(const Value& reply, std::size_t count) {
  if (reply.items.size() == count) return {};
  return unexpected_reply();
}

bool is_grant(const Value& acquire_reply) {
  return acquire_reply.type == Type::integer || acquire_reply.at(0).integer == 1;
}

Result<AcquireReply> read_acquire(const Value& reply, const AcquireCall& call,
                                  const std::optional<StoreId>& store) {
  if (reply.type == Type::integer) {
    const auto token = TokenNumber::of(reply.integer);
    if (!token || !store) return unexpected_reply();
    return Granted{*token, *store, call.ttl.length(), /*fresh=*/true};
  }
  switch (reply.at(0).integer) {
    case 1: {
      const auto token = token_in(reply.at(1).text);
      const auto its_store = StoreId::from_hex(reply.at(2).text);
      if (!token || !its_store) return unexpected_reply();
      return Granted{*token, *its_store, call.ttl.length(), reply.at(3).integer == 1,
                     slot_in(reply.at(4).text)};
    }
    case 2:
      return Queued{Millis(reply.at(1).integer), ahead_of(reply.at(2), reply.at(3))};
    case 3:
      return Busy{ahead_of(reply.at(1), reply.at(2))};
    case 4:
      return fail(mode_conflict(call.lock, call.mode, used_mode(reply), reply.at(2).integer == 1));
    default:
      return unexpected_reply();
  }
}

Result<std::vector<RenewReply>> read_renew(const Value& reply, std::size_t count) {
  if (reply.items.size() != count) return unexpected_reply();
  std::vector<RenewReply> replies;
  for (const Value& it : reply.items) {
    replies.push_back(it.integer == 1 ? RenewReply::renewed : RenewReply::gone);
  }
  return replies;
}

Result<ReleaseReply> read_release(const Value& reply) {
  if (reply.type != Type::integer) return unexpected_reply();
  return reply.integer == 1 ? ReleaseReply::released : ReleaseReply::not_held;
}

Status read_set_permits(const Value& reply, const LockName& lock) {
  if (reply.at(0).integer == 1) return {};
  if (reply.at(0).integer != 4) return unexpected_reply();
  return fail(in_use_without_permits(lock, used_mode(reply)));
}

Result<LockStatus> read_status(const Value& reply, const LockName& lock, const LockKeys& keys) {
  if (reply.items.size() != 9) return unexpected_reply();
  const std::string& value = reply.at(0).text;
  const std::int64_t left = reply.at(2).integer;
  const std::int64_t now = reply.at(3).integer;
  const std::int64_t life = reply.at(5).integer;
  LockStatus status{.lock = lock,
                    .store = StoreId::from_hex(reply.at(4).text),
                    .last_token = {},
                    .holders = {},
                    .waiters = {},
                    .known_as = keys.lock};
  const std::string_view fingerprint = reply.at(1).text;
  const Value& beside = reply.at(7);
  for (std::size_t i = 0; i + 2 < beside.items.size(); i += 3) {
    auto holder = holder_beside(beside.items[i].text, beside.items[i + 1].text,
                                beside.items[i + 2].text, now);
    if (!holder) continue;
    if (!holder->foreign) status.last_token = std::max(status.last_token, {holder->token});
    status.holders.push_back(std::move(*holder));
  }
  std::ranges::sort(status.holders, {}, &LockStatus::Holder::token);
  if (!fingerprint.empty() && status.holders.empty()) {
    const LockValue holder = LockValue::parse(value);
    status.last_token = holder.token;
    // A stranger has no request id; the fingerprint stands for one.
    const auto request =
        holder.request ? holder.request : RequestId::from_hex(fingerprint.substr(0, 32));
    if (!request) return unexpected_reply();
    // Without an expiry it lasts until it is deleted: longer than any lease.
    const Millis remaining = left < 0 ? Ttl::kMax : Millis(left);
    status.holders = {LockStatus::Holder{
        .request = *request,
        .token = holder.token.value_or(TokenNumber::of(1).value()),
        .owner = holder.owner,
        .held_for = Millis(holder.request ? held_for(holder.since, now, left) : 0),
        .remaining = remaining,
        .kept = holder.kept,
        .foreign = !holder.request,
        .foreign_end = left < 0 ? LockStatus::Holder::End::never : LockStatus::Holder::End::timed,
        .note = holder.note}};
  }
  status.set_permits = kit::number_in<std::int64_t>(reply.at(8).text);
  const Value& waiting = reply.at(6);
  for (std::size_t i = 0; i + 1 < waiting.items.size(); i += 2) {
    const auto request = RequestId::from_hex(waiting.items[i].text);
    std::string_view entry = waiting.items[i + 1].text;
    const auto asked = kit::number_in<std::int64_t>(take_word(entry));
    take_word(entry);  // the channel
    const auto mode = mode_in(take_word(entry));
    if (!request || !asked || !mode || elapsed(*asked, now) >= life) continue;
    auto [owner, note] = owner_and_note(entry);
    status.waiters.push_back({*request, std::move(owner), *mode, std::move(note)});
  }
  return status;
}

Result<std::optional<OnceRecord>> read_recall(const Value& reply) {
  if (reply.type == Type::null) return std::nullopt;
  std::string_view stored = reply.text;
  const auto size = kit::number_in<std::size_t>(take_word(stored));
  if (!size || *size > stored.size()) return unexpected_reply();
  return OnceRecord{std::string(stored.substr(0, *size)), std::string(stored.substr(*size))};
}

Result<std::vector<std::string>> read_keys(const Value& reply) {
  if (reply.type != Type::array && reply.type != Type::set) return unexpected_reply();
  std::vector<std::string> keys;
  for (const Value& it : reply.items) keys.push_back(it.text);
  std::sort(keys.begin(), keys.end());
  return keys;
}

Result<StoreId> read_store(const Value& reply) {
  const auto id = StoreId::from_hex(reply.text);
  if (!id) return unexpected_reply();
  return *id;
}

}  // namespace leasehold::redis
