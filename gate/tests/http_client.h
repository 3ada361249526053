// A plain HTTP client for tests: it sends exactly the bytes it is told to.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kit/system/fd.h"
#include "leasehold/token.h"

namespace leasehold::gate {

struct Reply {
  int status = 0;                             // 0: the connection ended first
  std::map<std::string, std::string> fields;  // by lower-case name
  std::string body;
  std::string trailer;
  bool complete = false;  // the body has come to its end
};

using FieldList = std::vector<std::pair<std::string, std::string>>;

// One connection, opened when it is first used and again after it was closed. One thread.
class HttpClient {
 public:
  explicit HttpClient(std::uint16_t port) : port_(port) {}

  // A request with a Host and, if there is a body, its length; then its reply.
  Reply ask(std::string_view method, std::string_view target, const FieldList& fields = {},
            std::string_view body = {});

  void send(std::string_view bytes);  // ignores that the other side has gone
  Reply reply(bool to_head = false);
  // The same, and the connection stays open although the reply says that it ends.
  Reply reply_and_stay(bool to_head = false);
  // The next head alone: an interim reply.
  std::string head();
  // Reads so many bytes and forgets them; false if they do not come.
  bool skip(std::size_t size);
  // True if the other side closes without sending anything more.
  bool ends();
  void close();
  void end_of_sending();
  int fd() const { return fd_.get(); }

 private:
  bool fill();
  std::string take(std::size_t size);
  std::string take_line();
  void read_chunks(Reply& reply);

  std::uint16_t port_;
  kit::Fd fd_;
  std::string in_;
  bool ended_ = false;
};

// The fields of a token; `prefix` as in the gate's options.
FieldList token_fields(const Token& token, const std::string& prefix = "Leasehold");

}  // namespace leasehold::gate
