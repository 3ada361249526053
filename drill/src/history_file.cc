#include "leasehold/drill/history_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <memory>
#include <stdexcept>

#include "kit/text/number.h"
#include "kit/try.h"

namespace leasehold::drill {
namespace {

constexpr std::string_view kFirstWord = "history";
constexpr std::string_view kVersion = "1";
constexpr std::size_t kColumns = 14;  // of an exclusive record
constexpr std::size_t kColumnsWithMode = 16;
constexpr std::string_view kShared = "shared";
constexpr std::size_t kMaxLine = 4096;  // names have at most 512 bytes
constexpr std::size_t kReadSize = 1 << 20;

bool usable_name(std::string_view name) {
  if (name.empty() || name == "-" || name.size() > 512) return false;
  for (const char c : name) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return false;
  }
  return true;
}

Error system_error(const std::string& path, std::string_view what) {
  return Error(ErrorCode::unavailable, "cannot " + std::string(what) + " '" + path + "'",
               std::strerror(errno));
}

// ---- writing -------------------------------------------------------------------------------

template <class Number>
void put_number(std::string& line, Number number) {
  line += '\t';
  if (number == 0) {
    line += '-';
    return;
  }
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  line.append(digits, end);
}

void put_text(std::string& line, std::string_view text) {
  line += '\t';
  line += text.empty() ? "-" : text;
}

template <class Id>
void put_id(std::string& line, const std::optional<Id>& id) {
  put_text(line, id ? id->hex() : "-");
}

std::string first_line(std::string_view boot, std::string_view process) {
  std::string line(kFirstWord);
  for (const std::string_view part : {kVersion, boot, process}) put_text(line, part);
  return line + "\n";
}

void put_mode(std::string& line, const Record& record) {
  put_text(line, record.is_shared() ? std::string(kShared) : std::to_string(record.mode));
  put_text(line, record.slot == 0 ? "" : std::to_string(record.slot - 1));
}

void put_record(std::string& line, const Record& record, std::uint32_t index,
                std::string_view process, const HistoryWriter::Names& names) {
  line += std::to_string(index);
  put_number(line, record.time);
  put_text(line, process);
  put_text(line, to_string(record.kind));
  put_text(line, to_string(record.operation));
  put_text(line, names.lock);
  put_number(line, record.token);
  put_id(line, names.request);
  put_number(line, record.sequence);
  put_number(line, record.deadline);
  put_number(line, record.value);
  put_number(line, record.base);
  put_id(line, names.store);
  put_number(line, record.epoch);
  if (record.mode != 0) put_mode(line, record);
  line += '\n';
}

// ---- reading -------------------------------------------------------------------------------

// Splits at tabs. Returns how many columns there are, at most one more than fit.
template <std::size_t size>
std::size_t split(std::string_view line, std::array<std::string_view, size>& columns) {
  std::size_t count = 0;
  for (;;) {
    if (count == size) return size + 1;
    const std::size_t tab = line.find('\t');
    columns[count++] = line.substr(0, tab);
    if (tab == std::string_view::npos) return count;
    line.remove_prefix(tab + 1);
  }
}

Error bad_column(std::string_view column, std::string_view given, std::string_view wanted) {
  return Error(ErrorCode::invalid, std::string(column) + " is '" +
                                       std::string(given.substr(0, 40)) + "'; it must be " +
                                       std::string(wanted));
}

// One line's columns, and the first thing that is wrong with them.
class Columns {
 public:
  explicit Columns(std::string_view line) : count_(split(line, columns_)) {}

  std::size_t count() const { return count_; }
  std::string_view operator[](std::size_t at) const { return columns_[at]; }

  template <class Number>
  void number(std::size_t at, std::string_view name, Number& into) {
    const std::string_view text = columns_[at];
    if (text == "-") return;
    const auto value = parsed<Number>(text);
    if (!value) {
      return wrong(
          name, text,
          "- or a whole number from 1 to " + std::to_string(std::numeric_limits<Number>::max()));
    }
    into = *value;
  }

  template <class Enum>
  void word(std::size_t at, std::string_view name, std::optional<Enum> parsed, Enum& into) {
    if (!parsed) return wrong(name, columns_[at], "one of the words in history_file.h");
    into = *parsed;
  }

  template <class Id>
  std::optional<Id> id(std::size_t at, std::string_view name) {
    const std::string_view text = columns_[at];
    if (text == "-") return std::nullopt;
    const auto parsed = Id::from_hex(text);
    if (!parsed) wrong(name, text, "- or 32 hexadecimal digits");
    return parsed;
  }

