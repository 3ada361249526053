#include "own_process.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>

namespace leasehold::detail {
namespace {

constexpr std::size_t kSize = 1;  // the kernel makes a page of it

unsigned char* make_mark() {
  void* page =
      mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, /*fd=*/-1, 0);
  if (page == MAP_FAILED) return nullptr;
  // Some emulators answer every advice with "done": one that there cannot be finds them out.
  const bool believable = madvise(page, kSize, /*advice=*/-1) != 0;
  if (!believable || madvise(page, kSize, MADV_WIPEONFORK) != 0) {
    munmap(page, kSize);
    return nullptr;
  }
  auto* mark = static_cast<unsigned char*>(page);
  *mark = 1;
  return mark;
}

}  // namespace

OwnProcess::OwnProcess() : id_(getpid()), mark_(make_mark()) {}

OwnProcess::~OwnProcess() {
  if (mark_ != nullptr) munmap(mark_, kSize);
}

bool OwnProcess::is_forked_child() const {
  return mark_ != nullptr ? *mark_ == 0 : getpid() != id_;
}

}  // namespace leasehold::detail
