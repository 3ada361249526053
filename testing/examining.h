// Examining a live store as the doctor does.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "leasehold/examination.h"
#include "leasehold/registry.h"

namespace leasehold::testing {

class Examining : public ::testing::Test {
 protected:
  struct How {
    ExaminedAs as = ExaminedAs::store;
    std::optional<Millis> ttl = {};  // nothing: the usual one of this fixture
    Millis timeout = std::chrono::seconds(30);
  };

  // `before` stands before every address: "etcd://".
  explicit Examining(std::vector<Adapter> adapters, std::string before = "",
                     Millis usual_ttl = std::chrono::seconds(30))
      : before_(std::move(before)), usual_ttl_(usual_ttl) {
    registry.add(std::move(adapters));
  }

  Result<Diagnosis> look(const std::string& where) const { return look(where, How()); }
  Result<Diagnosis> look(const std::string& where, const How& how) const {
    return registry.examine(
        before_ + where,
        {how.as, how.ttl.value_or(usual_ttl_), {BootClock::now() + how.timeout, {}}});
  }

  std::vector<Finding> found(const std::string& where) const { return found(where, How()); }
  std::vector<Finding> found(const std::string& where, const How& how) const {
    const auto diagnosis = look(where, how);
    EXPECT_TRUE(diagnosis) << to_string(diagnosis.error());
    return diagnosis ? diagnosis->findings : std::vector<Finding>{};
  }

  Registry registry;

 private:
  const std::string before_;
  const Millis usual_ttl_;
};

}  // namespace leasehold::testing
