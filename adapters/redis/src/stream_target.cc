#include "stream_target.h"

#include "keys.h"
#include "kit/try.h"
#include "leasehold/resp/command.h"
#include "options.h"
#include "server.h"

namespace leasehold::redis {
namespace {

class StreamTarget final : public OutboxTarget {
 public:
  StreamTarget(std::string stream, std::unique_ptr<Server> server)
      : stream_(std::move(stream)), server_(std::move(server)) {}
  ~StreamTarget() override { server_->close(); }

  Status deliver(const OutboxMessage& message, const Delivery& delivery) override {
    const std::string id = std::to_string(message.id);
    const std::string token = std::to_string(delivery.token.number.value());
    std::string command;
    resp::append_command(command, {"XADD", stream_, "*", "id", id, "key", message.key, "topic",
                                   message.topic, "idempotency_key", message.idempotency_key,
                                   "token", token, "payload", message.payload});
    TRY(server_->run(command, delivery.context));
    return {};
  }

 private:
  const std::string stream_;
  const std::unique_ptr<Server> server_;
};

}  // namespace

Result<std::unique_ptr<OutboxTarget>> open_stream(const Url& url) {
  const std::string stream = url.option("stream");
  if (stream.empty() || stream.size() > kMaxNameBytes || stream.starts_with(kOwnKeys)) {
    return fail(ErrorCode::invalid,
                "a redis URL to send messages to names a stream of 1 to 512 bytes, as in "
                "redis://localhost:6379/0?stream=events");
  }
  Url server_url = url;
  server_url.query.erase("stream");
  auto options = TRY(redis_options(server_url));
  auto server = TRY(Server::make(options.servers.front(), 1));
  return std::make_unique<StreamTarget>(stream, std::move(server));
}

}  // namespace leasehold::redis
