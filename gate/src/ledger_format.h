// How the ledger looks on disk: a header block, then batches of records, each batch on blocks of
// its own and with a checksum. A record holds everything about one resource; the last one counts.
//
// A batch is written only after the one before it is safe on disk. So what was torn by a power cut
// can only be the last batch, and nobody has acted on it. A bad batch with a good one behind it is
// damage, and so is a bad one among those that the header says were safe when the file was made.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "leasehold/error.h"
#include "resource_state.h"

namespace leasehold::gate {

inline constexpr std::size_t kBlockBytes = 512;
inline constexpr std::size_t kMaxBatchBytes = std::size_t{8} << 20;

std::string encode_record(const ResourceName& resource, const ResourceState& state);

// One block. `safe_batches`: so many batches must be whole.
std::string encode_header(std::uint64_t safe_batches);

// `records` filled up to whole blocks.
std::string encode_batch(std::uint64_t number, std::string_view records);

struct LedgerImage {
  ResourceStates states;
  std::uint64_t batches = 0;
};

// Reads a whole file. Fails with `unavailable` if it is damaged or not a ledger.
[[nodiscard]] Result<LedgerImage> decode_ledger(std::string_view file);

}  // namespace leasehold::gate
