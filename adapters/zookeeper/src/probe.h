// Why nobody answered: what the hosts of the URL say to a plain question.
#pragma once

#include <string>

#include "leasehold/error.h"

namespace leasehold::zookeeper {

// `unavailable`, with what each host did. Takes up to half a second per host.
Error why_no_answer(const std::string& hosts);

}  // namespace leasehold::zookeeper
