// TLS as a change of bytes: what the socket gives goes in, what it must send comes out.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <string>
#include <string_view>

#include "leasehold/error.h"
#include "leasehold/tls_options.h"

namespace leasehold::resp {

struct FreeTls {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  void operator()(SSL* ssl) const { SSL_free(ssl); }
};

// Read once, used by every connection. Thread safe.
class TlsContext {
 public:
  // `invalid`, with OpenSSL's words.
  [[nodiscard]] static Result<std::unique_ptr<TlsContext>> make(const TlsOptions& options);
  SSL_CTX* get() const { return context_.get(); }

 private:
  explicit TlsContext(std::unique_ptr<SSL_CTX, FreeTls> context) : context_(std::move(context)) {}
  std::unique_ptr<SSL_CTX, FreeTls> context_;
};

// One connection's. Not thread safe; does no I/O.
class TlsSession {
 public:
  // `name`: what the certificate must be for, a host name or an IP address.
  [[nodiscard]] static Result<std::unique_ptr<TlsSession>> make(const TlsContext& context,
                                                                const std::string& name);

  enum class Step { done, more };  // more: bytes of the other side are needed
  // Each fails with `unavailable` and OpenSSL's words. Look into take_output() after each.
  [[nodiscard]] Result<Step> handshake();
  [[nodiscard]] Status encrypt(std::string_view plain);
  // Appends what is readable to `plain`; true at the orderly end of the stream.
  [[nodiscard]] Result<bool> decrypt(std::string& plain);

  void feed(std::string_view from_socket);
  // Appends what must be sent to `out`.
  void take_output(std::string& out);

 private:
  explicit TlsSession(std::unique_ptr<SSL, FreeTls> ssl) : ssl_(std::move(ssl)) {}
  Error failed(const std::string& doing);
  std::unique_ptr<SSL, FreeTls> ssl_;
};

}  // namespace leasehold::resp
