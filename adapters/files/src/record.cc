#include "record.h"

#include <optional>
#include <utility>

#include "fence/record.h"
#include "fence/refusal.h"
#include "kit/text/number.h"
#include "kit/try.h"

namespace leasehold::files {
namespace {

bool is_version_name(std::string_view text) {
  return text.size() == 32 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

std::string to_text(const Record& record) {
  fence::Lines own = {{"refused", std::to_string(record.refused)}};
  if (!record.previous.empty()) own.emplace("previous", record.previous);
  return fence::to_text(record.mark, own);
}

Result<Record> record_from(const ResourceName& resource, std::string_view text,
                           std::string_view remove) {
  auto read = TRY(fence::read_record(resource, text, remove, {"refused", "previous"}));
  const auto refused = kit::digits_in<std::int64_t>(read.own["refused"]);
  const std::string& previous = read.own["previous"];
  if (!refused || !(previous.empty() || is_version_name(previous))) {
    return fail(fence::damaged_mark(resource));
  }
  return Record{std::move(read.mark), *refused, previous};
}

}  // namespace leasehold::files
