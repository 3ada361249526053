// Histories on disk, and the judges that read them.
//
// Rules: a history that is accepted reads the same when it is saved. The first bad line is told
// with its number, in one line. Checker and search come to an end, whatever happened.
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "fuzz/fuzz.h"
#include "kit/system/fd.h"
#include "leasehold/drill/checker.h"
#include "leasehold/drill/history_file.h"
#include "leasehold/drill/try_lock.h"

namespace leasehold::fuzz {
namespace {

using namespace drill;

// A file that is only in memory.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view content)
      : file_(memfd_create("history", MFD_CLOEXEC)),
        path_("/proc/self/fd/" + std::to_string(file_.get())) {
    must(::write(file_.get(), content.data(), content.size()) ==
             static_cast<ssize_t>(content.size()),
         "the input fits into memory");
  }
  const std::string& path() const { return path_; }

 private:
  kit::Fd file_;
  std::string path_;
};

bool same(const History& a, const History& b) {
  if (a.records().size() != b.records().size()) return false;
  for (std::size_t i = 0; i < a.records().size(); ++i) {
    if (describe(a, i) != describe(b, i)) return false;
    const Record& one = a.records()[i];
    const Record& other = b.records()[i];
    if (one.index != other.index || a.request_id(one.request) != b.request_id(other.request) ||
        a.store_id(one.store) != b.store_id(other.store)) {
      return false;
    }
  }
  return true;
}

void check_saved(const History& history) {
  const MemoryFile file("");
  must(save_history(history, file.path(), "boot").has_value(), "a history can be saved");
  if (history.process_count() == 1) return;
  HistoryReader reader;
  must(reader.read(file.path()).has_value(), "a saved history can be read");
  must(same(reader.take(), history), "a history is read as it was saved");
}

void check_judged(History& history) {
  const Report report = check(history);
  must(!to_text(report, history).empty(), "a report has a text");
  for (const Violation& violation : report.violations) {
    for (const std::size_t at : violation.records) {
      must(at < history.records().size(), "a violation names records of the history");
    }
  }
  must(report.liveness.longest_idle >= 0 && report.liveness.longest_after_fault >= 0,
       "no time is negative");
  for (LockRef lock = 1; lock < history.lock_count(); ++lock) {
    const auto verdict = check_try_lock(history, lock, {20, 4, 1000});
    must(verdict.answer == Answer::yes || !verdict.sentence.empty(),
         "what is not yes is explained");
  }
}

}  // namespace
}  // namespace leasehold::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace leasehold::fuzz;
  const MemoryFile file(text_of(data, size));
  HistoryReader reader;
  if (const auto read = reader.read(file.path()); !read) {
    must(read.error().message.starts_with(file.path() + ":"), "a bad line is told with its place");
    return 0;
  }
  History history = reader.take();
  check_saved(history);
  check_judged(history);
  return 0;
}
