// A process that obeys lines and answers by lines, as a test controls it: lock_worker, or another.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "leasehold/mode.h"
#include "leasehold/process/child.h"
#include "leasehold/time.h"

namespace leasehold::testing {

class Worker {
 public:
  // `under`: a command that runs the worker, such as {"env", "A=b"}.
  static Worker hold(const std::string& url, const std::string& lock, Millis ttl,
                     Millis wait = Millis(0), std::vector<std::string> under = {});
  static Worker hold(const std::string& url, const std::string& lock, Millis ttl, Millis wait,
                     Mode mode);
  static Worker count(const std::string& url, const std::string& lock, const std::string& file,
                      int times);

  // Any other program.
  static Worker start(std::vector<std::string> argv) { return Worker(std::move(argv)); }

  // The next line that it prints; empty if it ended or said nothing for half a minute.
  std::string line();
  void tell(std::string_view order);

  void freeze();  // returns when the process has stopped
  void thaw();
  void kill();
  int wait();  // its shell status

 private:
  explicit Worker(std::vector<std::string> argv);
  process::Child child_;
  std::string unread_;
};

}  // namespace leasehold::testing
