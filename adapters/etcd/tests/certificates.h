// Certificates of one test, made by the openssl program.
#pragma once

#include <stdexcept>
#include <string>

#include "leasehold/process/child.h"
#include "rig/temp_folder.h"

namespace leasehold::testing {

// Two authorities; the first signed a server at 127.0.0.1 and a client.
class Certificates {
 public:
  Certificates() {
    authority("ca");
    authority("other");
    signed_by_ca("server", "subjectAltName=IP:127.0.0.1");
    signed_by_ca("client", "extendedKeyUsage=clientAuth");
  }
  std::string ca() const { return folder_.file("ca.pem"); }
  std::string other_ca() const { return folder_.file("other.pem"); }
  std::string server_certificate() const { return folder_.file("server.pem"); }
  std::string server_key() const { return folder_.file("server.key"); }
  std::string client_certificate() const { return folder_.file("client.pem"); }
  std::string client_key() const { return folder_.file("client.key"); }

 private:
  void authority(const std::string& name) {
    openssl({"req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=" + name,
             "-keyout", folder_.file(name + ".key"), "-out", folder_.file(name + ".pem")});
  }
  void signed_by_ca(const std::string& name, const std::string& extension) {
    openssl({"req",
             "-x509",
             "-newkey",
             "rsa:2048",
             "-nodes",
             "-days",
             "2",
             "-subj",
             "/CN=" + name,
             "-addext",
             extension,
             "-addext",
             "basicConstraints=critical,CA:FALSE",
             "-CA",
             ca(),
             "-CAkey",
             folder_.file("ca.key"),
             "-keyout",
             folder_.file(name + ".key"),
             "-out",
             folder_.file(name + ".pem")});
  }
  void openssl(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "openssl");
    auto child = process::Child::start({.argv = std::move(arguments),
                                        .in = process::Null{},
                                        .out = process::Null{},
                                        .err = process::ToFile{folder_.file("log"), true}});
    if (!child) throw std::runtime_error(child.error().message);
    if (child->wait().shell_status() != 0) throw std::runtime_error("openssl failed");
  }

  rig::TempFolder folder_;
};

}  // namespace leasehold::testing
