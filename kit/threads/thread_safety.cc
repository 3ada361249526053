#include "kit/threads/thread_safety.h"

namespace leasehold {
namespace {

// Leaves the other thread of a core, and the line of the cache, alone for a moment.
void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");
#endif
}

}  // namespace

void Mutex::lock_contended() {
  constexpr int kSpins = 100;
  for (int i = 0; i < kSpins; ++i) {
    relax();
    if (mutex_.try_lock()) return;
  }
  mutex_.lock();
}

}  // namespace leasehold
