// What every worker does with what it was granted: it enters and reads, tells the drill, waits for
// its word, and writes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "diary.h"
#include "resource.h"
#include "worker.h"

namespace leasehold::drill {

// Not thread safe. `plan` and `diary` outlive it.
class Desk {
 public:
  Desk(const WorkerPlan& plan, Diary& diary)
      : plan_(plan), diary_(diary), value_(plan.first_value) {}

  // Connects to it, unless that has been done. Fails as open_resource().
  [[nodiscard]] Status open(const std::string& resource);

  // Writes deliberately without a look at the lease: whoever is paused after the last look cannot.
  // With the same grant again: the next sequence number. After open(). Fails as the diary.
  [[nodiscard]] Status work(const Grant& grant, Piece piece = {});
  // Only looks, past the fence.
  void look(const Grant& grant);

 private:
  Result<Kind> write(const Grant& grant, Record writing);
  Resource& resource(const Grant& grant) { return *resources_.at(grant.resource()); }

  // How an access ended, for the history. Only a refusal is known not to have been done.
  template <class T>
  static Kind kind_of(const Result<T>& result) {
    if (result) return Kind::ok;
    return result.error().code == ErrorCode::fenced_out ? Kind::fail : Kind::unknown;
  }
  // A connection to the resource that failed once is not used again.
  template <class T>
  void reopen_after(const Result<T>& result, const Grant& grant) {
    if (!result && result.error().code != ErrorCode::fenced_out) {
      resources_.erase(grant.resource());
    }
  }

  const WorkerPlan& plan_;
  Diary& diary_;
  std::uint64_t value_;
  std::map<std::string, std::unique_ptr<Resource>> resources_;
};

}  // namespace leasehold::drill
