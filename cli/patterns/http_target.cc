#include "cli/patterns/http_target.h"

#include <algorithm>
#include <array>

#include "cli/patterns/delivery_process.h"
#include "kit/try.h"
#include "leasehold/name.h"

namespace leasehold::cli {
namespace {

constexpr std::array<std::string_view, 6> kNotNowCodes = {"408", "425", "429", "502", "503", "504"};

// The part between the scheme and the path.
std::string authority_of(const std::string& url) {
  const std::size_t begin = url.find("://") + 3;
  return url.substr(begin, url.find_first_of("/?#", begin) - begin);
}

Status judged(const std::string& code) {
  if (code.size() == 3 && code.front() == '2') return {};
  const bool not_now =
      std::find(kNotNowCodes.begin(), kNotNowCodes.end(), code) != kNotNowCodes.end();
  return fail(not_now ? ErrorCode::unavailable : ErrorCode::invalid,
              "the receiver answered with status " + code);
}

bool survives_a_header(std::string_view text) {
  return !text.empty() && text.front() != ' ' && text.back() != ' ';
}

}  // namespace

bool is_http_url(const std::string& url) {
  return url.starts_with("http://") || url.starts_with("https://");
}

Result<std::unique_ptr<OutboxTarget>> HttpTarget::open(const std::string& url,
                                                       const std::string& content_type,
                                                       const Signals& signals) {
  TRY(leasehold::detail::check_name("--content-type", content_type));
  const std::string authority = authority_of(url);
  if (authority.empty()) return fail(ErrorCode::invalid, "--to: the URL has no host");
  if (authority.find('@') != std::string::npos) {
    return fail(ErrorCode::invalid,
                "--to: an http URL must not have a user or password, which other users could read "
                "in the list of processes; give them to curl yourself, with --command");
  }
  return std::make_unique<HttpTarget>(url, content_type, signals);
}

Status HttpTarget::deliver(const OutboxMessage& message, const Delivery& delivery) {
  for (const std::string* text : {&message.idempotency_key, &message.key, &message.topic}) {
    if (!survives_a_header(*text)) {
      return fail(ErrorCode::invalid, "'" + *text +
                                          "' begins or ends with a blank, which a header of HTTP "
                                          "does not keep");
    }
  }
  const Token& token = delivery.token;
  process::Command command{.argv = {"curl", "--disable", "--silent", "--show-error", "--globoff",
                                    "--request", "POST", "--data-binary", "@-", "--output",
                                    "/dev/null", "--write-out", "%{http_code}"}};
  for (const std::string& header :
       {"Content-Type: " + content_type_, "Idempotency-Key: " + message.idempotency_key,
        "Leasehold-Outbox-Id: " + std::to_string(message.id),
        "Leasehold-Outbox-Key: " + message.key, "Leasehold-Outbox-Topic: " + message.topic,
        "Leasehold-Token: " + std::to_string(token.number.value()),
        "Leasehold-Lineage: " + token.lineage.str(), "Leasehold-Request: " + token.request.hex(),
        std::string("Expect:")}) {
    command.argv.insert(command.argv.end(), {"--header", header});
  }
  command.argv.insert(command.argv.end(), {"--url", url_});
  command.out = process::Piped{};
  auto end = TRY(run_delivery(std::move(command), message.payload, delivery.context, signals_));
  if (end.status.success()) return judged(end.out);
  return fail(ErrorCode::unavailable, "no answer: curl " + end.status.describe());
}

}  // namespace leasehold::cli
