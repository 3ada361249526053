#include "leasehold/http/adapter.h"

namespace leasehold::http {

std::vector<Adapter> adapters() {
  return {};
}

}  // namespace leasehold::http
