// The outbox of the database file that a URL names.
#pragma once

#include <memory>

#include "leasehold/outbox.h"
#include "leasehold/url.h"
#include "schema.h"

namespace leasehold::sqlite {

const Part& outbox_part();

// Fails as UserFile::open.
[[nodiscard]] Result<std::unique_ptr<Outbox>> open_outbox(const Url& url);

}  // namespace leasehold::sqlite
