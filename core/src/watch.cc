#include "leasehold/watch.h"

#include "client_core.h"

namespace leasehold {

Watch::Watch(std::shared_ptr<detail::ClientCore> core, std::shared_ptr<detail::Observer> observer)
    : core_(std::move(core)), observer_(std::move(observer)) {}
Watch::Watch(Watch&&) noexcept = default;

Watch& Watch::operator=(Watch&& other) noexcept {
  if (this == &other) return *this;
  end();
  core_ = std::move(other.core_);
  observer_ = std::move(other.observer_);
  return *this;
}

Watch::~Watch() {
  end();
}

void Watch::end() noexcept {
  if (core_ == nullptr || core_->process().is_forked_child()) return;
  core_->unwatch(observer_);
  observer_.reset();
  core_.reset();
}

}  // namespace leasehold
