#pragma once

#include "leasehold/technology.h"

namespace leasehold::files {

inline Technology technology() {
  return {.name = "files",
          .title = "files and folders",
          .schemes = {{.name = "file",
                       .uses = {{"fence", "file:/srv/app/total"}},
                       .options = {{"filesystem",
                                    "local: you vouch for a filesystem that is not known"}}}}};
}

}  // namespace leasehold::files
