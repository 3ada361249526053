#include "cli/command/store_choice.h"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <system_error>
#include <utility>

#include "cli/command/arguments.h"
#include "cli/command/output.h"
#include "cli/command/url_help.h"
#include "kit/try.h"
#include "leasehold/registry.h"
#include "leasehold/stores.h"
#include "leasehold/url.h"

namespace leasehold::cli {
namespace {

constexpr const char* kVariable = "LEASEHOLD_STORE";

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

Result<std::string> state_folder() {
  std::string folder = environment("XDG_STATE_HOME");
  if (folder.starts_with('/')) return folder;  // the XDG rules: ignore a relative one
  std::string home = environment("HOME");
  if (home.empty()) {
    const passwd* user = getpwuid(getuid());
    if (user && user->pw_dir) home = user->pw_dir;
  }
  const std::string instead =
      "; give a store with --store or LEASEHOLD_STORE, as in sqlite:/var/lib/app/locks.db";
  if (!home.starts_with('/')) {
    return fail(ErrorCode::invalid, "there is no home folder for the default store" + instead);
  }
  // As of many a service's user: a folder made there would be a surprise, and often lost.
  if (access(home.c_str(), F_OK) != 0 && errno == ENOENT) {
    return fail(ErrorCode::invalid,
                "the home folder of the default store, " + home + ", is not there" + instead);
  }
  return home + "/.local/state";
}

// mkdir -p, for this user only.
int make_folders(const std::string& path) {
  struct stat there {};
  if (stat(path.c_str(), &there) == 0) return S_ISDIR(there.st_mode) ? 0 : ENOTDIR;
  const std::size_t slash = path.rfind('/');
  if (slash != 0 && slash != std::string::npos) {
    if (const int error = make_folders(path.substr(0, slash)); error != 0) return error;
  }
  if (mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return 0;
  return errno;
}

Result<std::string> default_folder() {
  auto state = TRY(state_folder());
  return state + "/leasehold";
}

std::string default_file(const std::string& folder) {
  return folder + "/locks.db";
}

Status make_default_folder() {
  const auto folder = TRY(default_folder());
  const int error = make_folders(folder);
  if (error == 0) return {};
  return fail(ErrorCode::unavailable, "cannot create the folder of the default store, " + folder,
              std::generic_category().message(error));
}

std::optional<std::string> named_url(const std::optional<std::string>& given) {
  if (given) return given;
  std::string url = environment(kVariable);
  if (url.empty()) return std::nullopt;
  return url;
}

// "https://me:secret@host/path"
bool has_password(const std::string& text) {
  const std::size_t scheme = text.find("://");
  if (scheme == std::string::npos) return false;
  const std::string place =
      text.substr(scheme + 3, text.find_first_of("/?#", scheme + 3) - scheme - 3);
  const std::size_t user_ends = place.rfind('@');
  return user_ends != std::string::npos && place.find(':') < user_ends;
}

// Also with a slash too few, if it has a user; "redis:cache" is a good name of a lock.
bool is_store(const std::string& text) {
  register_stores();
  const std::size_t scheme = text.find(':');
  if (scheme == std::string::npos || !Registry::standard().has_store(text.substr(0, scheme))) {
    return false;
  }
  return text.compare(scheme, 3, "://") == 0 || text.find('@', scheme) != std::string::npos;
}

// It may come up yet; a file that cannot be opened is rather a mistake.
bool has_servers(const std::optional<std::string>& given) {
  const auto url = Url::parse(named_url(given).value_or(""));
  const auto technology = url ? Registry::standard().technology_of(url->scheme) : std::nullopt;
  return technology && !technology->one_machine;
}

// False: a stop was requested.
bool rest(Millis span, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  stopped.wait_for(lock, stop, span, [] { return false; });
  return !stop.stop_requested();
}

}  // namespace

std::string sqlite_url(const std::string& path) {
  Url url;
  url.scheme = "sqlite";
  url.path = path;
  return url.redacted();
}

void do_without_machine_id() {
  std::error_code unknown;
  const auto size = std::filesystem::file_size("/etc/machine-id", unknown);
  if (unknown || size == 0) setenv("LEASEHOLD_MACHINE_ID", "none", /*overwrite=*/0);
}

void declare_store(Arguments& arguments, std::optional<std::string>& into) {
  arguments.uses_store();
  arguments.option(
      "--store", "URL", into,
      "Where the locks live: " + example_urls(kStoreUse) +
          ". Default: $LEASEHOLD_STORE, else leasehold/locks.db in the user's state folder. "
          "?password_file=PATH or ?password_env=NAME keeps a password out of it; in a "
          "shell, put a URL with ? or & in quotes",
      url_beginnings(kStoreUse));
}

Result<std::string> chosen_store(const std::optional<std::string>& given) {
  if (auto named = named_url(given)) return *named;
  const auto folder = TRY(default_folder());
  return sqlite_url(default_file(folder));
}

bool is_not_there_yet(const std::optional<std::string>& given) {
  if (named_url(given)) return false;
  const auto folder = default_folder();
  return folder && access(default_file(*folder).c_str(), F_OK) != 0 && errno == ENOENT;
}

Error not_there_yet() {
  return Error(ErrorCode::unavailable,
               "the default store " + default_file(default_folder().value_or("")) +
                   " is not there yet: the first 'leasehold run' creates it");
}

Error with_source(const std::optional<std::string>& given, Error error) {
  const bool from_environment = !given && named_url(given);
  if (!from_environment) return error;
  return error_at(std::string(kVariable) + (error.address.empty() ? "" : ": " + error.address),
                  std::move(error));
}

Result<LockName> chosen_lock(const std::string& given) {
  if (is_store(given)) {
    return fail(ErrorCode::invalid, "'" + shown(given) +
                                        "' is a store and not the name of a lock; it is named with "
                                        "an option: --store " +
                                        shown(given));
  }
  if (has_password(given)) {
    return fail(ErrorCode::invalid, "'" + shown(given) +
                                        "' was given with a password, and the name of a lock is "
                                        "shown to all who look");
  }
  return LockName::parse(given);
}

Result<Client> open_store(const std::optional<std::string>& given, ConnectOptions options) {
  const auto url = TRY(chosen_store(given));
  if (!named_url(given) && options.if_missing == IfMissing::create) {
    if (const auto made = make_default_folder(); !made) return fail(made.error());
  }
  register_stores();
  auto client = connect(url, std::move(options));
  if (!client) return fail(with_source(given, std::move(client.error())));
  return client;
}

Result<Client> await_store(const std::optional<std::string>& given, const ConnectOptions& options,
                           Millis& wait) {
  constexpr Millis between{1'000};
  const BootTime until = BootClock::now() + wait;
  for (bool told = false;; told = true) {
    auto client = open_store(given, options);
    const bool away = !client && client.error().code == ErrorCode::unavailable;
    if (told) wait = std::max(Millis(0), std::chrono::ceil<Millis>(until - BootClock::now()));
    if (!away || wait == Millis(0) || !has_servers(given)) return client;
    if (!told) note_now("waiting for the store: " + text_of(client.error()));
    if (!rest(std::min(between, wait), options.stop)) {
      return fail(ErrorCode::cancelled, "waiting for the store was stopped");
    }
  }
}

Result<Client> open_existing_store(const std::optional<std::string>& given) {
  ConnectOptions options;
  options.if_missing = IfMissing::refuse;
  return open_store(given, std::move(options));
}

}  // namespace leasehold::cli
