// What a scripted server says to be taken for PostgreSQL.
#pragma once

#include <arpa/inet.h>

#include "testing/scripted_server.h"

namespace leasehold::testing::wire {

// PostgreSQL's protocol: a type, the length of the rest, the rest.
inline std::string number(std::uint32_t value) {
  value = htonl(value);
  return {reinterpret_cast<const char*>(&value), sizeof value};
}
inline std::string message(char type, const std::string& body) {
  return type + number(static_cast<std::uint32_t>(body.size() + 4)) + body;
}
inline std::string with_zero(std::string text) {
  return text += '\0';
}
inline std::string setting(const std::string& name, const std::string& value) {
  return message('S', with_zero(name) + with_zero(value));
}

// A message's body, or nothing when the client has left.
inline std::string read_body(int fd) {
  std::uint32_t size = 0;
  if (recv(fd, &size, sizeof size, MSG_WAITALL) != sizeof size) return "";
  std::string body(ntohl(size) - sizeof size, '\0');
  return recv(fd, body.data(), body.size(), MSG_WAITALL) < 0 ? "" : body;
}

inline std::string ready() {
  return message('Z', "I");
}
inline std::string one_value(const std::string& value) {
  const std::string one("\0\1", 2);
  const std::string zero(2, '\0');
  const std::string text = number(25) + std::string(2, '\xff') + number(0xffffffff) + zero;
  return message('T', one + with_zero("value") + number(0) + zero + text) +
         message('D', one + number(static_cast<std::uint32_t>(value.size())) + value) +
         message('C', with_zero("SELECT 1")) + ready();
}
inline std::string syntax_error() {
  return message('E', with_zero("SERROR") + with_zero("VERROR") + with_zero("C42601") +
                          with_zero("Msyntax error") + with_zero("")) +
         ready();
}

// Introduces itself as PostgreSQL of that version, says that it can be written to, and refuses
// everything else.
inline void be_postgres(int fd, const std::string& version) {
  read_body(fd);  // who the client is
  say(fd, message('R', number(0)) + setting("server_version", version) +
              setting("client_encoding", "UTF8") + message('K', number(1) + number(2)) + ready());
  char type = 0;
  while (recv(fd, &type, 1, 0) == 1) {
    const std::string body = read_body(fd);
    if (body.starts_with("SHOW transaction_read_only")) {
      say(fd, one_value("off"));
    } else if (body.find("SELECT pg_is_in_recovery()") != std::string::npos) {
      say(fd, one_value("f"));
    } else if (type == 'Q' || type == 'S') {
      say(fd, syntax_error());
    }
  }
}

}  // namespace leasehold::testing::wire
