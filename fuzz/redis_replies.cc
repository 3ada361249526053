// What Redis answers to our scripts, and what other programs may have left in its keys.
//
// Rules: whatever is answered becomes a sensible reply or an error; labels and notes that go to a
// terminal are printable; times and slots are not negative; who has no permit has no slot.
#include <string>

#include "adapters/redis/src/calls.h"
#include "adapters/redis/src/fence_call.h"
#include "adapters/redis/src/server.h"
#include "fuzz/fuzz.h"
#include "leasehold/resp/parser.h"

namespace leasehold::fuzz {
namespace {

using namespace redis;

const LockName& lock() {
  static const LockName name = LockName::parse("lock").value();
  return name;
}

Token some_token() {
  return Token{TokenNumber::of(7).value(), Lineage::parse(std::string(32, '7') + "/lock").value(),
               RequestId::from_hex(std::string(32, 'a')).value()};
}

void check_acquire(const resp::Value& value) {
  const AcquireCall call{lock(), some_token().request, OwnerLabel::parse("me").value(),
                         Ttl::of(Millis(1000)).value()};
  const auto reply = read_acquire(value, call, StoreId::from_hex(std::string(32, '7')));
  if (!reply) {
    must(!reply.error().message.empty(), "an error has a sentence");
    return;
  }
  if (const auto* granted = std::get_if<Granted>(&*reply)) {
    must(granted->token.value() >= 1, "a token is positive");
    must(granted->slot.value_or(Slot{}).number >= 0, "slots begin at 0");
  }
  if (const auto* queued = std::get_if<Queued>(&*reply)) {
    must(is_printable(queued->ahead), "a label can be printed");
  }
  if (const auto* busy = std::get_if<Busy>(&*reply)) {
    must(is_printable(busy->ahead), "a label can be printed");
  }
}

void check_status(const resp::Value& value) {
  const auto status = read_status(value, lock(), LockKeys("lock:lock"));
  if (!status) return;
  for (const LockStatus::Holder& holder : status->holders) {
    must(holder.held_for >= Millis(0), "nobody holds since the future");
    must(holder.remaining >= Millis(0), "no lease has less than nothing left");
    must(is_printable(holder.owner), "a label can be printed");
    must(is_printable(holder.note), "a note can be printed");
    must(holder.slot.has_value() == holder.mode.is_permit(), "a slot is a permit's");
    must(holder.slot.value_or(Slot{}).number >= 0, "slots begin at 0");
  }
  for (const WaiterStatus& waiter : status->waiters) {
    must(is_printable(waiter.owner), "a label can be printed");
    must(is_printable(waiter.note), "a note can be printed");
  }
}

void check_error(const resp::Value& value) {
  if (!value.is_error()) return;
  must(!error_of(value.text).message.empty(), "an error has a sentence");
  const Error meant = meaning_of(value.text);
  const Error told = explained(ResourceName::parse("resource").value(), some_token(), meant);
  must(told.code == meant.code, "a refusal stays one");
  must(told.store_words == meant.store_words, "the server's words stay as they are");
}

void check(const resp::Value& value) {
  check_acquire(value);
  check_status(value);
  check_error(value);
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, value.items.size()}) {
    const auto renewed = read_renew(value, count);
    must(!renewed || renewed->size() == count, "every renewal is answered");
  }
  (void)read_release(value);
  if (const auto set = read_set_permits(value, lock()); !set) {
    must(!set.error().message.empty(), "an error has a sentence");
  }
  (void)read_store(value);
  if (const auto recalled = read_recall(value); recalled && *recalled) {
    const std::size_t kept = (*recalled)->parameters.size() + (*recalled)->result.size();
    must(kept <= value.text.size(), "a record has no more bytes than were stored");
  }
  const LockValue holder = LockValue::parse(value.text);
  must(holder.request.has_value() == holder.token.has_value(),
       "a value is ours with all its parts, or another program's");
  (void)reply_of(value);
}

}  // namespace
}  // namespace leasehold::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace leasehold;
  resp::Parser parser;
  parser.feed(fuzz::text_of(data, size));
  resp::Value value;
  while (parser.next(value) == resp::Parser::Step::value) fuzz::check(value);
  return 0;
}
