#include "rig/certificates.h"

#include <vector>

#include "rig/output_of.h"

namespace leasehold::rig {

void make_certificate(const TempFolder& folder, const std::string& name,
                      const std::string& extension, const std::string& authority) {
  const auto certificate = [&](const std::string& of) { return folder.file(of + ".crt"); };
  const auto key = [&](const std::string& of) { return folder.file(of + ".key"); };
  std::vector<std::string> argv = {"openssl", "req", "-x509", "-newkey", "ec"};
  const auto add = [&](std::vector<std::string> words) {
    argv.insert(argv.end(), words.begin(), words.end());
  };
  add({"-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=" + name});
  add({"-keyout", key(name), "-out", certificate(name)});
  if (!extension.empty()) add({"-addext", extension});
  if (!authority.empty()) {
    add({"-addext", "basicConstraints=critical,CA:FALSE"});
    add({"-CA", certificate(authority), "-CAkey", key(authority)});
  }
  output_of(std::move(argv));
}

}  // namespace leasehold::rig
