// What the hosts of the URL say to a plain question.
#pragma once

#include <functional>
#include <string>

namespace leasehold::zookeeper {

struct HostStates {
  std::string words;        // what each host did
  bool all_refuse = false;  // nobody listens at any address of any host
};

// Takes up to ten seconds to look a name up, and half a second for each address.
HostStates states_of(const std::string& hosts, const std::function<bool()>& enough = {});

}  // namespace leasehold::zookeeper
