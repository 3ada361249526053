// Locks that only this client has taken lately. The number of its next node tells whether that is
// still so, and then nobody need list the folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

namespace leasehold::zookeeper {

class Session;

// The server numbers the children of a folder as they are made, whoever makes them and whatever
// they are called. If a node was alone in its folder and is gone, and the next node of the same
// session has the next number, then that one is alone, and first. It must be the same folder still:
// a watch tells when it goes, and comes before the reply to whatever is asked of its successor.
// Not thread safe.
class QuietFolders {
 public:
  static constexpr std::size_t kMostFolders = 10'000;
  // The client library sets all of them anew in one request, which may not be long.
  static constexpr std::size_t kMostWatches = 1000;

  // What to do with a node that is about to be made. It holds at that moment only.
  enum class Plan {
    list,
    watch_and_list,  // the folder is taken again: the next time it may go by the number
    go_by_number     // is_alone() will mostly tell
  };
  Plan plan(const Session* session, const std::string& folder) const;
  // The watch stands, by an answer to what was sent after the node was made.
  void watched(const Session* session, const std::string& folder);
  // The node that has just been made has this number. True: it is alone, and that is noted.
  bool is_alone(const Session* session, const std::string& folder, std::int64_t number);

  // A list that was sent after the node was made has nobody else, or somebody.
  void found_alone(const Session* session, const std::string& folder, std::int64_t number);
  void found_others(const std::string& folder);
  void gone(const Session* session, const std::string& folder, std::int64_t number);

  // Its watch is used up.
  void touched(const Session* session, const std::string& folder);
  // The connection: all is found out anew.
  void broken(const Session* session);
  void over(const Session* session);

 private:
  struct Known {
    const Session* session;
    std::optional<std::int64_t> node;  // the last; none: somebody came
    bool is_gone = false;
    bool is_watched = false;
    bool is_counted = false;    // among the watches; the library keeps them over a break
    bool was_followed = false;  // nobody came between it and the one before

    void forget_node() {
      node.reset();
      was_followed = false;
    }
  };
  Known* find(const Session* session, const std::string& folder);
  void make_room();

  std::unordered_map<std::string, Known> folders_;
  std::size_t watches_ = 0;
};

}  // namespace leasehold::zookeeper
