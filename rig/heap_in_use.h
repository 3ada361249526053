// How much memory this process has asked for and not given back, in bytes.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LEASEHOLD_SANITIZER_HEAP
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define LEASEHOLD_SANITIZER_HEAP
#endif
#endif

#ifdef LEASEHOLD_SANITIZER_HEAP
#include <sanitizer/allocator_interface.h>
#else
#include <malloc.h>
#endif

namespace leasehold::rig {

// Of all threads, and of libraries in C too.
inline std::size_t heap_in_use() {
#ifdef LEASEHOLD_SANITIZER_HEAP
  return __sanitizer_get_current_allocated_bytes();
#else
  const struct mallinfo2 heap = mallinfo2();
  return heap.uordblks + heap.hblkhd;
#endif
}

}  // namespace leasehold::rig
