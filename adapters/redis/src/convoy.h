// Batches of scripts that follow each other on one connection.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "leasehold/resp/value.h"
#include "script.h"
#include "server.h"

namespace leasehold::redis {

// The next batch is sent while the one before it is not answered yet; the server does them in their
// order. For one thread at a time.
class Convoy : public std::enable_shared_from_this<Convoy> {
 public:
  // Nothing if there is no connection.
  static std::shared_ptr<Convoy> open(Server& server, const CallContext& context);
  Convoy(Server& server, Server::Pool::Loan loan) : server_(server), loan_(std::move(loan)) {}
  ~Convoy();
  Convoy(const Convoy&) = delete;

  // True if nothing can follow: the connection must not be used again.
  bool is_over() const { return is_over_; }

  // A batch that was sent.
  class Sent {
   public:
    Sent(Sent&&) = default;
    ~Sent();

    // What Server::run() would say of each script, in their order, but that NOSCRIPT is a refusal.
    // After those of the batches before it. Lasts as long as the batch, or the one behind it, may.
    [[nodiscard]] Result<resp::Value> reply();
    const Convoy& convoy() const { return *convoy_; }

   private:
    friend class Convoy;
    Sent(std::shared_ptr<Convoy> convoy, CallContext limits, std::size_t outstanding)
        : convoy_(std::move(convoy)),
          limits_(std::move(limits)),
          number_(convoy_->number_),
          outstanding_(outstanding) {}

    std::shared_ptr<Convoy> convoy_;
    CallContext limits_;
    std::uint64_t number_;
    std::size_t outstanding_;
  };
  // Nothing if it is known that nothing was sent.
  [[nodiscard]] std::optional<Sent> send(const CallContext& limits,
                                         std::span<const ScriptCall> scripts, bool in_full);

 private:
  Server& server_;
  Server::Pool::Loan loan_;
  CallContext last_{BootTime::min(), {}};  // of the batch that was sent last
  std::uint64_t number_ = 0;               // of that batch
  std::optional<Error> broken_;            // why nothing can be read any more
  std::optional<Error> cut_short_;         // why not all of the last batch was sent
  bool is_over_ = false;
};

}  // namespace leasehold::redis
