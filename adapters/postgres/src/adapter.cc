#include "leasehold/postgres/adapter.h"

namespace leasehold::postgres {

std::vector<Adapter> adapters() {
  return {};
}

}  // namespace leasehold::postgres
