// The gate: a reverse proxy that fences a service which cannot compare tokens itself.
//
// Each request carries its token in fields of its head, and names its resource in the path:
//
//   PUT /accounts/42 HTTP/1.1
//   Leasehold-Token: 34
//   Leasehold-Lineage: 00112233445566778899aabbccddeeff/accounts
//   Leasehold-Request: 0123456789abcdef0123456789abcdef
//
// Rules: a lower token is refused (409); an equal one passes only with the same request id; one of
// another lineage is refused and never compared. The mark is safe on disk before the request is
// forwarded. A higher token waits until every request of a lower one has been answered. If an
// answer never comes, or the gate dies before it, the resource answers 503 until it is cleared.
//
// All writers must go through the gate: what reaches the service another way is not fenced.
// HTTP/1.1 on both sides, no TLS.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "leasehold/error.h"
#include "leasehold/name.h"
#include "leasehold/time.h"

namespace leasehold::gate {

// What to do with GET and HEAD.
enum class SafeMethods {
  enter,      // they enter before they read; they change nothing, so nobody waits for their answer
  as_writes,  // the same, but they are waited for: for services whose GET changes something
  pass,       // they pass without a token, and so does OPTIONS
};

struct GateOptions {
  std::string listen;    // "127.0.0.1:8080", "[::1]:8080"; port 0 is any free one
  std::string upstream;  // "http://127.0.0.1:9000"
  std::string state;     // folder for what must not be forgotten; made if its parent is there

  // Where the resource is named. A pattern of path segments: {resource} takes one, * passes over
  // one, a word stands for itself, and what follows is free.
  std::string resource_path = "/{resource}";
  // If given, a field of the head has the percent-encoded name instead.
  std::optional<std::string> resource_field = {};
  // %2F and %5C in a path are part of a name. Only for services that do the same.
  bool encoded_slashes = false;

  std::string field_prefix = "Leasehold";  // of -Token, -Lineage, -Request, -Sequence and -Entry
  SafeMethods safe_methods = SafeMethods::enter;
  bool add_forwarded = false;  // adds Via and X-Forwarded-For

  // Where GET /-/health is answered, in addition.
  std::optional<std::string> admin = {};
  // A path at the upstream with {resource}. After a missing answer it is asked until it says 200
  // or 204: nothing of what was forwarded to this resource can take effect any more.
  std::optional<std::string> probe = {};

  Millis head_timeout{10'000};    // for the whole head of a request, from its first byte
  Millis idle_timeout{60'000};    // of a client's connection between two requests
  Millis client_timeout{30'000};  // without progress of a body, or below 4 KiB/s on average
  Millis connect_timeout{5'000};  // to the upstream
  Millis answer_timeout{60'000};  // without a byte from the upstream
  Millis pool_timeout{4'000};     // of an idle connection to the upstream
  Millis drain_timeout{30'000};   // for requests in flight after stop()
  std::size_t max_connections = 4096;
  std::size_t max_resources = 100'000;

  // One line per refusal and per event an operator should know of. Called on the thread of run();
  // must not block or throw.
  std::function<void(std::string_view line)> log = {};

  // How a file is made durable; fdatasync(2) if empty. For tests.
  std::function<int(int fd)> sync = {};
};

class Gate {
 public:
  // Locks and reads the state folder, and listens. Fails with `invalid` for a wrong option,
  // `busy` if another gate uses the folder, `unavailable` if the folder, its ledger or the address
  // cannot be used.
  [[nodiscard]] static Result<std::unique_ptr<Gate>> open(GateOptions options);
  ~Gate();  // run() is not in progress

  // The addresses it listens on, with the real port.
  std::string address() const;
  std::optional<std::string> admin_address() const;
  // Nothing was remembered in the folder.
  bool is_new() const;

  // Serves until stop(), on the calling thread. Fails with `unavailable` if the disk does: then
  // nothing more was forwarded, and what was is remembered as unanswered.
  [[nodiscard]] Status run();

  // Stops accepting, lets requests in flight end for as long as drain_timeout, and ends run().
  // What has no answer then is remembered as unanswered. Thread safe, does not block.
  void stop();

 private:
  class Impl;
  explicit Gate(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// The resources that answer 503 until they are cleared. Asks the gate that runs on this folder, or
// reads the folder. Fails with `unavailable`.
[[nodiscard]] Result<std::vector<ResourceName>> unanswered(const std::string& state);

// Lets requests to the resource pass again. Only when it is certain that nothing which was
// forwarded to it can still take effect. Works with and without a running gate; the change is
// durable. Fails with `invalid` if nothing is unanswered there, else with `unavailable`.
[[nodiscard]] Status clear_unanswered(const std::string& state, const ResourceName& resource);

}  // namespace leasehold::gate
