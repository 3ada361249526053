#include "interposed.h"

#define THREADED
#include <dlfcn.h>
#include <netdb.h>
#include <zookeeper/zookeeper.h>

#include <atomic>
#include <condition_variable>
#include <mutex>

namespace {

// A door at which those who come wait while it is shut.
class Door {
 public:
  void shut(bool on) {
    const std::lock_guard lock(mutex_);
    shut_ = on;
    changed_.notify_all();
  }
  void pass() {
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return !shut_; });
    --waiting_;
  }
  void wait_for_one() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return waiting_ > 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool shut_ = false;
  int waiting_ = 0;
};

Door& names() {
  static Door door;
  return door;
}

Door& closing() {
  static Door door;
  return door;
}

Door& list() {
  static Door door;
  return door;
}

std::atomic<bool> lists_are_lost = false;
std::atomic<bool> next_list_hangs = false;

template <class Function>
Function* in_the_library(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

// Found before the libraries' own functions of these names.
extern "C" {

int zoo_awget_children2(zhandle_t* handle, const char* path, watcher_fn watcher, void* context,
                        strings_stat_completion_t completion, const void* data) {
  static auto* const real = in_the_library<decltype(zoo_awget_children2)>("zoo_awget_children2");
  if (next_list_hangs.exchange(false)) list().pass();
  return lists_are_lost ? ZOK : real(handle, path, watcher, context, completion, data);
}

int zookeeper_close(zhandle_t* handle) {
  static auto* const real = in_the_library<decltype(zookeeper_close)>("zookeeper_close");
  closing().pass();
  return real(handle);
}

int getaddrinfo(const char* node, const char* service, const addrinfo* hints, addrinfo** found) {
  static auto* const real = in_the_library<decltype(getaddrinfo)>("getaddrinfo");
  names().pass();
  return real(node, service, hints, found);
}
}

namespace leasehold::testing {

ListsAreLost::ListsAreLost() {
  lists_are_lost = true;
}
ListsAreLost::~ListsAreLost() {
  lists_are_lost = false;
}

NextListHangs::NextListHangs() {
  list().shut(true);
  next_list_hangs = true;
}
NextListHangs::~NextListHangs() {
  list().shut(false);
}
void NextListHangs::wait_for_it() {
  list().wait_for_one();
}

NamesHang::NamesHang() {
  names().shut(true);
}
NamesHang::~NamesHang() {
  names().shut(false);
}

ClosingHangs::ClosingHangs() {
  closing().shut(true);
}
ClosingHangs::~ClosingHangs() {
  closing().shut(false);
}
void ClosingHangs::wait_for_one() {
  closing().wait_for_one();
}

}  // namespace leasehold::testing
