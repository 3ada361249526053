#include "leasehold/redis/serial_queue.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "keys.h"
#include "kit/text/number.h"
#include "kit/text/other_version.h"
#include "kit/text/visible_text.h"
#include "kit/try.h"
#include "leasehold/random.h"
#include "leasehold/resp/command.h"
#include "leasehold/ttl.h"
#include "open_server.h"
#include "serial_scripts.h"

namespace leasehold::redis {

using resp::Value;

namespace {

constexpr std::string_view kOtherFormat = "QUEUEFORMAT ";

// What was taken: an entity, and who has it.
struct Claim {
  std::string entity;
  std::string owner;
};

}  // namespace

struct SerialQueue::State {
  State(QueueName queue_name, SerialQueueOptions chosen, std::shared_ptr<Server> to)
      : queue(std::move(queue_name)), options(chosen), server(std::move(to)) {}
  ~State() { server->close(); }

  const QueueName queue;
  const SerialQueueOptions options;
  const std::shared_ptr<Server> server;

  // With the length of the queue's name, so that no entity can reach into another queue.
  std::string key(const char* what) const {
    return std::string(kOwnKeys) + "serial:" + what + ":" + std::to_string(queue.str().size()) +
           ":" + queue.str();
  }

  Result<Value> run(const Script& script, std::vector<std::string> arguments,
                    BootTime latest = BootTime::max()) const {
    arguments.insert(arguments.begin(), key("ops") + ":");
    const CallContext context{std::min(BootClock::now() + options.timeout, latest), {}};
    auto reply = server->run(ScriptCall{script,
                                        {key("ready"), key("busy"), key("owners"), key("attempts"),
                                         key("aside"), key("ids")},
                                        std::move(arguments)},
                             context);
    if (reply || !reply.error().store_words.starts_with(kOtherFormat)) return reply;
    return fail(other_format(reply.error().store_words.substr(kOtherFormat.size())));
  }
  Error other_format(std::string_view found) const {
    return Error(
        ErrorCode::unsupported,
        "the serial queue " + kit::in_quotes(queue.str()) + " has format " + kit::visible(found) +
            ", and this program knows only format " + std::to_string(kSerialFormat) +
            kit::remedy_for_version(
                kit::digits_in<std::int64_t>(found).value_or(0), kSerialFormat,
                "end all programs that use it and delete its keys, " + kit::in_quotes(key("*")) +
                    " and those of its operations; it forgets all operations that wait"));
  }
  Result<Value> run(std::initializer_list<std::string_view> words) const {
    std::string command;
    resp::append_command(command, words);
    return server->run(command, {BootClock::now() + options.timeout, {}});
  }

  Result<bool> renew(const Claim& claim, BootTime latest) const {
    auto reply = TRY(run(SerialScripts::all().renew,
                         {claim.entity, claim.owner, std::to_string(options.ttl.count())}, latest));
    return reply.integer == 1;
  }

  Status resolve(std::string_view entity, bool drop) const;
};

namespace {

// Renews while it lives; `lost` is requested as soon as the entity may be another worker's.
class Renewing {
 public:
  // Returns at the given time at the latest.
  using Renew = std::function<Result<bool>(BootTime)>;

  Renewing(Renew renew, Millis ttl, BootTime taken)
      : renew_(std::move(renew)), ttl_(ttl), until_(taken + ttl) {
    thread_ = std::jthread([this](std::stop_token over) { go(over); });
  }

  std::stop_token lost() const { return lost_.get_token(); }

 private:
  void go(const std::stop_token& over) {
    std::mutex mutex;
    std::condition_variable_any never;
    std::unique_lock lock(mutex);
    do {
      const BootTime next = std::min(BootClock::now() + ttl_ / 3, until_);
      never.wait_until(lock, over, next, [] { return false; });
      if (over.stop_requested()) return;
    } while (renewed());
    lost_.request_stop();
  }

  // Whether the entity is still this worker's, for sure. Known by the end of its time at the
  // latest.
  bool renewed() {
    const BootTime before = BootClock::now();
    if (before >= until_) return false;
    const auto kept = renew_(until_);
    if (kept && !*kept) return false;
    if (kept) until_ = before + ttl_;
    return BootClock::now() < until_;
  }

