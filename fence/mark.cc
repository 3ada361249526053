#include "fence/mark.h"

#include <algorithm>

namespace leasehold::fence {

std::int64_t Mark::threshold() const {
  return std::max({least ? least->value() : 0, floor, holder ? holder->number.value() : 0,
                   reader ? reader->number.value() : 0});
}

bool Mark::is_held_by(const Token& token) const {
  return lineage == token.lineage && holder && holder->number == token.number &&
         holder->request == token.request;
}

FenceMark Mark::shown(const ResourceName& resource, std::int64_t refused) const {
  FenceMark mark{resource, std::nullopt, lineage, refused, std::nullopt};
  if (holder) mark.mark = Token{holder->number, *lineage, holder->request};
  if (reader) mark.reader = Token{reader->number, *lineage, reader->request};
  return mark;
}

}  // namespace leasehold::fence