  void mode(std::size_t at, Record& into) {
    const std::string_view text = columns_[at];
    const auto permits = parsed<std::int64_t>(text);
    if (text != kShared && (!permits || !Mode::permit_of(*permits).check())) {
      return wrong("mode", text, "shared or a number of permits");
    }
    into.set_mode(text == kShared ? Mode::shared() : Mode::permit_of(*permits));
  }

  void slot(std::size_t at, Record& into) {
    const std::string_view text = columns_[at];
    if (text == "-") return;
    const auto number = text == "0" ? std::int64_t{0} : parsed<std::int64_t>(text);
    if (!number || *number >= Mode::kMostPermits || !into.is_permit()) {
      return wrong("slot", text, "- or the number of one of the permits");
    }
    into.set_mode(*Mode::from_code(into.mode), Slot{*number});
  }

  std::string_view name(std::size_t at, std::string_view name) {
    const std::string_view text = columns_[at];
    if (text == "-") return {};
    if (!usable_name(text)) wrong(name, text, "- or 1 to 512 bytes without control characters");
    return text;
  }

  void wrong(std::string_view column, std::string_view given, const std::string& wanted) {
    if (!error_) error_ = bad_column(column, given, wanted);
  }
  const std::optional<Error>& error() const { return error_; }

 private:
  // One spelling for each number.
  template <class Number>
  static std::optional<Number> parsed(std::string_view text) {
    const bool canonical = !text.empty() && text.front() >= '1' && text.front() <= '9';
    return canonical ? kit::number_in<Number>(text) : std::nullopt;
  }

  std::array<std::string_view, kColumnsWithMode> columns_;
  std::size_t count_;
  std::optional<Error> error_;
};

// Calls line(text) for each line until one fails; the failure gets the place in front.
template <class Line>
Status for_each_line(const std::string& path, Line&& line) {
  const kit::Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return fail(system_error(path, "read"));
  std::string rest;
  const auto buffer = std::make_unique_for_overwrite<char[]>(kReadSize);
  std::size_t number = 0;
  const auto at_line = [&](const std::string& what) {
    return fail(ErrorCode::invalid, path + ":" + std::to_string(number) + ": " + what);
  };
  for (;;) {
    const ssize_t got = ::read(file.get(), buffer.get(), kReadSize);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(system_error(path, "read"));
    if (got == 0) break;
    std::string_view fresh(buffer.get(), static_cast<std::size_t>(got));
    for (;;) {
      const std::size_t end = fresh.find('\n');
      const std::size_t length = rest.size() + std::min(end, fresh.size());
      if (length > kMaxLine) {
        ++number;
        return at_line("the line has more than " + std::to_string(kMaxLine) + " bytes");
      }
      if (end == std::string_view::npos) break;
      ++number;
      Status done;
      if (rest.empty()) {
        done = line(fresh.substr(0, end));
      } else {
        rest += fresh.substr(0, end);
        done = line(std::string_view(rest));
        rest.clear();
      }
      if (!done) return at_line(done.error().message);
      fresh.remove_prefix(end + 1);
    }
    rest += fresh;
  }
  ++number;
  if (!rest.empty()) return at_line("the line has no end: its writer was stopped in the middle");
  if (number == 1) return at_line("the file is empty");
  return {};
}

}  // namespace

std::string current_boot() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  if (!std::getline(file, boot) || !usable_name(boot)) return "unknown";
  return boot;
}

Result<HistoryWriter> HistoryWriter::open(const std::string& path, std::string_view process,
                                          std::string_view boot) {
  for (const auto& [field, name] : {std::pair{"process", process}, std::pair{"boot", boot}}) {
    if (!usable_name(name)) {
      return fail(ErrorCode::invalid, "the name of the " + std::string(field) + " is '" +
                                          std::string(name.substr(0, 40)) +
                                          "'; it must be 1 to 512 bytes without control characters "
                                          "and not '-'");
    }
  }
  kit::Fd file(::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666));
  if (!file) return fail(system_error(path, "write"));
  HistoryWriter writer(std::move(file), std::string(process));
  TRY(writer.write_all(first_line(boot, process)));
  return writer;
}

Status HistoryWriter::write_all(std::string_view line) {
  ssize_t written = 0;
  do {
    written = ::write(file_.get(), line.data(), line.size());
  } while (written < 0 && errno == EINTR);
  if (written == static_cast<ssize_t>(line.size())) return {};
  if (written >= 0) errno = ENOSPC;
  return fail(system_error(process_, "write the history of"));
}

