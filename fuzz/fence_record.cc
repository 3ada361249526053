// Marks as resources keep them: the record, with and without the lines of a file, and the columns
// of a table.
//
// Rules: a record that is accepted reads the same when it is written out again. Whatever it says,
// the fence lets in no token below it, nobody else's equal token and no other lineage.
#include <optional>
#include <string>
#include <variant>

#include "adapters/files/src/record.h"
#include "fence/record.h"
#include "fence/rule.h"
#include "fence/stored_mark.h"
#include "fuzz/fuzz.h"

namespace leasehold::fuzz {
namespace {

constexpr std::int64_t kMost = INT64_MAX;

const ResourceName& resource() {
  static const ResourceName name = ResourceName::parse("resource").value();
  return name;
}

RequestId request_of(std::uint8_t byte) {
  RequestId::Bytes bytes;
  bytes.fill(byte);
  return RequestId(bytes);
}

Lineage some_lineage() {
  return Lineage::parse(std::string(32, '7') + "/other").value();
}

void check_admission(const fence::Mark& mark) {
  const Lineage lineage = mark.lineage.value_or(some_lineage());
  const auto admits = [&](std::int64_t number, const Lineage& from, const RequestId& request) {
    const Token token{TokenNumber::of(number).value(), from, request};
    const auto verdict = fence::judge(mark, {.token = token});
    const auto* enter = std::get_if<fence::Enter>(&verdict);
    if (enter == nullptr) return false;
    must(enter->next.threshold() == number, "entering raises the mark");
    const auto again = fence::read_record(resource(), fence::to_text(enter->next), "");
    must(again && again->mark == enter->next, "the new record is read as it was written");
    return true;
  };
  const auto lets_read = [&](std::int64_t number) {
    const Token token{TokenNumber::of(number).value(), lineage, request_of(4)};
    const auto verdict = fence::judge(mark, {.token = token, .access = Access::read});
    const auto* enter = std::get_if<fence::Enter>(&verdict);
    if (enter == nullptr) return false;
    must(enter->next.threshold() >= number, "no token below a reader may write");
    must(enter->next.holder == mark.holder, "whoever reads leaves the last write as it is");
    return true;
  };
  if (mark.holder && mark.holder->number.value() > 1) {
    must(!lets_read(mark.holder->number.value() - 1), "no reader below a writer enters");
  }
  const std::int64_t threshold = mark.threshold();
  if (threshold < kMost) must(lets_read(threshold + 1), "a reader above all enters");
  const bool held = mark.holder && mark.holder->number.value() == threshold;
  const RequestId holder = held ? mark.holder->request : request_of(3);
  const RequestId stranger = holder == request_of(1) ? request_of(2) : request_of(1);
  if (threshold > 1)
    must(!admits(threshold - 1, lineage, holder), "no token below the mark enters");
  if (threshold < kMost) must(admits(threshold + 1, lineage, stranger), "a higher token enters");
  if (held) must(!admits(threshold, lineage, stranger), "nobody else's equal token enters");
  if (mark.lineage && *mark.lineage != some_lineage()) {
    must(!admits(kMost, some_lineage(), stranger), "no token of another lineage enters");
  }
}

void check_record(std::string_view text) {
  const auto record = fence::read_record(resource(), text, "");
  if (!record) return must(is_printable(record.error().message), "damage is told in one line");
  const auto again = fence::read_record(resource(), fence::to_text(record->mark), "");
  must(again && again->mark == record->mark, "a record is read as it was written");
  (void)record->mark.shown(resource(), 0);
  check_admission(record->mark);
}

void check_file_record(std::string_view text) {
  const auto record = files::record_from(resource(), text, "");
  if (!record) return;
  must(files::record_from(resource(), files::to_text(*record), "") == *record,
       "a record is read as it was written");
  check_admission(record->mark);
}

std::optional<std::string_view> column(std::string_view& rest) {
  const std::string_view text = take_until(rest, '\n');
  return text == "NULL" ? std::nullopt : std::optional(text);
}

// One column a line: resource, lineage, token, request, claim.
void check_columns(std::string_view rest) {
  fence::StoredMark stored;
  stored.resource = take_until(rest, '\n');
  stored.lineage = column(rest);
  if (const auto token = column(rest)) {
    stored.token = std::atoll(std::string(*token).c_str());
  }
  stored.request = column(rest);
  stored.claim = column(rest);
  const auto mark = fence::read(stored);
  if (!mark) {
    return must(is_printable(mark.error().message), "damage is told in one line");
  }
  must(mark->resource.str() == stored.resource, "a mark is of its resource");
  must(!stored.lineage || mark->lineage, "a mark that has a lineage keeps it");
  must(!mark->mark || (stored.token && mark->mark->number.value() == *stored.token),
       "a token stays as it is");
}

}  // namespace
}  // namespace leasehold::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace leasehold::fuzz;
  const std::string_view text = text_of(data, size);
  check_record(text);
  check_file_record(text);
  check_columns(text);
  return 0;
}
