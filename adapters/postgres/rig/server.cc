#include "adapters/postgres/rig/server.h"

#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <thread>

#include "leasehold/process/io.h"
#include "rig/output_of.h"

namespace leasehold::rig {
namespace {

// Debian keeps the server's programs out of PATH, one folder per version, and has a slow wrapper
// there for psql.
std::string server_program(const std::string& name) {
  for (int version = 18; version >= 14; --version) {
    std::string path = "/usr/lib/postgresql/" + std::to_string(version) + "/bin/" + name;
    if (access(path.c_str(), X_OK) == 0) return path;
  }
  return name;
}

std::vector<pid_t> children_of(pid_t parent) {
  const std::string pid = std::to_string(parent);
  std::ifstream list("/proc/" + pid + "/task/" + pid + "/children");
  return {std::istream_iterator<pid_t>(list), {}};
}

// Its parent alone is told when a process stops.
bool runs(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(stat, line);
  const std::size_t end_of_name = line.rfind(") ");
  return end_of_name != std::string::npos && !std::strchr("TZX", line[end_of_name + 2]);
}

}  // namespace

std::vector<std::string> as_postgres_user(std::vector<std::string> argv) {
  if (geteuid() != 0) return argv;
  // Replaces itself by the program, so that the pid is the program's.
  std::vector<std::string> whole = {"setpriv", "--reuid=postgres", "--regid=postgres",
                                    "--clear-groups", "--pdeathsig=KILL"};
  whole.insert(whole.end(), argv.begin(), argv.end());
  return whole;
}

void give_to_postgres_user(const std::string& folder) {
  if (geteuid() != 0) return;
  const passwd* user = getpwnam("postgres");
  if (user == nullptr || chown(folder.c_str(), user->pw_uid, user->pw_gid) != 0) {
    throw std::runtime_error("the user postgres cannot be given " + folder);
  }
}

namespace {

void initialise(const std::string& data) {
  output_of(as_postgres_user({server_program("initdb"), "-D", data, "-A", "trust", "-U", "postgres",
                              "--no-sync", "-E", "UTF8", "--locale=C.UTF-8"}));
}

// The first process that needs it makes it, the others wait.
std::string original_in(const std::string& folder) {
  std::filesystem::create_directories(folder);
  give_to_postgres_user(folder);
  const process::Fd lock(open((folder + "/lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  if (!lock || flock(lock.get(), LOCK_EX) != 0) throw std::runtime_error("cannot lock " + folder);
  std::string data = folder + "/data";
  if (!std::filesystem::exists(data)) {
    const std::string unfinished = folder + "/unfinished";
    std::filesystem::remove_all(unfinished);
    initialise(unfinished);
    std::filesystem::rename(unfinished, data);
  }
  return data;
}

// To copy a cluster takes a tenth of the time that it takes to make one. Who runs many tests names
// a folder for what they share.
void make_cluster(const std::string& data) {
  const char* shared = std::getenv("LEASEHOLD_TEST_SHARED");
  if (shared == nullptr) return initialise(data);
  const std::string original = original_in(std::string(shared) + "/postgres");
  output_of(as_postgres_user({"cp", "--archive", original, data}));
}

}  // namespace

PostgresServer::PostgresServer(Options options) {
  std::filesystem::permissions(folder_.path(), std::filesystem::perms::owner_all |
                                                   std::filesystem::perms::group_exec |
                                                   std::filesystem::perms::others_exec);
  make_data(options);
  std::vector<std::string> argv = {server_program("postgres"), "-D", data_, "-p", port_.str()};
  std::vector<std::string> settings = {
      "listen_addresses=127.0.0.1", "unix_socket_directories=", "max_connections=300",
      "shared_buffers=16MB", "timezone=UTC",
      // Otherwise a restart after a kill syncs each file on its own.
      "recovery_init_sync_method=syncfs"};
  settings.insert(settings.end(), options.settings.begin(), options.settings.end());
  for (const std::string& setting : settings) {
    argv.emplace_back("-c");
    argv.push_back(setting);
  }
  process_ =
      std::make_unique<ServerProcess>(ServerProcess::Plan{.argv = as_postgres_user(std::move(argv)),
                                                          .log = folder_.file("log"),
                                                          .environment = options.environment,
                                                          .answers = [this] { return answers(); }});
}

void PostgresServer::make_data(const Options& options) {
  const std::string home = options.data.empty() ? folder_.file("home") : options.data;
  std::filesystem::create_directories(home);
  give_to_postgres_user(home);
  data_ = home + "/data";
  if (options.standby_of != nullptr) {
    const std::string primary =
        "host=127.0.0.1 port=" + std::to_string(options.standby_of->port()) +
        " user=postgres application_name=" + options.standby_name;
    output_of(as_postgres_user({server_program("pg_basebackup"), "-D", data_, "-d", primary, "-R",
                                "--checkpoint=fast", "--no-sync"}));
    return;
  }
  make_cluster(data_);
  std::ofstream access(data_ + "/pg_hba.conf", std::ios::trunc);
  for (const std::string& line : options.access) access << line << "\n";
  access << "host all all 127.0.0.1/32 trust\nhost replication all 127.0.0.1/32 trust\n";
}

// Every process of the server leads a group of its own.
void PostgresServer::signal_all(int number) {
  const pid_t main = process_->pid();
  ::kill(main, SIGSTOP);  // so that it starts no more of them
  for (const pid_t child : children_of(main)) ::kill(child, number);
  ::kill(main, number);
}

void PostgresServer::kill() {
  const pid_t main = process_->pid();
  ::kill(main, SIGSTOP);
  std::vector<process::Fd> ends;
  for (const pid_t child : children_of(main)) {
    ends.emplace_back(static_cast<int>(syscall(SYS_pidfd_open, child, 0)));
    ::kill(child, SIGKILL);
  }
  process_->kill();
  // They keep the shared memory until they end. Their new parent may take seconds to reap them;
  // that is not waited for.
  for (const process::Fd& end : ends) {
    if (end) process::wait_readable(end.get());
  }
}

void PostgresServer::stop() {
  process_->stop(SIGINT);
}

void PostgresServer::freeze() {
  process_->freeze();  // it starts no more of them
  const auto backends = children_of(process_->pid());
  for (const pid_t backend : backends) ::kill(backend, SIGSTOP);
  for (const pid_t backend : backends) {
    while (runs(backend)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void PostgresServer::thaw() {
  signal_all(SIGCONT);
}

// The first line of this file is the server's pid, and the eighth its state. A server that was
// killed leaves its file behind.
bool PostgresServer::answers() const {
  std::ifstream file(data_ + "/postmaster.pid");
  std::string pid;
  std::string line;
  std::getline(file, pid);
  for (int rest = 7; rest > 0; --rest) std::getline(file, line);
  return file && line.starts_with("ready") && std::filesystem::exists("/proc/" + pid);
}

std::string PostgresServer::url(const std::string& database, const std::string& user) const {
  return "postgres://" + user + "@" + address() + "/" + database;
}

std::string PostgresServer::psql(const std::string& sql, const std::string& database) const {
  return output_of({server_program("psql"), "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h",
                    "127.0.0.1", "-p", port_.str(), "-U", "postgres", "-d", database, "-c", sql});
}

std::string PostgresServer::create_database() {
  std::string name = "test" + std::to_string(++databases_);
  psql("CREATE DATABASE " + name + " TEMPLATE template0");
  return name;
}

void PostgresServer::drop_database(const std::string& name) {
  psql("DROP DATABASE " + name + " WITH (FORCE)");
}

}  // namespace leasehold::rig
