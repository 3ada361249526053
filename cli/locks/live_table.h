// The locks that are held, on a terminal, as they change.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "cli/locks/news.h"
#include "leasehold/time.h"

namespace leasehold::cli {

class LiveTable {
 public:
  explicit LiveTable(StoreTraits store) : store_(std::move(store)) {}

  // What was told last is in it from now on. An ending: no lock can ever be seen.
  std::optional<Ending> take(const News::Item& item);

  // Takes the place of what stands on the terminal, once something was told. An ending: nobody
  // reads.
  std::optional<Ending> draw() const;

 private:
  struct Seen {
    LockStatus lock;
    BootTime at;
  };
  std::string heading() const;
  std::string table() const;

  const StoreTraits store_;
  bool told_ = false;
  std::optional<std::string> why_unseen_;
  std::map<std::string, Seen> held_;
};

}  // namespace leasehold::cli
