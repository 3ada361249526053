#include "ledger_format.h"

#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "fence/record.h"
#include "kit/text/number.h"
#include "kit/text/other_version.h"
#include "kit/try.h"

namespace leasehold::gate {
namespace {

constexpr std::string_view kKind = "leasehold gate ledger ";
constexpr std::int64_t kVersion = 2;
constexpr std::string_view kFileMagic = "leasehold gate ledger 2\n";
constexpr std::string_view kAfresh =
    "begin with an empty folder after all holders have stopped, since the gate forgets who has "
    "entered";
constexpr std::string_view kBatchMagic = "LhGateB1";
constexpr std::size_t kBatchHeader = 32;

constexpr std::array<std::uint32_t, 256> make_crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0x82f63b78u : 0u);
    table[i] = value;
  }
  return table;
}

std::uint32_t crc32c(std::string_view bytes) {
  static constexpr auto table = make_crc_table();
  std::uint32_t crc = ~0u;
  for (const char byte : bytes) {
    crc = (crc >> 8) ^ table[(crc ^ static_cast<std::uint8_t>(byte)) & 0xff];
  }
  return ~crc;
}

template <class Number>
void put(std::string& out, Number number) {
  const auto bits = static_cast<std::uint64_t>(number);
  for (std::size_t i = 0; i < sizeof number; ++i) out += static_cast<char>(bits >> (8 * i) & 0xff);
}

void put_text(std::string& out, std::string_view text) {
  put(out, static_cast<std::uint16_t>(text.size()));
  out += text;
}

// Takes values from the front; once something is missing, everything after is too.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  bool ok() const { return ok_; }
  bool empty() const { return rest_.empty(); }

  std::string_view take(std::size_t size) {
    if (rest_.size() < size) {
      ok_ = false;
      rest_ = {};
      return {};
    }
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }
  template <class Number>
  Number number() {
    const std::string_view bytes = take(sizeof(Number));
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      bits |= std::uint64_t{static_cast<std::uint8_t>(bytes[i])} << (8 * i);
    }
    return static_cast<Number>(bits);
  }
  std::string_view text() { return take(number<std::uint16_t>()); }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

bool read_record(Reader& reader, ResourceStates& states) {
  auto resource = ResourceName::parse(reader.text());
  const auto open = reader.number<std::uint8_t>();
  const auto refused = reader.number<std::int64_t>();
  const std::string_view mark = reader.text();
  if (!reader.ok() || !resource || open > 1 || refused < 0) return false;
  auto record = fence::read_record(*resource, mark, kAfresh);
  if (!record) return false;
  states.insert_or_assign(std::move(*resource),
                          ResourceState{std::move(record->mark), refused, open == 1});
  return true;
}

std::size_t in_blocks(std::size_t bytes) {
  return (bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
}

void fill_block(std::string& out) {
  out.resize(in_blocks(out.size()), '\0');
}

std::uint32_t batch_checksum(std::uint64_t number, std::string_view records) {
  std::string all;
  all.reserve(records.size() + 16);
  put(all, number);
  put(all, static_cast<std::uint64_t>(records.size()));
  all += records;
  return crc32c(all);
}

struct Batch {
  std::uint64_t number = 0;
  std::string_view records;
};

// The batch that begins with `bytes`; nothing if it is not whole.
std::optional<Batch> read_batch(std::string_view bytes) {
  Reader reader(bytes);
  if (reader.take(kBatchMagic.size()) != kBatchMagic) return std::nullopt;
  Batch batch{reader.number<std::uint64_t>(), {}};
  const auto length = reader.number<std::uint64_t>();
  const auto checksum = reader.number<std::uint32_t>();
  reader.take(kBatchHeader - kBatchMagic.size() - 20);
  if (length > kMaxBatchBytes) return std::nullopt;
  batch.records = reader.take(static_cast<std::size_t>(length));
  if (!reader.ok() || checksum != batch_checksum(batch.number, batch.records)) return std::nullopt;
  return batch;
}

Error damaged(const std::string& what) {
  return Error(ErrorCode::unavailable,
               "the ledger is damaged: " + what +
                   ". Its marks cannot be trusted; restore it, or begin with an empty folder after "
                   "all holders have stopped");
}

Error not_this_version(std::string_view file) {
  const std::string_view line = file.substr(0, file.substr(0, kBlockBytes).find('\n'));
  const auto version = line.starts_with(kKind)
                           ? kit::digits_in<std::int64_t>(line.substr(kKind.size()))
                           : std::nullopt;
  if (!version) return Error(ErrorCode::unavailable, "the file is not a ledger of the gate");
  return Error(ErrorCode::unavailable, "the ledger has version " + std::to_string(*version) +
                                           ", and this gate works with version " +
                                           std::to_string(kVersion) +
                                           kit::remedy_for_version(*version, kVersion, kAfresh));
}

Result<std::uint64_t> read_header(std::string_view file) {
  Reader reader(file.substr(0, std::min(file.size(), kBlockBytes)));
  if (reader.take(kFileMagic.size()) != kFileMagic) return fail(not_this_version(file));
  const auto batches = reader.number<std::uint64_t>();
  const auto checksum = reader.number<std::uint32_t>();
  if (!reader.ok() || checksum != crc32c(file.substr(0, kFileMagic.size() + 8))) {
    return fail(damaged("its header is wrong"));
  }
  return batches;
}

bool good_batch_behind(std::string_view rest, std::uint64_t number) {
  for (std::size_t at = kBlockBytes; at < rest.size(); at += kBlockBytes) {
    const auto batch = read_batch(rest.substr(at));
    if (batch && batch->number > number) return true;
  }
  return false;
}

}  // namespace

std::string encode_record(const ResourceName& resource, const ResourceState& state) {
  std::string out;
  put_text(out, resource.str());
  put(out, static_cast<std::uint8_t>(state.open ? 1 : 0));
  put(out, state.refused);
  put_text(out, fence::to_text(state.mark));
  return out;
}

std::string encode_header(std::uint64_t safe_batches) {
  std::string out(kFileMagic);
  put(out, safe_batches);
  put(out, crc32c(out));
  fill_block(out);
  return out;
}

std::string encode_batch(std::uint64_t number, std::string_view records) {
  std::string out(kBatchMagic);
  put(out, number);
  put(out, static_cast<std::uint64_t>(records.size()));
  put(out, batch_checksum(number, records));
  out.resize(kBatchHeader, '\0');
  out += records;
  fill_block(out);
  return out;
}

Result<LedgerImage> decode_ledger(std::string_view file) {
  const auto safe = TRY(read_header(file));
  LedgerImage image;
  std::string_view rest = file.substr(std::min(file.size(), kBlockBytes));
  for (;;) {
    const std::uint64_t number = image.batches + 1;
    const auto batch = read_batch(rest);
    if (!batch || batch->number != number) {
      if (batch || number <= safe || good_batch_behind(rest, number)) {
        return fail(damaged("batch " + std::to_string(number) + " is not as it was written"));
      }
      return image;
    }
    Reader records(batch->records);
    while (!records.empty()) {
      if (!read_record(records, image.states)) return fail(damaged("a record makes no sense"));
    }
    image.batches = number;
    rest.remove_prefix(std::min(rest.size(), in_blocks(kBatchHeader + batch->records.size())));
  }
}

}  // namespace leasehold::gate
