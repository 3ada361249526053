// The gate's ledger on disk.
//
// Rules: a file that is accepted says the same when it is written again. Numbers that cannot be are
// damage. A good ledger whose last batch is torn off is still a good ledger.
#include <string>

#include "fuzz/fuzz.h"
#include "gate/src/ledger_format.h"

namespace leasehold::fuzz {
namespace {

using namespace gate;

void check_states(const ResourceStates& states) {
  std::string records;
  for (const auto& [resource, state] : states) {
    must(state.mark.threshold() >= 0 && state.refused >= 0, "no number is negative");
    must(state.mark.threshold() == 0 || state.mark.lineage, "numbers have a lineage");
    records += encode_record(resource, state);
  }
  if (records.size() > kMaxBatchBytes) return;
  const std::string file = encode_header(1) + encode_batch(1, records);
  const auto again = decode_ledger(file);
  must(again && again->batches == 1 && again->states == states, "a ledger is read as written");
}

void check_file(std::string_view file) {
  const auto image = decode_ledger(file);
  if (!image) return must(is_printable(image.error().message), "damage is told in one line");
  check_states(image->states);
}

// The checksum keeps a fuzzer out, so it is made right: `records` in two batches.
void check_records(std::string_view records) {
  if (records.size() > kMaxBatchBytes) return;
  const std::size_t half = records.size() / 2;
  const std::string one = encode_header(0) + encode_batch(1, records);
  check_file(one);
  const std::string two = encode_header(0) + encode_batch(1, records.substr(0, half)) +
                          encode_batch(2, records.substr(half));
  check_file(two);
  const auto whole = decode_ledger(one);
  if (!whole) return;
  const std::string more =
      encode_header(1) + encode_batch(1, records) + encode_batch(2, records).substr(0, 31);
  const auto torn = decode_ledger(more);
  must(torn && torn->states == whole->states && torn->batches == 1,
       "a torn last batch is as if it were not there");
}

}  // namespace
}  // namespace leasehold::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace leasehold::fuzz;
  check_file(text_of(data, size));
  check_records(text_of(data, size));
  return 0;
}
