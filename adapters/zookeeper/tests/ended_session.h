// A session that ends under its client.
#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "proxied_server.h"
#include "testing/raw_store.h"

namespace leasehold::testing {

inline void wait_until(const std::function<bool()>& holds) {
  while (!holds()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // the server has no event for it
  }
}

// What a client shows when it comes back: the number and the password of its session.
class SessionKey {
 public:
  rig::IsRequest listener() {
    return [this](std::string_view bytes) {
      if (bytes.size() >= 40 && number_at(bytes, 0) < 64) bytes.remove_prefix(4);
      const bool connects = bytes.size() >= 40 && bytes.size() < 64 && number_at(bytes, 0) == 0 &&
                            number_at(bytes, 24) == 16;
      if (connects) {
        const std::lock_guard lock(mutex_);
        key_ = std::string(bytes.substr(16, 28));  // id, length of the password, password
      }
      return is_write(bytes);
    };
  }
  std::string key() {
    const std::lock_guard lock(mutex_);
    return key_;
  }

 private:
  std::mutex mutex_;
  std::string key_;
};

inline void append_number(std::string& bytes, std::int32_t number) {
  for (int shift = 24; shift >= 0; shift -= 8) {
    bytes += static_cast<char>(static_cast<std::uint32_t>(number) >> shift);
  }
}

// Takes the session over and ends it, as another process that knows the key could.
inline void end_session(std::uint16_t port, const std::string& key) {
  std::string bytes;
  append_number(bytes, 44);  // length
  append_number(bytes, 0);   // version
  bytes += std::string(8, '\0');
  append_number(bytes, 20'000);
  bytes += key;
  append_number(bytes, 8);
  append_number(bytes, 1);
  append_number(bytes, kCloseSession);
  wait_until([&] { return !rig::converse(port, bytes).empty(); });
}

// Ends the session of the client behind the proxy.
inline void end_session_behind(ProxiedZookeeper& server, SessionKey& key, RawStore& store) {
  const auto is_shown = [&] {
    const std::string seen = key.key();
    return !seen.empty() && seen.substr(0, 8) != std::string(8, '\0');
  };
  // Cut off, it comes back and shows its key; again, if it was just coming back by itself.
  while (!is_shown()) {
    server.proxy().cut();
    const BootTime again = BootClock::now() + std::chrono::seconds(3);
    wait_until([&] { return is_shown() || BootClock::now() >= again; });
  }
  // It is back, and will not take the session over from the one who ends it.
  wait_until([&] { return store.inspect().has_value(); });
  end_session(long_server().port(), key.key());
}

}  // namespace leasehold::testing
