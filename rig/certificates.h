// Certificates of one test, made by the openssl program.
#pragma once

#include <string>

#include "rig/temp_folder.h"

namespace leasehold::rig {

// Makes NAME.crt and NAME.key in the folder. `extension`: "subjectAltName=IP:127.0.0.1".
// `authority`: who signs it, made before in the same folder; empty: it signs itself, and can sign
// others.
void make_certificate(const TempFolder& folder, const std::string& name,
                      const std::string& extension = "", const std::string& authority = "");

}  // namespace leasehold::rig
