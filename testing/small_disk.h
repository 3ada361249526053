// A disk that a test can fill, on a filesystem of its own.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <iostream>

#include "rig/temp_folder.h"
#include "testing/in_child.h"

namespace leasehold::testing {

// Fills it to the last byte.
inline void fill_disk(const std::filesystem::path& filler) {
  std::ofstream file(filler, std::ios::binary);
  const std::string block(64 * 1024, 'x');
  while (file.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
  }
  std::ofstream rest(filler.string() + "-rest", std::ios::binary);
  while (rest.put('x').flush()) {
  }
}

// Whether `check` has no failure in a child, which alone sees that disk: a process can get
// mounts of its own only before it has threads. `options` as mount(8) takes them: "size=1m";
// `flags` as mount(2): MS_RDONLY.
inline bool passes_on_a_small_disk(const char* options,
                                   const std::function<void(const std::filesystem::path&)>& check,
                                   unsigned long flags = 0) {
  const rig::TempFolder folder;
  return in_own_mount(folder.path(), "tmpfs", options, flags, [&] {
    try {
      check(folder.path());
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
    std::cout.flush();
    return !::testing::Test::HasFailure();
  });
}

}  // namespace leasehold::testing
