#include "lost_replies.h"

#define THREADED
#include <dlfcn.h>
#include <zookeeper/zookeeper.h>

#include <atomic>

namespace {

std::atomic<bool> lists_are_lost = false;

}  // namespace

// Found before the library's own function of that name.
extern "C" int zoo_aget_children(zhandle_t* handle, const char* path, int watch,
                                 strings_completion_t completion, const void* data) {
  static const auto in_the_library =
      reinterpret_cast<decltype(&zoo_aget_children)>(dlsym(RTLD_NEXT, "zoo_aget_children"));
  if (lists_are_lost) return ZOK;
  return in_the_library(handle, path, watch, completion, data);
}

namespace leasehold::testing {

ListsAreLost::ListsAreLost() {
  lists_are_lost = true;
}

ListsAreLost::~ListsAreLost() {
  lists_are_lost = false;
}

}  // namespace leasehold::testing
