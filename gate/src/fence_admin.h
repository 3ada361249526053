// The operator's view of a gate's marks.
#pragma once

#include <memory>

#include "leasehold/fence_admin.h"
#include "leasehold/url.h"
#include "state_folder.h"

namespace leasehold::gate {

// The folder that a gate URL names; `invalid`.
[[nodiscard]] Result<StateFolder> state_folder_in(const Url& url);

// `gate:/path/of/the/state/folder`. Fails with `invalid` for a wrong URL. marks() reads the ledger,
// also while a gate writes it; adopt() goes through the gate if one runs.
[[nodiscard]] Result<std::unique_ptr<FenceAdmin>> open_fence_admin(const Url& url);

}  // namespace leasehold::gate
