#include "serial_work.h"

#include <map>

#include "kit/try.h"
#include "leasehold/redis/serial_queue.h"

namespace leasehold::redis {
namespace {

class RedisSerialWork final : public SerialWork {
 public:
  explicit RedisSerialWork(Url url) : url_(std::move(url)) {}

  Result<std::int64_t> push(const QueueName& name, const EntityName& entity,
                            std::string_view payload) override {
    SerialQueue* const queue = TRY(opened(name));
    return queue->push(entity.str(), payload);
  }

  // The entity is renewed while the work runs, so that it may take any time.
  Result<Handled> handle_one(const QueueName& name, const Work& work, Millis /*longest*/,
                             const HandleOptions& options) override {
    SerialQueue* const queue = TRY(opened(name));
    return queue->handle_one(work, options);
  }

  Result<Overview> look_at(const QueueName& name) override {
    SerialQueue* const queue = TRY(opened(name));
    Overview found;
    found.counts_entities = true;
    found.waiting = TRY(queue->entities());
    const auto problems = TRY(queue->set_aside());
    for (const SerialProblem& problem : problems) {
      found.set_aside.push_back({problem.entity, problem.last_error});
    }
    return found;
  }

  Status retry(const QueueName& name, const EntityName& entity) override {
    SerialQueue* const queue = TRY(opened(name));
    return queue->retry(entity.str());
  }
  Status skip(const QueueName& name, const EntityName& entity) override {
    SerialQueue* const queue = TRY(opened(name));
    return queue->skip(entity.str());
  }

 private:
  Result<SerialQueue*> opened(const QueueName& name) {
    if (const auto found = queues_.find(name); found != queues_.end()) return &found->second;
    auto queue = TRY(SerialQueue::open(url_, name.str()));
    return &queues_.emplace(name, std::move(queue)).first->second;
  }

  const Url url_;
  std::map<QueueName, SerialQueue> queues_;
};

}  // namespace

Result<std::unique_ptr<SerialWork>> open_serial_work(const Url& url) {
  return std::make_unique<RedisSerialWork>(url);
}

}  // namespace leasehold::redis
