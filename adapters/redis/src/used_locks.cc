#include "used_locks.h"

#include <algorithm>
#include <vector>

#include "keys.h"
#include "kit/try.h"
#include "scan.h"

namespace leasehold::redis {
namespace {

using Names = std::set<LockName>;

constexpr std::size_t kAtOnce = 100;

void add_name(Names& names, std::string_view text) {
  if (auto name = LockName::parse(text)) names.insert(std::move(*name));
}

// Those whose key is `begins` and the name.
Status add_names(Names& names, Server& server, const std::string& begins,
                 const CallContext& context) {
  return scan_keys(server, begins, context, [&](const std::vector<std::string>& keys) -> Status {
    for (const std::string& key : keys) {
      add_name(names, std::string_view(key).substr(begins.size()));
    }
    return {};
  });
}

Status add_ours_among(Names& names, Server& server, std::vector<std::string> keys,
                      const CallContext& context) {
  const ScriptCall call{Scripts::all().find_ours, std::move(keys)};
  const auto reply = TRY(server.run(call, context));
  for (const resp::Value& number : reply.items) {
    const auto index = static_cast<std::size_t>(number.integer) - 1;
    if (index < call.keys.size()) add_name(names, call.keys[index]);
  }
  return {};
}

// Those whose key is the name, and has a value of ours.
Status add_ours(Names& names, Server& server, const CallContext& context) {
  return scan_keys(server, "", context, [&](std::vector<std::string> keys) -> Status {
    std::erase_if(keys, [](const std::string& key) { return !LockKeys(key).usable(); });
    for (std::size_t from = 0; from < keys.size(); from += kAtOnce) {
      const auto begin = keys.begin() + static_cast<std::ptrdiff_t>(from);
      const auto end = begin + static_cast<std::ptrdiff_t>(std::min(kAtOnce, keys.size() - from));
      TRY(add_ours_among(names, server, {begin, end}, context));
    }
    return {};
  });
}

}  // namespace

Result<std::set<LockName>> find_used_locks(Server& server, const std::string& prefix,
                                           const CallContext& context) {
  Names names;
  for (const std::string_view kind : {kQueueKeys, kPermitsKeys}) {
    TRY(add_names(names, server, std::string(kind) + prefix, context));
  }
  TRY(prefix.empty() ? add_ours(names, server, context)
                     : add_names(names, server, prefix, context));
  std::erase_if(names, [&](const LockName& it) { return !LockKeys::of(prefix, it).usable(); });
  return names;
}

}  // namespace leasehold::redis
