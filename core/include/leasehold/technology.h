// What is known of a technology without its code: which URLs it has, what they open and which
// options they take. Help, completion, advice and messages are made from this.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "leasehold/store.h"
#include "leasehold/url.h"

namespace leasehold {

// What a URL may be used for: these two, and whatever else adapters offer (registry.h).
inline constexpr std::string_view kStoreUse = "store";
inline constexpr std::string_view kFenceOffer = "fence";

struct Use {
  std::string what;     // kStoreUse, or a `kOffer`
  std::string example;  // a whole URL
};

struct Scheme {
  std::string name;  // "rediss"
  std::vector<Use> uses;
  std::vector<UrlOption> options = {};
  bool tls = false;      // takes the options of TlsOptions, too
  bool variant = false;  // of the one before it, as rediss is of redis: examples leave it out

  // Nothing if it is not used for that.
  const Use* use(std::string_view what) const;
  // All that it takes, without those for passwords, which every URL takes.
  std::vector<UrlOption> all_options() const;
};

// One value for each folder of adapters/.
struct Technology {
  std::string name;             // of the folder, the namespace and the module
  std::string title;            // for people: "PostgreSQL"
  std::vector<Scheme> schemes;  // the usual one first
  // If it keeps locks: what they are worth at best, whether other machines reach them, and what
  // somebody should know who takes them.
  Guarantee guarantee = Guarantee::efficiency;
  bool one_machine = false;
  std::string beware = {};

  const Scheme* scheme(std::string_view name) const;
  // The usual scheme that has this use; nothing if none has.
  const Use* use(std::string_view what) const;

  // Fails with `invalid` if the URL, which is of one of the schemes, has an option that is not
  // taken for this use.
  [[nodiscard]] Status check_options(const Url& url, std::string_view what) const;
};

}  // namespace leasehold
