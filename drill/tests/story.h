// Histories written by hand, for tests.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string_view>

#include "leasehold/drill/history.h"

namespace leasehold::drill {

// Small numbers stand for request ids and stores.
template <class Id>
Id id_of(int number) {
  typename Id::Bytes bytes{};
  bytes[14] = static_cast<std::uint8_t>(number >> 8);
  bytes[15] = static_cast<std::uint8_t>(number);
  return Id(bytes);
}

// One lock "a" of store 1. Each call is one record, one tick later than the last.
class Story {
 public:
  static constexpr std::int64_t kTtl = 1000;

  Story& at(std::int64_t time) {
    now_ = time;
    return *this;
  }
  // Of the next record only.
  Story& epoch(int epoch) {
    next_.epoch = static_cast<std::uint16_t>(epoch);
    return *this;
  }
  Story& from(int store) {
    store_ = store;
    return *this;
  }
  Story& shared() {
    next_.set_mode(Mode::shared());
    return *this;
  }
  Story& permit(int permits, std::optional<int> slot = {}) {
    next_.set_mode(Mode::permit_of(permits), slot ? std::optional(Slot{*slot}) : std::nullopt);
    return *this;
  }
  Story& by(Operation operation) {
    cause_ = operation;
    return *this;
  }

  Story& grant(std::int64_t token, int request, std::int64_t ttl = kTtl) {
    return add("store", Kind::grant, cause(Operation::acquire), token, request, now_ + ttl);
  }
  Story& renew(std::int64_t token, int request, std::int64_t ttl = kTtl) {
    return add("store", Kind::renew, cause(Operation::renew), token, request, now_ + ttl);
  }
  Story& release(std::int64_t token, int request, std::int64_t keep_until = 0) {
    return add("store", Kind::release, Operation::release, token, request, keep_until);
  }
  Story& force(std::int64_t token, int request) {
    return add("store", Kind::release, Operation::none, token, request, 0);
  }
  Story& expire(std::int64_t token, int request) {
    return add("store", Kind::expire, Operation::none, token, request, 0);
  }
  Story& waits(int request) { return add("store", Kind::queue, Operation::acquire, 0, request, 0); }
  Story& leaves(int request) { return add("store", Kind::leave, Operation::none, 0, request, 0); }

  Story& read(std::int64_t token, int request, std::uint64_t value) {
    next_.value = value;
    return add("resource", Kind::accept, Operation::read, token, request, 0);
  }
  Story& write(std::int64_t token, int request, std::uint64_t base, std::uint64_t value) {
    next_.base = base;
    next_.value = value;
    return add("resource", Kind::accept, Operation::write, token, request, 0);
  }
  Story& refuse(std::int64_t token, int request, std::uint32_t sequence = 0) {
    next_.sequence = sequence;
    return add("resource", Kind::refuse, Operation::write, token, request, 0);
  }

  // The resource raises its floor, for all that has no mark; and forgets the marks of this one.
  Story& floor(std::int64_t token) {
    everywhere_ = true;
    return add("resource", Kind::sweep, Operation::none, token, 0, 0);
  }
  Story& sweep() { return add("resource", Kind::sweep, Operation::none, 0, 0, 0); }

  Story& client(int request, Kind kind, Operation operation, std::int64_t token = 0,
                std::int64_t deadline = 0) {
    return add("client " + std::to_string(request), kind, operation, token, request, deadline);
  }
  Story& asks(int request) { return client(request, Kind::invoke, Operation::acquire); }
  Story& gets(int request, std::int64_t token, std::int64_t deadline) {
    return client(request, Kind::ok, Operation::acquire, token, deadline);
  }
  Story& told_written(int request, std::uint64_t value) {
    next_.value = value;
    return client(request, Kind::ok, Operation::write);
  }
  Story& crash(int request) {
    return add("client " + std::to_string(request), Kind::fault, Operation::crash, 0, 0, 0);
  }
  Story& storm(bool begins) {
    return add("network", begins ? Kind::fault : Kind::heal, Operation::storm, 0, 0, 0);
  }

  History history;

 private:
  Operation cause(Operation usual) {
    return cause_ == Operation::none ? usual : std::exchange(cause_, Operation::none);
  }

  Story& add(std::string_view process, Kind kind, Operation operation, std::int64_t token,
             int request, std::int64_t deadline) {
    Record record = std::exchange(next_, {});
    record.time = now_++;
    record.process = history.process(process);
    record.kind = kind;
    record.operation = operation;
    record.lock = std::exchange(everywhere_, false) ? LockRef{0} : history.lock("a");
    record.token = token;
    if (request != 0) record.request = history.request(id_of<RequestId>(request));
    record.deadline = deadline;
    record.store = history.store(id_of<StoreId>(std::exchange(store_, 1)));
    EXPECT_TRUE(history.append(record));
    return *this;
  }

  std::int64_t now_ = 1;
  int store_ = 1;
  bool everywhere_ = false;
  Operation cause_ = Operation::none;
  Record next_;
};

}  // namespace leasehold::drill
