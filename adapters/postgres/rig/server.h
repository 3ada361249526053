// PostgreSQL for a test: one server, or a primary with a streaming standby.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "rig/port.h"
#include "rig/server_process.h"
#include "rig/temp_folder.h"

namespace leasehold::rig {

// One `postgres` on a loopback port, with the superuser `postgres`, who needs no password, and data
// that is deleted with this object. The program refuses to run as root, and is then run as the
// system's user `postgres`.
class PostgresServer {
 public:
  struct Options {
    std::vector<std::string> settings = {};  // "fsync=off"
    std::vector<std::string> access = {};    // lines of pg_hba.conf before the usual one
    std::string data = {};                   // where to put it; default: a folder of its own
    const PostgresServer* standby_of = nullptr;
    std::vector<std::pair<std::string, std::optional<std::string>>> environment = {};
    std::string standby_name = "standby";  // what the primary knows it by
  };
  explicit PostgresServer(Options options);
  PostgresServer() : PostgresServer(Options{}) {}

  std::uint16_t port() const { return port_.number(); }
  std::string address() const { return port_.address(); }
  // "postgres://user@127.0.0.1:port/database"
  std::string url(const std::string& database, const std::string& user = "postgres") const;
  std::string data_folder() const { return data_; }

  // Answers with what psql prints, unaligned, without headings. Throws with its complaint.
  std::string psql(const std::string& sql, const std::string& database = "postgres") const;
  // A new empty database; its name.
  std::string create_database();
  void drop_database(const std::string& name);  // with whoever is connected to it

  void kill();  // SIGKILL to all its processes
  void stop();  // its "fast shutdown": clients are cut off, everything is on disk
  void start() { process_->start(); }
  void freeze();
  void thaw();
  std::string log() const { return process_->log(); }

 private:
  void make_data(const Options& options);
  void signal_all(int number);
  bool answers() const;

  TempFolder folder_;
  Port port_ = Port::take();
  std::string data_;
  int databases_ = 0;
  std::unique_ptr<ServerProcess> process_;
};

// Puts in front of `argv` what runs it as the user `postgres` if this process is root.
std::vector<std::string> as_postgres_user(std::vector<std::string> argv);
// Makes that user the owner of the folder.
void give_to_postgres_user(const std::string& folder);

}  // namespace leasehold::rig
