// Messages of an outbox as HTTP requests.
#pragma once

#include <string>

#include "cli/command/signals.h"
#include "leasehold/outbox.h"

namespace leasehold::cli {

bool is_http_url(const std::string& url);

// POSTs each message by the program curl(1), which has TLS, proxies and certificates in order. The
// body is the payload; Idempotency-Key, Leasehold-Outbox-Id, -Key and -Topic, Leasehold-Token,
// -Lineage and -Request are headers. 2xx: delivered. No answer, 408, 425, 429, 502, 503, 504: not
// now. Anything else, also a redirection: a failure of the message.
class HttpTarget final : public OutboxTarget {
 public:
  // `invalid` if the URL has a password: other users could read it in the list of processes.
  [[nodiscard]] static Result<std::unique_ptr<OutboxTarget>> open(const std::string& url,
                                                                  const std::string& content_type,
                                                                  const Signals& signals);
  HttpTarget(std::string url, std::string content_type, const Signals& signals)
      : url_(std::move(url)), content_type_(std::move(content_type)), signals_(signals) {}

  Status deliver(const OutboxMessage& message, const Delivery& delivery) override;

 private:
  const std::string url_;
  const std::string content_type_;
  const Signals& signals_;
};

}  // namespace leasehold::cli
