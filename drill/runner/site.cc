#include "site.h"

#include "kit/text/shown_word.h"
#include "kit/try.h"
#include "leasehold/client.h"
#include "leasehold/random.h"
#include "leasehold/url.h"

namespace leasehold::drill {
namespace {

using namespace std::chrono_literals;

// Where the number is without a fence, or beside a store that was there before: nothing is written
// to somebody's server unasked.
constexpr const char* kOwnFile = "sqlite";
constexpr const char* kNoFence = "none";

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::string default_fence(const std::string& store) {
  const StorePart* part = is_url(store) ? nullptr : store_part(store);
  return part ? part->fence : kOwnFile;
}

Millis default_ttl(const std::string& store) {
  const StorePart* part = store_part(store);
  return part ? part->shortest_ttl : StorePart().shortest_ttl;
}

Result<std::string> shown(const std::string& choice) {
  if (!is_url(choice)) return choice;
  const auto url = TRY(Url::parse(choice));
  return url.redacted();
}

Status check_store(const Plan& plan) {
  if (is_url(plan.store) || store_part(plan.store)) return {};
  return fail(ErrorCode::invalid, "there is no store '" + kit::shown(plan.store) +
                                      "' for a drill; there are " + listed(known_stores()) +
                                      ", or a URL");
}

Status check_fence(const std::string& fence) {
  if (fence == kNoFence || fence_part(fence)) return {};
  if (is_url(fence)) {
    return fail(ErrorCode::unsupported, "there is no fence for '" +
                                            fence.substr(0, fence.find(':')) +
                                            "' in a drill; there are " + listed(known_fences()));
  }
  return fail(ErrorCode::invalid, "there is no fence '" + kit::shown(fence) +
                                      "' for a drill; there are " + listed(known_fences()) +
                                      ", or a URL");
}

Status check_faults(const Plan& plan) {
  for (const Fault fault : plan.faults) {
    const auto reason = why_impossible(plan.store, fault);
    if (!reason) continue;
    return fail(ErrorCode::unsupported, "the fault '" + std::string(to_string(fault)) +
                                            "' cannot be had on this store: " + *reason);
  }
  return {};
}

Status check_workers(const Plan& plan) {
  const bool share = plan.use == Use::shared || plan.use == Use::permits;
  if (!share || plan.workers >= kLeastToShare) return {};
  const std::string why = plan.use == Use::shared ? "two write and another one reads"
                                                  : "one waits for the permits of the others";
  return fail(ErrorCode::invalid, "a drill of mode '" + std::string(to_string(plan.use)) +
                                      "' needs at least " + std::to_string(kLeastToShare) +
                                      " workers for each lock, as " + why + "; there are " +
                                      std::to_string(plan.workers));
}

Status check_mode(const Plan& plan, const StoreTraits& store) {
  if (plan.use == Use::exclusive || plan.use == Use::election || store.modes) return {};
  return fail(ErrorCode::unsupported, "the mode '" + std::string(to_string(plan.use)) +
                                          "' cannot be had on this store: " + store.why_no_modes);
}

Result<StoreTraits> traits_of(const std::string& store_url) {
  const auto client = TRY(connect(store_url));
  return client.store();
}

Result<Fencing> fencing_of(const std::string& fence, bool tokens) {
  if (fence == kNoFence) return Fencing::none;
  if (tokens) return Fencing::token;
  const FencePart& chosen = *fence_part(fence);
  if (chosen.has_claims) return Fencing::claim;
  std::vector<std::string> others;
  for (const FencePart& it : parts().fences) {
    if (it.has_claims) others.push_back(it.name);
  }
  return fail(ErrorCode::unsupported,
              "the store has no tokens, and the fence '" + chosen.name +
                  "' has no claims to stand in for them; these have: " + listed(others));
}

void place_store(const Plan& plan, const std::string& folder, Site& site) {
  site.store_url = plan.store;
  if (is_url(plan.store)) return;
  site.store = store_part(plan.store)->start(folder, plan.faults);
  site.store_url = site.store->url();
}

void place_fence(const Plan& plan, const std::string& fence, const std::string& folder,
                 Site& site) {
  site.fence_url = fence;
  if (is_url(fence)) return;
  const StorePart* store = site.store ? store_part(plan.store) : nullptr;
  if (store && store->keeps_fence && store->fence == fence) {
    site.fence_url = site.store_url;
    site.failover_note = store->failover_note;
    return;
  }
  site.resource = fence_part(fence == kNoFence ? kOwnFile : fence)->start(folder);
  site.fence_url = site.resource->url();
}

}  // namespace

std::optional<std::string> why_impossible(const std::string& store, Fault fault) {
  if (is_of_holder(fault)) return std::nullopt;
  if (is_url(store)) return "the drill does this only to servers that it has started itself";
  const StorePart* part = store_part(store);
  return part && part->why_not ? part->why_not(fault) : std::nullopt;
}

std::string leave_out_impossible_faults(Plan& plan) {
  std::vector<std::pair<std::string, std::string>> left_out;  // reason, faults
  std::erase_if(plan.faults, [&](Fault fault) {
    const auto reason = why_impossible(plan.store, fault);
    if (!reason) return false;
    if (left_out.empty() || left_out.back().first != *reason) left_out.emplace_back(*reason, "");
    std::string& faults = left_out.back().second;
    faults += (faults.empty() ? "" : ", ") + std::string(to_string(fault));
    return true;
  });
  std::string text;
  for (const auto& [reason, faults] : left_out) {
    text += (text.empty() ? "left out of all faults: " : "; ") + faults + " (" + reason + ")";
  }
  return text;
}

std::vector<std::string> known_stores() {
  std::vector<std::string> names;
  for (const StorePart& it : parts().stores) names.push_back(it.name);
  return names;
}

std::vector<std::string> known_fences() {
  std::vector<std::string> names{kNoFence};
  for (const FencePart& it : parts().fences) names.push_back(it.name);
  return names;
}

Result<Site> open_site(const Plan& plan, const std::string& folder) {
  const std::string fence = plan.fence.empty() ? default_fence(plan.store) : plan.fence;
  TRY(check_store(plan));
  TRY(check_fence(fence));
  TRY(check_faults(plan));
  TRY(check_workers(plan));

  Site site;
  auto store_name = TRY(shown(plan.store));
  auto fence_name = TRY(shown(fence));
  site.store_name = std::move(store_name);
  site.fence_name = std::move(fence_name);
  site.ttl = plan.ttl.value_or(default_ttl(plan.store));
  // A store or resource that was there before may know the names of an earlier drill.
  site.lock_prefix = "drill-" + RequestId::random(system_random()).hex().substr(0, 8) + "/";

  place_store(plan, folder, site);
  const auto traits = TRY(traits_of(site.store_url));
  TRY(check_mode(plan, traits));
  const auto fencing = TRY(fencing_of(fence, traits.guarantee == Guarantee::correctness));
  site.fencing = fencing;
  place_fence(plan, fence, folder, site);
  return site;
}

}  // namespace leasehold::drill
