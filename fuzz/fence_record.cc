// Marks as resources keep them: the record of etcd and ZooKeeper, the record of files, and the
// columns of a table.
//
// Rules: a record that is accepted reads the same when it is written out again. Whatever it says,
// the fence lets in no token below it, nobody else's equal token and no other lineage.
#include <optional>
#include <string>
#include <variant>

#include "adapters/files/src/record.h"
#include "adapters/files/src/rules.h"
#include "fuzz/fuzz.h"
#include "leasehold/detail/fence_record.h"
#include "leasehold/detail/stored_mark.h"

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

// What both kinds of record have in common.
struct Mark {
  std::optional<Lineage> lineage;
  std::optional<RequestId> holder;  // of the token that has entered
  std::int64_t threshold = 0;
};

// `admits` says whether a token may enter.
template <class Admits>
void check_admission(const Mark& mark, Admits admits) {
  const Lineage lineage = mark.lineage.value_or(some_lineage());
  const auto token = [&](std::int64_t number, const RequestId& request) {
    return Token{TokenNumber::of(number).value(), lineage, request};
  };
  const RequestId stranger = mark.holder == request_of(1) ? request_of(2) : request_of(1);
  if (mark.threshold > 1) {
    must(!admits(token(mark.threshold - 1, mark.holder.value_or(stranger))),
         "no token below the mark enters");
  }
  if (mark.threshold < kMost) {
    must(admits(token(mark.threshold + 1, stranger)), "a higher token enters");
  }
  if (mark.holder) {
    must(!admits(token(mark.threshold, stranger)), "nobody else's equal token enters");
    must(admits(token(mark.threshold, *mark.holder)), "the holder enters again");
  }
  if (mark.lineage && *mark.lineage != some_lineage()) {
    must(!admits(Token{TokenNumber::of(kMost).value(), some_lineage(), stranger}),
         "no token of another lineage enters");
  }
}

void check_record(std::string_view text) {
  using detail::FenceRecord;
  const auto record = FenceRecord::parse(text);
  if (!record) return;
  must(FenceRecord::parse(record->str()) == record, "a record is read as it was written");
  (void)record->mark(resource(), 0);
  Mark mark{record->lineage, std::nullopt, record->threshold()};
  if (record->entered) mark.holder = record->entered->request;
  check_admission(mark, [&](const Token& token) {
    const auto verdict = detail::judge(resource(), *record, {.token = token});
    const auto* admitted = std::get_if<detail::FenceAdmitted>(&verdict);
    if (admitted == nullptr) return false;
    must(admitted->record.threshold() == token.number.value(), "entering raises the mark");
    must(FenceRecord::parse(admitted->record.str()) == admitted->record,
         "the new record is read as it was written");
    return true;
  });
}

void check_file_record(std::string_view text) {
  const auto record = files::record_from(text);
  if (!record) return;
  must(files::record_from(files::to_text(*record)) == record, "a record is read as it was written");
  (void)files::to_mark(resource(), *record);
  Mark mark{record->lineage, std::nullopt, record->threshold()};
  if (record->entered) mark.holder = record->entered->request;
  check_admission(mark, [&](const Token& token) {
    const auto verdict = files::judge(resource(), *record, {.token = token});
    const auto* admitted = std::get_if<files::Admitted>(&verdict);
    if (admitted == nullptr) return false;
    must(admitted->record.threshold() == token.number.value(), "entering raises the mark");
    must(files::record_from(files::to_text(admitted->record)) == admitted->record,
         "the new record is read as it was written");
    return true;
  });
}

std::optional<std::string_view> column(std::string_view& rest) {
  const std::string_view text = take_until(rest, '\n');
  return text == "NULL" ? std::nullopt : std::optional(text);
}

// One column a line: resource, lineage, token, request, claim.
void check_columns(std::string_view rest) {
  detail::StoredMark stored;
  stored.resource = take_until(rest, '\n');
  stored.lineage = column(rest);
  if (const auto token = column(rest)) {
    stored.token = std::atoll(std::string(*token).c_str());
  }
  stored.request = column(rest);
  stored.claim = column(rest);
  const auto mark = detail::read(stored);
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
