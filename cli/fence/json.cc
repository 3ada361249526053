#include "cli/fence/json.h"

#include "cli/command/json.h"

namespace leasehold::cli {
namespace {

Json mark_of(const FenceMark& mark) {
  return {{"resource", mark.resource.str()},
          {"token", mark.mark ? Json(mark.mark->number.value()) : Json(nullptr)},
          {"request", mark.mark ? Json(mark.mark->request.hex()) : Json(nullptr)},
          {"read_by", mark.reader ? Json(mark.reader->number.value()) : Json(nullptr)},
          {"lineage", mark.lineage ? Json(mark.lineage->str()) : Json(nullptr)},
          {"refused", mark.refused},
          {"claim", mark.claim ? Json(mark.claim->hex()) : Json(nullptr)}};
}

}  // namespace

std::string fence_json(const std::vector<FenceMark>& marks, const std::vector<GuardedTable>& tables,
                       const std::vector<FenceFloor>& floors,
                       const std::vector<doctor::MarkAhead>& ahead) {
  Json above = Json::array();
  for (const doctor::MarkAhead& it : ahead) {
    above.push_back({{"resource", it.resource ? Json(it.resource->str()) : Json(nullptr)},
                     {"number", it.number},
                     {"counted_to", it.counted_to}});
  }
  Json list = Json::array();
  for (const FenceMark& mark : marks) list.push_back(mark_of(mark));
  Json guarded = Json::array();
  for (const GuardedTable& table : tables) {
    guarded.push_back(
        {{"table", table.table}, {"resource", table.resource.str()}, {"armed", table.armed}});
  }
  Json swept = Json::array();
  for (const FenceFloor& it : floors) {
    swept.push_back({{"store", it.store.hex()}, {"floor", it.floor}});
  }
  return json_text(
      {{"fences", list}, {"tables", guarded}, {"floors", swept}, {"ahead_of_store", above}});
}

}  // namespace leasehold::cli
