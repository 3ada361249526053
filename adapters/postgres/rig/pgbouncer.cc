#include "adapters/postgres/rig/pgbouncer.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace leasehold::rig {

Pgbouncer::Pgbouncer(const PostgresServer& server, const std::string& mode) {
  namespace fs = std::filesystem;
  fs::permissions(folder_.path(),
                  fs::perms::owner_all | fs::perms::group_exec | fs::perms::others_exec);
  const std::string settings = folder_.file("pgbouncer.ini");
  std::ofstream(settings) << "[databases]\n* = host=127.0.0.1 user=postgres port=" << server.port()
                          << "\n[pgbouncer]\nlisten_addr=127.0.0.1\nlisten_port=" << port_.str()
                          << "\nunix_socket_dir=\nauth_type=any\npool_mode=" << mode
                          << "\nmax_client_conn=300\ndefault_pool_size=20\n";
  fs::permissions(settings, fs::perms::owner_all | fs::perms::group_read | fs::perms::others_read);
  const std::string program =
      access("/usr/sbin/pgbouncer", X_OK) == 0 ? "/usr/sbin/pgbouncer" : "pgbouncer";
  process_ = std::make_unique<ServerProcess>(ServerProcess::Plan{
      .argv = as_postgres_user({program, settings}), .log = folder_.file("log"), .answers = [this] {
        return accepts(port_.number());
      }});
}

std::string Pgbouncer::url(const std::string& database) const {
  return "postgres://postgres@" + port_.address() + "/" + database;
}

}  // namespace leasehold::rig
