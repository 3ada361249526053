// A serial queue in Redis: see leasehold/serial_queue.h.
//
// Guarantee: efficiency. A worker has an entity for a time, and renews it while it works. If it
// dies, another takes the same operation when that time is over: every operation is done at least
// once, as long as Redis keeps its data. Two workers are at one entity at the same time only if one
// of them froze or was cut off for longer than the time, or Redis lost writes in a failover or a
// restart. If that would be harm, not only waste, use the queue in PostgreSQL, or give the
// operation's id to a receiver that knows repeats. With lost writes ids are lost too, and given to
// other operations.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "leasehold/serial_queue.h"
#include "leasehold/url.h"

namespace leasehold::redis {

struct SerialQueueOptions {
  Millis ttl{30'000};     // how long a dead worker keeps its entity; 100 ms to 24 h
  Millis timeout{5'000};  // how long the server may take to answer
};

struct SerialProblem {
  EntityName entity;
  std::string last_error;
};

// Thread safe: each call uses a connection of its own, and handle_one() may run in many threads.
// Move-only; the destructor must not run while a call does.
class SerialQueue {
 public:
  // A work: done, or an error that is counted. `lost` is requested when the entity may be another
  // worker's.
  using Work = std::function<Status(const Operation&, std::stop_token lost)>;

  // `url` as for a store: redis://host:6379/0. Connects, up to 5 s.
  // `invalid`: the URL, the name (1 to 512 bytes of UTF-8 without control characters), or the ttl.
  // `unsafe_for_correctness`: the server throws keys away that never expire, so operations would be
  // lost. `unavailable`, `unsupported`: as for a store.
  [[nodiscard]] static Result<SerialQueue> open(std::string_view url, std::string_view queue,
                                                SerialQueueOptions options = {});
  // The same; the password is in the URL.
  [[nodiscard]] static Result<SerialQueue> open(const Url& url, std::string_view queue,
                                                SerialQueueOptions options = {});
  SerialQueue(SerialQueue&&) noexcept;
  SerialQueue& operator=(SerialQueue&&) noexcept;
  ~SerialQueue();

  // All calls below: `unsupported` if the queue is in another format, with what to do.

  // Adds an operation; its id. Any bytes, at most 1 MiB.
  // `outcome_unknown`: it may be in the queue; pushing again may put it there twice.
  [[nodiscard]] Result<std::int64_t> push(std::string_view entity, std::string_view payload);

  // Takes the next operation whose entity nobody is at work on, runs the work on the calling
  // thread, and removes the operation if it succeeded. Another thread renews meanwhile.
  // `Handled::What::lost`: the entity was no longer this worker's when the work ended.
  // Fails with `unavailable` (the server) or `outcome_unknown`. Then, and after an exception of the
  // work, which is passed on, the operation is taken again when the ttl is over.
  [[nodiscard]] Result<Handled> handle_one(const Work& work, const HandleOptions& options = {});

  // Entities that wait, pause, are being worked on or are set aside have at least one operation;
  // this counts the entities.
  [[nodiscard]] Result<std::int64_t> entities();

  // For the operator. retry and skip: `invalid` if the entity is not set aside.
  [[nodiscard]] Result<std::vector<SerialProblem>> set_aside();
  [[nodiscard]] Status retry(std::string_view entity);
  // The operation is never done; the entity goes on with the next.
  [[nodiscard]] Status skip(std::string_view entity);

 private:
  struct State;
  explicit SerialQueue(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace leasehold::redis
