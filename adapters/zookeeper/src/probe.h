// What the hosts of the URL say to a plain question.
#pragma once

#include <functional>
#include <string>

namespace leasehold::zookeeper {

struct HostStates {
  std::string words;        // what each host did
  bool all_refuse = false;  // nobody listens at any address of any host
};

// Looks names up, and takes up to half a second for each address besides.
HostStates states_of(const std::string& hosts, const std::function<bool()>& enough = {});

}  // namespace leasehold::zookeeper
