// The lock store on a SQLite file: many threads and many processes of one machine.
#pragma once

#include <memory>

#include "leasehold/registry.h"
#include "leasehold/url.h"
#include "lock_table.h"

namespace leasehold::sqlite {

// Of every SQLite store.
StoreTraits traits_of(const std::string& path);

// `unavailable` or `unsupported`, with the path and SQLite's own words.
[[nodiscard]] Result<std::unique_ptr<Store>> open_table(LockTable::Options options,
                                                        const CallContext& context);

// The default for the program: "sqlite:PATH", no options.
[[nodiscard]] Result<std::unique_ptr<Store>> open_store(const Url& url, const OpenOptions& opening);

}  // namespace leasehold::sqlite
