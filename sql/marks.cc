#include "sql/marks.h"

#include <optional>
#include <string_view>
#include <utility>

#include "fence/stored_mark.h"
#include "kit/try.h"

namespace leasehold::sql {
namespace {

Result<FenceMark> mark_of(const Rows& rows, int row) {
  const auto text = [&](int column) -> std::optional<std::string_view> {
    if (rows.is_null(column, row)) return std::nullopt;
    return rows.text(column, row);
  };
  fence::StoredMark stored{.resource = rows.text(0, row),
                           .lineage = text(1),
                           .token = {},
                           .request = text(3),
                           .refused = rows.number(4, row),
                           .claim = text(5)};
  if (!rows.is_null(2, row)) stored.token = rows.number(2, row);
  if (rows.width() > 7) {
    if (!rows.is_null(6, row)) stored.read_token = rows.number(6, row);
    stored.read_request = text(7);
  }
  return fence::read(stored);
}

}  // namespace

Result<std::vector<FenceMark>> marks_of(const Rows& rows) {
  std::vector<FenceMark> marks;
  for (int row = 0; row < rows.count(); ++row) {
    marks.push_back(TRY(mark_of(rows, row)));
  }
  return marks;
}

}  // namespace leasehold::sql
