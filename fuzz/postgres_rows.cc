// Rows that PostgreSQL answers: tables that others can write into, and arrays as text.
//
// Rules: whatever the columns say, the status of a lock has a usable name, printable labels and
// times that are not negative. An array that we write is read by PostgreSQL's rules as it was.
#include <optional>
#include <string>
#include <vector>

#include "adapters/postgres/src/array.h"
#include "adapters/postgres/src/connection.h"
#include "adapters/postgres/src/status_rows.h"
#include "fuzz/fuzz.h"

namespace leasehold::fuzz {
namespace {

constexpr int kColumns = 15;

// One row a line, one column up to a tab; "\N" for NULL.
postgres::Rows rows_of(std::string_view rest) {
  PGresult* const result = PQmakeEmptyPGresult(nullptr, PGRES_TUPLES_OK);
  std::vector<PGresAttDesc> columns(kColumns);
  std::string name = "column";
  for (PGresAttDesc& column : columns) column.name = name.data();
  PQsetResultAttrs(result, kColumns, columns.data());
  for (int row = 0; !rest.empty(); ++row) {
    std::string_view line = take_until(rest, '\n');
    for (int column = 0; column < kColumns; ++column) {
      std::string text(take_until(line, '\t'));
      const bool null = text == "\\N";
      PQsetvalue(result, row, column, null ? nullptr : text.data(),
                 null ? -1 : static_cast<int>(text.size()));
    }
  }
  return postgres::Rows(result);
}

void check_status(std::string_view text) {
  const auto locks = postgres::read_status(rows_of(text));
  if (!locks) return must(is_printable(locks.error().message), "damage is told in one line");
  for (const LockStatus& lock : *locks) {
    for (const LockStatus::Holder& holder : lock.holders) {
      must(is_printable(holder.owner), "a label can be printed");
      must(is_printable(holder.note), "a note can be printed");
      must(holder.held_for >= Millis(0), "nobody holds since the future");
      must(holder.remaining >= Millis(0), "no lease has less than nothing left");
    }
    for (const WaiterStatus& waiter : lock.waiters) {
      must(is_printable(waiter.owner), "a label can be printed");
    }
  }
}

// PostgreSQL's manual, 8.15.6: elements in double quotes, with a backslash before both.
std::optional<std::vector<std::string>> read_array(std::string_view text) {
  std::vector<std::string> elements;
  if (!text.starts_with('{') || !text.ends_with('}')) return std::nullopt;
  text = text.substr(1, text.size() - 2);
  while (!text.empty()) {
    if (!elements.empty() && take_until(text, ',') != "") return std::nullopt;
    if (!text.starts_with('"')) return std::nullopt;
    std::string element;
    std::size_t at = 1;
    for (; at < text.size() && text[at] != '"'; ++at) {
      if (text[at] == '\\') ++at;
      if (at < text.size()) element += text[at];
    }
    if (at >= text.size()) return std::nullopt;
    text.remove_prefix(at + 1);
    elements.push_back(std::move(element));
  }
  return elements;
}

void check_array(std::string_view rest) {
  if (rest.find('\0') != std::string_view::npos) return;  // no text in PostgreSQL has one
  postgres::TextArray array;
  std::vector<std::string> elements;
  while (!rest.empty()) {
    elements.emplace_back(take_until(rest, '\n'));
    array.add(elements.back());
  }
  must(read_array(array.c_str()) == elements, "an array is read as it was written");
}

}  // namespace
}  // namespace leasehold::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace leasehold;
  const std::string_view text = fuzz::text_of(data, size);
  fuzz::check_status(text);
  fuzz::check_array(text);
  fuzz::must(postgres::read_flags(text).size() <= text.size(), "no flag is invented");
  fuzz::must(postgres::one_line(text).find_first_of("\n\t") == std::string::npos,
             "the server's words are one line");
  return 0;
}
