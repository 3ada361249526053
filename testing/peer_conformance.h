// What must hold between Leasehold and a client that other people wrote, if both use one lock. Such
// a client plugs in with a small program in its own language and one line:
//
//   INSTANTIATE_TEST_SUITE_P(Redis, PeerConformance, ::testing::Values(PeerCase{"redis_py", meet}),
//                            name_of_peer_case);
//
// The program is called with ADDRESS NAME TTL_MS [KIND], prints `ready`, and then answers each line
// of its input by one line:
//
//   try              one attempt                                                   held | busy
//   take             waits, for a minute at most                                   held | timeout
//   give             releases                                                      free
//   race COUNT FILE  so often: takes, reads the number in FILE, writes one more,   done
//                    gives; nothing but the lock keeps others from the file
//
// At the end of its input it exits, and does not release what it holds. peer.py and peer.js do all
// this around a class of a few lines.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "leasehold/client.h"
#include "leasehold/store.h"
#include "rig/temp_folder.h"
#include "testing/worker.h"

namespace leasehold::testing {

// The program around the class in a file of Python or of Node.js.
std::vector<std::string> python_peer(const std::string& file);
std::vector<std::string> node_peer(const std::string& file);
// For several stores, by one of tooz's own URLs as its address.
std::vector<std::string> tooz_peer();

// A lock that is free, as either side calls it.
struct Meeting {
  std::function<std::unique_ptr<Store>()> open;
  std::string url;  // the same, for a process of its own
  std::string lock;

  std::vector<std::string> program;
  std::string address;
  std::string name;
  std::string kind = {};

  // The shortest that both can do: what a killed holder leaves behind lasts no longer.
  Millis shortest_ttl = std::chrono::seconds(1);
};

struct PeerCase {
  std::string name;
  // Gets a lock name that no other case has.
  std::function<Meeting(const std::string& lock)> meet;
};
inline std::string name_of_peer_case(const ::testing::TestParamInfo<PeerCase>& info) {
  return info.param.name;
}
inline std::ostream& operator<<(std::ostream& out, const PeerCase& it) {
  return out << it.name;
}

class PeerConformance : public ::testing::TestWithParam<PeerCase> {
 protected:
  static constexpr Millis kLong = std::chrono::seconds(30);
  static constexpr Millis kPatience = std::chrono::seconds(60);

  PeerConformance();

  Client client() { return Client(meeting.open()); }
  // Started, and ready.
  Worker peer(Millis ttl = kLong) const;

  Meeting meeting;
  rig::TempFolder folder;
};

}  // namespace leasehold::testing
