// A part whose text has changed must have another version: otherwise a database that has the part
// already keeps the old text. If this fails, raise the version beside the text, then write the new
// numbers here.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "fence_schema.h"
#include "once_schema.h"
#include "outbox_schema.h"
#include "part.h"
#include "serial_schema.h"
#include "sweep_schema.h"

namespace leasehold::postgres {
namespace {

// FNV-1a
std::uint64_t fingerprint(std::string_view text) {
  std::uint64_t hash = 14695981039346656037u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return hash;
}

struct Known {
  int version;
  std::uint64_t text;
  bool operator==(const Known&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Known& known) {
  return out << "{" << known.version << ", " << known.text << "u}";
}

Known known(int version, std::string_view text) {
  return {version, fingerprint(std::string(text) + kPartFunctions)};
}

TEST(Parts, TextThatHasChangedHasAnotherVersion) {
  EXPECT_EQ(known(kFenceVersion, std::string(kFenceSchema) + kSweepSchema),
            (Known{15, 7352623318542861668u}));
  EXPECT_EQ(known(kOnceVersion, kOnceSchema), (Known{6, 7689831628756018634u}));
  EXPECT_EQ(known(kOutboxVersion, kOutboxSchema), (Known{6, 13370574476064639312u}));
  EXPECT_EQ(known(kSerialVersion, kSerialSchema), (Known{5, 14573162451789634492u}));
}

}  // namespace
}  // namespace leasehold::postgres
