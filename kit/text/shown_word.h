// Words from outside that may be addresses, as they may stand in a message.
#pragma once

#include <string>
#include <string_view>

namespace leasehold::kit {

// Where a word begins that names a secret, as in "PGPASSWORD=x" or "auth=x"; npos: nowhere.
std::size_t secret_word_in(std::string_view text);

// Without the password of a URL. What only looks like a URL is cut off where one could be.
std::string shown(const std::string& word);

// A whole message, for its last way out: whatever stands between the colon and the '@' of an
// address in it, up to the next space, is a password, and shown as ***.
std::string without_passwords(std::string_view message);

}  // namespace leasehold::kit
