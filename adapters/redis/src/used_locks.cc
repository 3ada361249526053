#include "used_locks.h"

#include <algorithm>
#include <vector>

#include "keys.h"
#include "kit/try.h"
#include "scan.h"

namespace leasehold::redis {
namespace {

constexpr std::size_t kAtOnce = 500;

// Adds those whose key is `begins` and the name.
Status add_names(std::set<LockName>& names, Server& server, const std::string& begins,
                 const CallContext& context) {
  const auto keys = TRY(find_keys(server, begins, context));
  for (const std::string& key : keys) {
    if (auto name = LockName::parse(std::string_view(key).substr(begins.size()))) {
      names.insert(std::move(*name));
    }
  }
  return {};
}

}  // namespace

Result<std::set<LockName>> find_used_locks(Server& server, const std::string& prefix,
                                           const CallContext& context) {
  std::set<LockName> names;
  TRY(add_names(names, server, std::string(kTokenKeys) + prefix, context));
  // Those that only other programs ever took. Without a prefix they cannot be told from other data.
  if (!prefix.empty()) TRY(add_names(names, server, prefix, context));
  std::erase_if(names, [&](const LockName& it) { return !LockKeys::of(prefix, it).usable(); });
  const std::vector<LockName> all(names.begin(), names.end());
  std::set<LockName> used;
  for (std::size_t from = 0; from < all.size(); from += kAtOnce) {
    const std::size_t to = std::min(all.size(), from + kAtOnce);
    ScriptCall call{Scripts::all().find_used, {}};
    for (std::size_t i = from; i < to; ++i) {
      const LockKeys keys = LockKeys::of(prefix, all[i]);
      call.keys.push_back(keys.lock);
      call.keys.push_back(keys.queue());
    }
    const auto reply = TRY(server.run(call, context));
    for (const resp::Value& number : reply.items) {
      const std::size_t index = from + static_cast<std::size_t>(number.integer) - 1;
      if (index < to) used.insert(all[index]);
    }
  }
  return used;
}

}  // namespace leasehold::redis
