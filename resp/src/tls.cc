#include "tls.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <array>

namespace leasehold::resp {
namespace {

std::string openssl_words() {
  std::string words;
  while (const unsigned long code = ERR_get_error()) {
    const char* reason = ERR_reason_error_string(code);
    if (reason == nullptr) continue;
    words += (words.empty() ? "" : "; ") + std::string(reason);
  }
  return words.empty() ? "no reason given" : words;
}

bool is_address(const std::string& name) {
  std::array<unsigned char, sizeof(in6_addr)> bytes;
  return inet_pton(AF_INET, name.c_str(), bytes.data()) == 1 ||
         inet_pton(AF_INET6, name.c_str(), bytes.data()) == 1;
}

}  // namespace

Result<std::unique_ptr<TlsContext>> TlsContext::make(const TlsOptions& options) {
  ERR_clear_error();
  std::unique_ptr<SSL_CTX, FreeTls> context(SSL_CTX_new(TLS_client_method()));
  if (!context) return fail(ErrorCode::internal, "TLS cannot be set up", openssl_words());
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  const bool trusted = options.ca.empty() ? SSL_CTX_set_default_verify_paths(context.get()) == 1
                                          : SSL_CTX_load_verify_locations(
                                                context.get(), options.ca.c_str(), nullptr) == 1;
  if (!trusted) {
    return fail(ErrorCode::invalid, "the TLS file '" + options.ca + "' has no usable certificate",
                openssl_words());
  }
  if (!options.certificate.empty()) {
    if (SSL_CTX_use_certificate_chain_file(context.get(), options.certificate.c_str()) != 1) {
      return fail(ErrorCode::invalid,
                  "the TLS file '" + options.certificate + "' has no usable certificate",
                  openssl_words());
    }
    if (SSL_CTX_use_PrivateKey_file(context.get(), options.key.c_str(), SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_check_private_key(context.get()) != 1) {
      return fail(ErrorCode::invalid,
                  "the TLS file '" + options.key + "' has no usable key for the certificate",
                  openssl_words());
    }
  }
  return std::unique_ptr<TlsContext>(new TlsContext(std::move(context)));
}

Result<std::unique_ptr<TlsSession>> TlsSession::make(const TlsContext& context,
                                                     const std::string& name) {
  ERR_clear_error();
  std::unique_ptr<SSL, FreeTls> ssl(SSL_new(context.get()));
  if (!ssl) return fail(ErrorCode::unavailable, "TLS cannot be set up", openssl_words());
  SSL_set_bio(ssl.get(), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));  // it owns both
  SSL_set_connect_state(ssl.get());
  bool named = false;
  if (is_address(name)) {
    named = X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl.get()), name.c_str()) == 1;
  } else {
    named = SSL_set1_host(ssl.get(), name.c_str()) == 1 &&
            SSL_set_tlsext_host_name(ssl.get(), name.c_str()) == 1;
  }
  if (!named) {
    return fail(ErrorCode::invalid, "'" + name + "' cannot be the name in a certificate",
                openssl_words());
  }
  return std::unique_ptr<TlsSession>(new TlsSession(std::move(ssl)));
}

Error TlsSession::failed(const std::string& doing) {
  std::string words = openssl_words();
  if (const long verdict = SSL_get_verify_result(ssl_.get()); verdict != X509_V_OK) {
    words = X509_verify_cert_error_string(verdict);
  }
  return Error(ErrorCode::unavailable, doing, words);
}

Result<TlsSession::Step> TlsSession::handshake() {
  ERR_clear_error();
  const int done = SSL_do_handshake(ssl_.get());
  if (done == 1) return Step::done;
  if (SSL_get_error(ssl_.get(), done) == SSL_ERROR_WANT_READ) return Step::more;
  return fail(failed("the server refused TLS, or its certificate was refused"));
}

Status TlsSession::encrypt(std::string_view plain) {
  ERR_clear_error();
  if (plain.empty()) return {};
  if (SSL_write(ssl_.get(), plain.data(), static_cast<int>(plain.size())) > 0) return {};
  return fail(failed("TLS failed"));
}

Result<bool> TlsSession::decrypt(std::string& plain) {
  for (;;) {
    std::array<char, 16 * 1024> bytes;
    ERR_clear_error();
    const int got = SSL_read(ssl_.get(), bytes.data(), static_cast<int>(bytes.size()));
    if (got > 0) {
      plain.append(bytes.data(), static_cast<std::size_t>(got));
      continue;
    }
    switch (SSL_get_error(ssl_.get(), got)) {
      case SSL_ERROR_WANT_READ:
        return false;
      case SSL_ERROR_ZERO_RETURN:
        return true;
      default:
        return fail(failed("TLS failed"));
    }
  }
}

void TlsSession::feed(std::string_view from_socket) {
  BIO_write(SSL_get_rbio(ssl_.get()), from_socket.data(), static_cast<int>(from_socket.size()));
}

void TlsSession::take_output(std::string& out) {
  BIO* const to = SSL_get_wbio(ssl_.get());
  const std::size_t waiting = BIO_ctrl_pending(to);
  if (waiting == 0) return;
  const std::size_t at = out.size();
  out.resize(at + waiting);
  const int got = BIO_read(to, out.data() + at, static_cast<int>(waiting));
  out.resize(at + (got > 0 ? static_cast<std::size_t>(got) : 0));
}

}  // namespace leasehold::resp
