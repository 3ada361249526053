#include "kit/text/other_version.h"

namespace leasehold::kit {

std::string remedy_for_version(std::int64_t found, std::int64_t known, std::string_view afresh) {
  if (found > known) return "; use a program that is at least as new";
  return "; what a build before the first release wrote is not read: to begin afresh, " +
         std::string(afresh);
}

}  // namespace leasehold::kit