  const Renew renew_;
  const Millis ttl_;
  BootTime until_;
  std::stop_source lost_;
  std::jthread thread_;  // last: it uses the others
};

Result<Operation> operation_of(const Value& taken) {
  auto entity = TRY(EntityName::parse(taken.at(0).text));
  const std::string& text = taken.at(1).text;
  const std::size_t space = text.find(' ');
  const auto id = kit::number_in<std::int64_t>(std::string_view(text).substr(0, space));
  if (space == std::string::npos || !id) {
    return fail(ErrorCode::unavailable,
                "the queue of entity " + kit::in_quotes(entity.str()) + " is damaged");
  }
  return Operation{*id, std::move(entity), text.substr(space + 1),
                   kit::number_in<std::int64_t>(taken.at(2).text).value_or(0)};
}

Handled too_late(Operation operation) {
  Error error(ErrorCode::lost, "entity " + kit::in_quotes(operation.entity.str()) +
                                   " was given to another "
                                   "worker while operation " +
                                   std::to_string(operation.id) +
                                   " was done here: it is done again");
  return Handled{Handled::What::lost, std::move(operation), std::move(error)};
}

}  // namespace

SerialQueue::SerialQueue(std::unique_ptr<State> state) : state_(std::move(state)) {}
SerialQueue::SerialQueue(SerialQueue&&) noexcept = default;
SerialQueue& SerialQueue::operator=(SerialQueue&&) noexcept = default;
SerialQueue::~SerialQueue() = default;

Result<SerialQueue> SerialQueue::open(std::string_view url, std::string_view queue,
                                      SerialQueueOptions options) {
  const auto parsed = TRY(server_url(url, "a serial queue in Redis is"));
  return open(parsed, queue, options);
}

Result<SerialQueue> SerialQueue::open(const Url& url, std::string_view queue,
                                      SerialQueueOptions options) {
  auto name = TRY(QueueName::parse(queue));
  TRY(Ttl::of(options.ttl));
  auto server = TRY(open_keeping_server(url, "and operations that are gone are never done"));
  return SerialQueue(std::make_unique<State>(std::move(name), options, std::move(server)));
}

Result<std::int64_t> SerialQueue::push(std::string_view entity, std::string_view payload) {
  const auto name = TRY(EntityName::parse(entity));
  TRY(check_operation_payload(payload));
  auto reply = TRY(state_->run(SerialScripts::all().push, {name.str(), std::string(payload)}));
  return reply.integer;
}

Result<Handled> SerialQueue::handle_one(const Work& work, const HandleOptions& options) {
  const SerialScripts& scripts = SerialScripts::all();
  const std::string owner = RequestId::random(system_random()).hex();
  const BootTime before = BootClock::now();
  auto taken = TRY(state_->run(scripts.take, {owner, std::to_string(state_->options.ttl.count())}));
  if (taken.type != resp::Type::array) return Handled{};
  auto operation = TRY(operation_of(taken));
  const Claim claim{operation.entity.str(), owner};

  const Status done = [&] {
    const Renewing renewing([&](BootTime latest) { return state_->renew(claim, latest); },
                            state_->options.ttl, before);
    return work(operation, renewing.lost());
  }();

  if (done) {
    auto reply = TRY(state_->run(scripts.done, {claim.entity, claim.owner}));
    if (reply.integer == 0) return too_late(std::move(operation));
    return Handled{Handled::What::done, std::move(operation), std::nullopt};
  }
  const auto pause = pause_after(operation.attempts, options);
  auto reply = TRY(state_->run(
      scripts.failed, {claim.entity, claim.owner, std::to_string(pause.count()),
                       std::to_string(options.attempts), kit::storable(to_string(done.error()))}));
  if (reply.integer == 0) return too_late(std::move(operation));
  return Handled{reply.integer == 2 ? Handled::What::set_aside : Handled::What::failed,
                 std::move(operation), done.error()};
}

Result<std::int64_t> SerialQueue::entities() {
  auto reply = TRY(state_->run(SerialScripts::all().count, {}));
  return reply.integer;
}

Result<std::vector<SerialProblem>> SerialQueue::set_aside() {
  const std::string aside = state_->key("aside");
  auto reply = TRY(state_->run({"HGETALL", aside}));
  std::vector<SerialProblem> problems;
  for (std::size_t i = 0; i + 1 < reply.items.size(); i += 2) {
    auto entity = TRY(EntityName::parse(reply.items[i].text));
    problems.push_back({std::move(entity), reply.items[i + 1].text});
  }
  return problems;
}

Status SerialQueue::State::resolve(std::string_view entity, bool drop) const {
  const auto name = TRY(EntityName::parse(entity));
  auto reply = TRY(run(SerialScripts::all().resolve, {name.str(), drop ? "1" : "0"}));
  if (reply.integer == 1) return {};
  return fail(ErrorCode::invalid, "entity " + kit::in_quotes(name.str()) + " is not set aside");
}

Status SerialQueue::retry(std::string_view entity) {
  return state_->resolve(entity, /*drop=*/false);
}

Status SerialQueue::skip(std::string_view entity) {
  return state_->resolve(entity, /*drop=*/true);
}

}  // namespace leasehold::redis
