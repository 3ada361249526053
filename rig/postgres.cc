#include "rig/postgres.h"

#include <pwd.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

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

std::string run_program(std::vector<std::string> argv) {
  const std::string name = argv.front();
  auto child = process::Child::start({.argv = std::move(argv),
                                      .in = process::Null{},
                                      .out = process::Piped{},
                                      .err = process::Piped{}});
  if (!child) throw std::runtime_error(child.error().message);
  std::string output = process::read_all(child->out().get());
  const std::string complaint = process::read_all(child->err().get());
  if (child->wait().shell_status() != 0) throw std::runtime_error(name + ": " + complaint);
  return output;
}

PostgresServer::PostgresServer(Options options) {
  std::filesystem::permissions(folder_.path(), std::filesystem::perms::owner_all |
                                                   std::filesystem::perms::group_exec |
                                                   std::filesystem::perms::others_exec);
  make_data(options);
  std::vector<std::string> argv = {server_program("postgres"), "-D", data_, "-p", port_.str()};
  std::vector<std::string> settings = {"listen_addresses=127.0.0.1",
                                       "unix_socket_directories=", "max_connections=300",
                                       "shared_buffers=16MB", "timezone=UTC",
                                       // Else a restart after a kill syncs every file by itself.
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
    run_program(as_postgres_user({server_program("pg_basebackup"), "-D", data_, "-d", primary, "-R",
                                  "--checkpoint=fast", "--no-sync"}));
    return;
  }
  run_program(as_postgres_user({server_program("initdb"), "-D", data_, "-A", "trust", "-U",
                                "postgres", "--no-sync", "-E", "UTF8", "--locale=C.UTF-8"}));
  std::ofstream access(data_ + "/pg_hba.conf", std::ios::trunc);
  for (const std::string& line : options.access) access << line << "\n";
  access << "host all all 127.0.0.1/32 trust\nhost replication all 127.0.0.1/32 trust\n";
}

// Every process of the server leads a group of its own.
void PostgresServer::signal_all(int number) {
  const pid_t main = process_->pid();
  ::kill(main, SIGSTOP);  // it starts no more of them
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
  // They keep the shared memory. Not until somebody reaps them: their new parent may take seconds.
  for (const process::Fd& end : ends) {
    if (end) process::wait_readable(end.get());
  }
}

void PostgresServer::stop() {
  process_->stop(SIGINT);
}

void PostgresServer::freeze() {
  signal_all(SIGSTOP);
}

void PostgresServer::thaw() {
  signal_all(SIGCONT);
}

// The server's first line in this file is its pid, and the eighth says how far it has come. A
// server that was killed leaves its file behind.
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
  std::string output =
      run_program({server_program("psql"), "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h",
                   "127.0.0.1", "-p", port_.str(), "-U", "postgres", "-d", database, "-c", sql});
  while (output.ends_with('\n')) output.pop_back();
  return output;
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
