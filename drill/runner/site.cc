#include "site.h"

#include <algorithm>

#include "kit/text/shown_word.h"
#include "kit/try.h"
#include "leasehold/client.h"
#include "leasehold/random.h"
#include "leasehold/url.h"

namespace leasehold::drill {
namespace {

using namespace std::chrono_literals;

std::string file_url(const std::string& scheme, const std::string& path) {
  Url url;
  url.scheme = scheme;
  url.path = path;
  return url.redacted();
}

bool is_url(const std::string& text) {
  return text.find(':') != std::string::npos;
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// "postgres" for "postgres-advisory", "postgres://…" and "postgresql://…".
std::string technology_of(const std::string& choice) {
  std::string name = choice.substr(0, choice.find_first_of(":-"));
  if (name == "postgresql") return "postgres";
  if (name == "rediss") return "redis";
  return name;
}

std::string default_fence(const std::string& store) {
  if (is_url(store)) return "sqlite";  // nothing is written to somebody's server unasked
  const std::string technology = technology_of(store);
  return technology == "redlock" ? "redis" : technology;
}

Millis default_ttl(const std::string& store) {
  const std::string technology = technology_of(store);
  if (technology == "etcd") return 1s;
  if (technology == "zookeeper") return 400ms;
  if (technology == "redlock" || store == "postgres-advisory") return 200ms;
  return 100ms;
}

Result<std::string> shown(const std::string& choice) {
  if (!is_url(choice)) return choice;
  const auto url = TRY(Url::parse(choice));
  return url.redacted();
}

Status check_store(const Plan& plan) {
  if (is_url(plan.store) || contains(known_stores(), plan.store)) return {};
  return fail(ErrorCode::invalid, "there is no store '" + kit::shown(plan.store) +
                                      "' for a drill; there are " + listed(known_stores()) +
                                      ", or a URL");
}

Status check_fence(const std::string& fence) {
  if (contains(known_fences(), is_url(fence) ? technology_of(fence) : fence)) return {};
  if (is_url(fence)) {
    return fail(ErrorCode::unsupported, "there is no fence for '" + technology_of(fence) +
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

Result<bool> has_tokens(const std::string& store_url) {
  const auto client = TRY(connect(store_url));
  return client.store().guarantee == Guarantee::correctness;
}

Result<Fencing> fencing_of(const std::string& fence, bool tokens) {
  if (fence == "none") return Fencing::none;
  if (tokens) return Fencing::token;
  const std::string technology = technology_of(fence);
  if (contains({"sqlite", "postgres", "redis"}, technology)) return Fencing::claim;
  return fail(ErrorCode::unsupported, "the store has no tokens, and the fence '" + technology +
                                          "' has no claims to stand in for them; sqlite, "
                                          "postgres and redis have");
}

void place_store(const Plan& plan, const std::string& folder, Site& site) {
  if (is_url(plan.store)) {
    site.store_url = plan.store;
  } else if (plan.store == "sqlite") {
    site.store_url = file_url("sqlite", folder + "/locks.db");
  } else {
    site.servers = start_servers(plan.store, plan.faults);
    site.store_url = site.servers->url();
  }
}

void place_fence(const Plan& plan, const std::string& fence, const std::string& folder,
                 Site& site) {
  const bool same_servers = site.servers && technology_of(plan.store) == technology_of(fence);
  if (is_url(fence)) {
    site.fence_url = fence;
  } else if (fence == "sqlite" || fence == "none") {
    site.fence_url = file_url("sqlite", folder + "/resource.db");
  } else if (fence == "file") {
    site.fence_url = file_url("file", folder + "/files");
  } else if (fence == "http") {
    site.http = std::make_unique<HttpService>(folder);
    site.fence_url = site.http->url();
  } else if (same_servers) {
    site.fence_url = site.store_url;
  } else {
    site.fence_servers = start_servers(fence, {});
    site.fence_url = site.fence_servers->url();
  }
}

}  // namespace

std::optional<std::string> why_impossible(const std::string& store, Fault fault) {
  if (!is_url(store)) return why_not(store, fault);
  if (fault == Fault::pause || fault == Fault::kill_holder) return std::nullopt;
  return "the drill does this only to servers that it has started itself";
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
  std::vector<std::string> names = startable_stores();
  names.insert(names.begin(), "sqlite");
  return names;
}

std::vector<std::string> known_fences() {
  return {"none", "sqlite", "postgres", "redis", "etcd", "zookeeper", "file", "http"};
}

Result<Site> open_site(const Plan& plan, const std::string& folder) {
  const std::string fence = plan.fence.empty() ? default_fence(plan.store) : plan.fence;
  TRY(check_store(plan));
  TRY(check_fence(fence));
  TRY(check_faults(plan));

  Site site;
  auto store_name = TRY(shown(plan.store));
  auto fence_name = TRY(shown(fence));
  site.store_name = std::move(store_name);
  site.fence_name = std::move(fence_name);
  site.ttl = plan.ttl.value_or(default_ttl(plan.store));
  // A store or resource that was there before may know the names of an earlier drill.
  site.lock_prefix = "drill-" + RequestId::random(system_random()).hex().substr(0, 8) + "/";

  place_store(plan, folder, site);
  const auto tokens = TRY(has_tokens(site.store_url));
  const auto fencing = TRY(fencing_of(fence, tokens));
  site.fencing = fencing;
  place_fence(plan, fence, folder, site);
  return site;
}

}  // namespace leasehold::drill
