#include "leasehold/resp/value.h"

#include <string_view>

namespace leasehold::resp {
namespace {

const Value& nothing() {
  static const Value null;
  return null;
}

}  // namespace

const Value& Value::at(std::size_t index) const {
  return index < items.size() ? items[index] : nothing();
}

const Value& Value::under(std::string_view key) const {
  for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
    if (items[i].text == key) return items[i + 1];
  }
  return nothing();
}

}  // namespace leasehold::resp
