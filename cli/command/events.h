// Descriptors to wait on: a moment of the boot clock, and a flag that another thread raises.
#pragma once

#include "leasehold/process/io.h"
#include "leasehold/time.h"

namespace leasehold::cli {

class BootTimer {
 public:
  BootTimer();
  int fd() const { return fd_.get(); }  // readable from the moment on
  void set(BootTime moment);
  void clear();

 private:
  process::Fd fd_;
};

class Flag {
 public:
  Flag();
  int fd() const { return fd_.get(); }  // readable once raised
  void raise() const;                   // from any thread
  void clear();

 private:
  process::Fd fd_;
};

}  // namespace leasehold::cli
