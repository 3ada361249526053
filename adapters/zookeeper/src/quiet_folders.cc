#include "quiet_folders.h"

#include <utility>

namespace leasehold::zookeeper {

QuietFolders::Plan QuietFolders::plan(const Session* session, const std::string& folder) const {
  const auto found = folders_.find(folder);
  if (found == folders_.end()) return Plan::list;
  const Known& known = found->second;
  if (known.session != session || !known.node || !known.is_gone) return Plan::list;
  if (known.is_watched) return known.was_followed ? Plan::go_by_number : Plan::list;
  const bool may_watch = known.is_counted || watches_ < kMostWatches;
  return may_watch ? Plan::watch_and_list : Plan::list;
}

QuietFolders::Known* QuietFolders::find(const Session* session, const std::string& folder) {
  const auto found = folders_.find(folder);
  if (found == folders_.end() || found->second.session != session) return nullptr;
  return &found->second;
}

// It may be another folder of that name than what was listed before: the next list tells.
void QuietFolders::watched(const Session* session, const std::string& folder) {
  if (Known* known = find(session, folder)) {
    if (!std::exchange(known->is_counted, true)) ++watches_;
    known->is_watched = true;
    known->was_followed = false;
  }
}

bool QuietFolders::is_alone(const Session* session, const std::string& folder,
                            std::int64_t number) {
  Known* known = find(session, folder);
  const bool follows = known != nullptr && known->is_watched && known->was_followed &&
                       known->is_gone && known->node && number == *known->node + 1;
  if (!follows) return false;
  known->node = number;
  known->is_gone = false;
  return true;
}

void QuietFolders::found_alone(const Session* session, const std::string& folder,
                               std::int64_t number) {
  if (Known* known = find(session, folder)) {
    if (known->node == number && !known->is_gone) return;
    known->was_followed = known->is_gone && known->node && number == *known->node + 1;
    known->node = number;
    known->is_gone = false;
    return;
  }
  const auto found = folders_.find(folder);
  const bool is_anothers = found != folders_.end() && found->second.is_counted;
  if (is_anothers) return;
  if (found == folders_.end()) make_room();
  folders_.insert_or_assign(folder, Known{.session = session, .node = number});
}

void QuietFolders::make_room() {
  if (folders_.size() < kMostFolders) return;
  std::erase_if(folders_, [](const auto& it) { return !it.second.is_counted; });
}

void QuietFolders::found_others(const std::string& folder) {
  const auto found = folders_.find(folder);
  if (found != folders_.end()) found->second.forget_node();
}

void QuietFolders::gone(const Session* session, const std::string& folder, std::int64_t number) {
  Known* known = find(session, folder);
  if (known != nullptr && known->node == number) known->is_gone = true;
}

void QuietFolders::touched(const Session* session, const std::string& folder) {
  const Known* known = find(session, folder);
  if (known == nullptr) return;
  if (known->is_counted) --watches_;
  folders_.erase(folder);
}

void QuietFolders::broken(const Session* session) {
  for (auto& [folder, known] : folders_) {
    if (known.session != session) continue;
    known.forget_node();
    known.is_watched = false;
  }
}

void QuietFolders::over(const Session* session) {
  std::erase_if(folders_, [&](const auto& it) {
    const Known& known = it.second;
    if (known.session != session) return false;
    if (known.is_counted) --watches_;
    return true;
  });
}

}  // namespace leasehold::zookeeper
