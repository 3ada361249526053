// A list that is mostly empty, or has one item.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace leasehold::kit {

// As a vector, but that a single item needs no memory from the heap.
template <class T>
class Few {
 public:
  bool empty() const { return size() == 0; }
  std::size_t size() const { return only_ ? 1 : several_.size(); }
  T* begin() { return only_ ? &*only_ : several_.data(); }
  T* end() { return begin() + size(); }

  template <class Item>
  void emplace_back(Item&& item) {
    if (empty()) {
      only_.emplace(std::forward<Item>(item));
      return;
    }
    if (only_) several_.push_back(std::move(*only_));
    only_.reset();
    several_.emplace_back(std::forward<Item>(item));
  }

 private:
  std::optional<T> only_;
  std::vector<T> several_;
};

}  // namespace leasehold::kit
