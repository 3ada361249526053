// Waiting for an answer that comes on another thread.
#pragma once

#include <future>
#include <memory>
#include <utility>

namespace leasehold::etcd {

// Waits for one answer. Not on a thread of gRPC. Shared: the answer may come on a thread that is
// still in set_value when this one goes on.
template <class Answer, class Ask>
Answer answer_of(Ask ask) {
  const auto answer = std::make_shared<std::promise<Answer>>();
  ask([answer](Answer it) { answer->set_value(std::move(it)); });
  return answer->get_future().get();
}

}  // namespace leasehold::etcd
