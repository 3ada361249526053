// For LD_PRELOAD: after so many threads as LEASEHOLD_THREADS says, none can be started.
#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*begin)(void*), void* argument) {
  static const char* const most = std::getenv("LEASEHOLD_THREADS");
  static std::atomic<int> left = most != nullptr ? std::atoi(most) : 0;
  if (left.fetch_sub(1) <= 0) return EAGAIN;
  static const auto next =
      reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
  return next(thread, attributes, begin, argument);
}
