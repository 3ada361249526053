// What a request's head says to the fence: which resource, which token.
#pragma once

#include <optional>
#include <string>
#include <variant>

#include <tl/expected.hpp>

#include "admission.h"
#include "head.h"
#include "leasehold/gate/gate.h"
#include "problem.h"
#include "resource_pattern.h"

namespace leasehold::gate {

// Reads tickets by the gate's options.
class TicketReader {
 public:
  // Fails with `invalid`.
  [[nodiscard]] static Result<TicketReader> make(const GateOptions& options);

  // Nothing: the request passes unfenced.
  [[nodiscard]] tl::expected<std::optional<Ticket>, Problem> read(const RequestHead& head) const;

  // Whether a field's name is one that the fence reads.
  bool is_own(std::string_view field) const;

 private:
  TicketReader(const GateOptions& options, ResourcePattern pattern);
  tl::expected<ResourceName, Problem> resource(const RequestHead& head) const;
  tl::expected<Token, Problem> token(const RequestHead& head) const;
  tl::expected<std::optional<std::string_view>, Problem> value(const RequestHead& head,
                                                               const std::string& field) const;

  std::string prefix_;
  std::string token_;
  std::string lineage_;
  std::string request_;
  std::string sequence_;
  std::string entry_;
  std::string access_;
  std::optional<std::string> resource_field_;
  ResourcePattern pattern_;
  EncodedSlash slashes_;
  SafeMethods safe_methods_;
};

}  // namespace leasehold::gate
