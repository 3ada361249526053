// How often a program asks for memory. Who links this has every operator new counted.
#pragma once

#include <cstddef>

namespace leasehold::rig {

std::size_t allocations_of_this_thread();

}  // namespace leasehold::rig
