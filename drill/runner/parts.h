// What each technology brings to a drill: stores that can be started, and resources behind a fence.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chance.h"
#include "leasehold/time.h"
#include "plan.h"
#include "resource.h"

namespace leasehold::drill {

// A store or a resource that the drill has made; its servers go with it. Not thread safe. Calls
// throw std::runtime_error if a server does not do what it should.
class Place {
 public:
  virtual ~Place() = default;

  virtual std::string url() const = 0;  // by which workers reach it

  // A fault that lasts until end(); one at a time. False: it did not happen. Only those that
  // StorePart::why_not does not refuse.
  virtual void begin(Fault fault, Millis ttl, Chance& chance);
  virtual bool end(Fault fault);
};

// A file or a folder: nothing can be done to it.
std::unique_ptr<Place> file_place(const std::string& scheme, const std::string& path);

struct StorePart {
  std::string name;                  // for --store
  std::vector<std::string> schemes;  // of the URLs of such stores
  std::string fence;                 // for --fence, unless another is named
  bool keeps_fence = true;           // and what that guards is on the same servers
  Millis shortest_ttl{100};          // that makes sense
  // `folder` is for files. It can have all of `faults`.
  std::function<std::unique_ptr<Place>(const std::string& folder, const std::vector<Fault>& faults)>
      start;
  // Why a server cannot have the fault, in one sentence; nothing if it can. Empty: all can be had.
  std::function<std::optional<std::string>(Fault)> why_not = {};
  std::string failover_note = {};  // what to know if one happens and the fence is there, too
};

struct FencePart {
  std::string name;                  // for --fence
  std::vector<std::string> schemes;  // of the URLs of such resources
  bool has_claims = false;           // for stores without tokens
  std::function<std::unique_ptr<Place>(const std::string& folder)> start;
  std::function<Result<std::unique_ptr<Resource>>(const ResourceChoice&)> open;
};

struct Parts {
  std::vector<StorePart> stores = {};
  std::vector<FencePart> fences = {};
};

// All of this build.
const Parts& parts();

// By its name, or by the scheme of its URL; nothing if there is none.
const StorePart* store_part(const std::string& name_or_url);
const FencePart* fence_part(const std::string& name_or_url);

// Opens a resource whose client library is heavy: its code is in module "drill_<technology>".
std::function<Result<std::unique_ptr<Resource>>(const ResourceChoice&)> in_drill_module(
    const std::string& technology);

bool is_url(const std::string& name_or_url);

}  // namespace leasehold::drill
