#!/bin/bash
# Compiles a program with all adapters against the install tree, by pkg-config alone, and runs it.
#   pkg_config_test.sh PREFIX CXX SCRATCH
set -euo pipefail
prefix=$1 cxx=$2 scratch=$3
rm -rf "$scratch"
mkdir -p "$scratch"
cd "$scratch"

cat >program.cc <<'EOF'
#include <iostream>

#include "leasehold/client.h"
#include "leasehold/stores.h"

int main() {
  leasehold::register_stores();
  for (const char* url : {"sqlite:locks.db", "postgres://[::1]:1/x", "redis://[::1]:1", "etcd://[::1]:1",
                          "zookeeper://[::1]:1"}) {
    auto locks = leasehold::connect(url, {.store_timeout = std::chrono::milliseconds(300)});
    auto lease = locks ? locks->acquire("job") : leasehold::fail(locks.error());
    std::cout << (lease ? "held" : to_string(lease.error().code)) << '\n';
  }
}
EOF
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig LEASEHOLD_MACHINE_ID=test
for file in "$PKG_CONFIG_PATH"/*.pc; do
  pkg-config --validate "$(basename "$file" .pc)"
  pkg-config --cflags --libs "$(basename "$file" .pc)" >/dev/null
done
# shellcheck disable=SC2046  # flags are meant to be split
"$cxx" -std=c++20 program.cc -o program $(pkg-config --cflags --libs leasehold-stores)
diff <(./program) <(printf '%s\n' held unavailable unavailable unavailable unavailable)
