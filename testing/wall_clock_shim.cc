// LD_PRELOAD: the wall clock is WALL_CLOCK_OFFSET seconds off, the boot clock is as it is.
#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>

#include <cstdlib>

namespace {

long offset() {
  const char* text = std::getenv("WALL_CLOCK_OFFSET");
  return text == nullptr ? 0 : std::atol(text);
}

}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* now) noexcept {
  using Real = int (*)(clockid_t, timespec*);
  static const auto real = reinterpret_cast<Real>(dlsym(RTLD_NEXT, "clock_gettime"));
  const int result = real(clock, now);
  if (clock == CLOCK_REALTIME) now->tv_sec += offset();
  return result;
}

extern "C" int gettimeofday(timeval* now, void*) noexcept {
  timespec exact{};
  clock_gettime(CLOCK_REALTIME, &exact);
  now->tv_sec = exact.tv_sec;
  now->tv_usec = exact.tv_nsec / 1000;
  return 0;
}

extern "C" time_t time(time_t* out) noexcept {
  timespec exact{};
  clock_gettime(CLOCK_REALTIME, &exact);
  if (out != nullptr) *out = exact.tv_sec;
  return exact.tv_sec;
}
