// Memory for containers with nodes, such as std::pmr::map.
#pragma once

#include <array>
#include <cstddef>
#include <memory_resource>
#include <vector>

namespace leasehold::kit {

// Gives out again what was given back, of each size up to a few blocks, and asks the heap only for
// more. Not thread safe.
class RecycledMemory final : public std::pmr::memory_resource {
 public:
  RecycledMemory() = default;
  ~RecycledMemory() override {
    for (std::size_t number = 0; number < shelves_.size(); ++number) {
      for (void* block : shelves_[number]) heap_->deallocate(block, size_on(number));
    }
  }
  RecycledMemory(const RecycledMemory&) = delete;

 private:
  static constexpr std::size_t kStep = 32;
  static constexpr std::size_t kShelves = 32;
#ifdef __SANITIZE_ADDRESS__
  static constexpr std::size_t kSpares = 0;  // it shall see who uses what is gone
#else
  static constexpr std::size_t kSpares = 64;
#endif

  static bool has_shelf(std::size_t size, std::size_t alignment) {
    return size > 0 && size <= kShelves * kStep && alignment <= alignof(std::max_align_t);
  }
  static std::size_t shelf_for(std::size_t size) {
    return (size - 1) / kStep;
  }
  static std::size_t size_on(std::size_t shelf) {
    return (shelf + 1) * kStep;
  }

  void* do_allocate(std::size_t size, std::size_t alignment) override {
    if (!has_shelf(size, alignment)) return heap_->allocate(size, alignment);
    const std::size_t number = shelf_for(size);
    auto& shelf = shelves_[number];
    if (shelf.empty()) {
      shelf.reserve(kSpares);  // giving back must not fail
      return heap_->allocate(size_on(number));
    }
    void* const block = shelf.back();
    shelf.pop_back();
    return block;
  }

  void do_deallocate(void* block, std::size_t size, std::size_t alignment) override {
    if (!has_shelf(size, alignment)) return heap_->deallocate(block, size, alignment);
    const std::size_t number = shelf_for(size);
    auto& shelf = shelves_[number];
    if (shelf.size() == kSpares) return heap_->deallocate(block, size_on(number));
    shelf.push_back(block);
  }

  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    return this == &other;
  }

  std::pmr::memory_resource* const heap_ = std::pmr::new_delete_resource();
  std::array<std::vector<void*>, kShelves> shelves_;
};

}  // namespace leasehold::kit