Status HistoryWriter::write(const Record& record, const Names& names) {
  line_.clear();
  put_record(line_, record, ++index_, process_, names);
  return write_all(line_);
}

Status save_history(const History& history, const std::string& path, std::string_view boot) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  for (ProcessRef ref = 1; ref < history.process_count(); ++ref) {
    file << first_line(boot, history.process_name(ref));
  }
  std::string line;
  for (const Record& record : history.records()) {
    HistoryWriter::Names names;
    if (record.lock != 0) names.lock = history.lock_name(record.lock);
    if (record.request != 0) names.request = history.request_id(record.request);
    if (record.store != 0) names.store = history.store_id(record.store);
    line.clear();
    put_record(line, record, record.index, history.process_name(record.process), names);
    file << line;
  }
  file.close();
  if (!file) return fail(system_error(path, "write"));
  return {};
}

Status HistoryReader::read(const std::string& path) {
  const auto declare = [this](const Columns& columns) -> Status {
    if (columns.count() != 4) {
      return fail(ErrorCode::invalid, "a line that begins with 'history' must have 4 columns");
    }
    if (columns[1] != kVersion) return fail(bad_column("version", columns[1], kVersion));
    if (!usable_name(columns[2])) return fail(bad_column("boot", columns[2], "a name"));
    if (!usable_name(columns[3])) return fail(bad_column("process", columns[3], "a name"));
    if (boot_.empty()) boot_ = columns[2];
    if (boot_ != columns[2]) {
      return fail(ErrorCode::invalid, "boot is '" + std::string(columns[2]) +
                                          "', but the records before are of boot '" + boot_ +
                                          "': their clocks cannot be compared");
    }
    const ProcessRef process = history_.process(columns[3]);
    next_index_.resize(history_.process_count());
    if (next_index_[process] != 0) {
      return fail(ErrorCode::invalid, "two logs are called '" + std::string(columns[3]) + "'");
    }
    next_index_[process] = 1;
    return {};
  };

  const auto take_record = [this](Columns& columns) -> Status {
    const std::size_t count = columns.count();
    if (count != kColumns && count != kColumnsWithMode) {
      return fail(ErrorCode::invalid,
                  "the line has " +
                      (count > kColumnsWithMode ? "more than 16" : std::to_string(count)) +
                      " columns; a record has 14, or 16 with a mode");
    }
    Record record;
    std::uint32_t index = 0;
    columns.number(0, "index", index);
    columns.number(1, "time", record.time);
    columns.word(3, "kind", parse_kind(columns[3]), record.kind);
    columns.word(4, "operation", parse_operation(columns[4]), record.operation);
    const std::string_view lock = columns.name(5, "lock");
    columns.number(6, "token", record.token);
    const auto request = columns.id<RequestId>(7, "request");
    columns.number(8, "sequence", record.sequence);
    columns.number(9, "deadline", record.deadline);
    columns.number(10, "value", record.value);
    columns.number(11, "base", record.base);
    const auto store = columns.id<StoreId>(12, "store");
    columns.number(13, "epoch", record.epoch);
    if (count == kColumnsWithMode) {
      columns.mode(14, record);
      columns.slot(15, record);
    }
    if (columns.error()) return fail(*columns.error());

    record.process = history_.process(columns[2]);
    if (record.process >= next_index_.size() || next_index_[record.process] == 0) {
      return fail(ErrorCode::invalid, "there is no 'history' line of process '" +
                                          std::string(columns[2].substr(0, 40)) + "' before");
    }
    if (index != next_index_[record.process]) {
      return fail(bad_column("index", columns[0],
                             std::to_string(next_index_[record.process]) + ", the next of '" +
                                 history_.process_name(record.process) + "'"));
    }
    ++next_index_[record.process];
    if (!lock.empty()) record.lock = history_.lock(lock);
    if (request) record.request = history_.request(*request);
    if (store) record.store = history_.store(*store);
    return history_.append(record);
  };

  return for_each_line(path, [&](std::string_view line) -> Status {
    Columns columns(line);
    try {
      return columns[0] == kFirstWord ? declare(columns) : take_record(columns);
    } catch (const std::length_error& full) {
      return fail(ErrorCode::invalid, full.what());
    }
  });
}

History HistoryReader::take() {
  history_.sort();
  boot_.clear();
  next_index_.clear();
  return std::exchange(history_, History());
}

}  // namespace leasehold::drill
