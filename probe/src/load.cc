#include "leasehold/probe/load.h"

namespace leasehold::probe {

Load::Load(int threads) {
  for (int i = 0; i < threads; ++i) {
    threads_.emplace_back([](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
      }
    });
  }
}

}  // namespace leasehold::probe
