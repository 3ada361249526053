// The marks of a server, as they are read and adopted.
#pragma once

#include <optional>
#include <vector>

#include "fence_call.h"
#include "leasehold/fence_admin.h"

namespace leasehold::redis {

// Connects, and checks that marks are safe there: see Resources::open.
[[nodiscard]] Result<std::shared_ptr<Server>> open_fenced_server(const Url& url);

[[nodiscard]] Result<std::optional<FenceMark>> read_mark(Server& server,
                                                         const ResourceName& resource,
                                                         const CallContext& context);
// By resource name. There may be many: it takes at most a minute.
[[nodiscard]] Result<std::vector<FenceMark>> read_marks(Server& server);

[[nodiscard]] Status adopt_lineage(Server& server, const ResourceName& resource,
                                   const Lineage& lineage, TokenNumber at_least,
                                   const EnterOptions& options);

// Forgets all but the refusals. `invalid` if there is no such mark.
[[nodiscard]] Status reset_mark(Server& server, const ResourceName& resource,
                                const EnterOptions& options);

}  // namespace leasehold::redis
