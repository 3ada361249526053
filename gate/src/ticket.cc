#include "ticket.h"

#include "kit/try.h"
#include "text.h"

namespace leasehold::gate {
namespace {

Problem malformed(const std::string& field, const std::string& why) {
  return {.status = 400, .type = "token-malformed", .detail = field + ": " + why};
}

Problem missing(const std::string& field) {
  return {.status = 428,
          .type = "token-missing",
          .detail = "the field " + field + " is missing; this service is behind a fence"};
}

// Whoever reads beside a lower token would have to be let past those who wait for their turn.
Problem no_readers() {
  return {.status = 501,
          .type = "unsupported",
          .detail = "this fence knows no readers: whoever enters shuts out every lower token"};
}

// Some services do what one of these fields says instead of the method.
bool may_mean_another_method(const RequestHead& head) {
  return has_field(head.fields, "X-HTTP-Method-Override") ||
         has_field(head.fields, "X-HTTP-Method") || has_field(head.fields, "X-Method-Override");
}

bool only_reads(const RequestHead& head) {
  return (head.is("GET") || head.is("HEAD")) && !may_mean_another_method(head);
}

bool passes_by(const RequestHead& head) {
  return only_reads(head) || (head.is("OPTIONS") && !may_mean_another_method(head));
}

}  // namespace

Result<TicketReader> TicketReader::make(const GateOptions& options) {
  auto pattern = TRY(ResourcePattern::parse(options.resource_path));
  if (!is_token(options.field_prefix)) {
    return fail(ErrorCode::invalid, "the prefix of the header fields must be a word");
  }
  if (options.resource_field && !is_token(*options.resource_field)) {
    return fail(ErrorCode::invalid, "the header field of the resource must be a word");
  }
  return TicketReader(options, std::move(pattern));
}

TicketReader::TicketReader(const GateOptions& options, ResourcePattern pattern)
    : prefix_(options.field_prefix + "-"),
      token_(prefix_ + "Token"),
      lineage_(prefix_ + "Lineage"),
      request_(prefix_ + "Request"),
      sequence_(prefix_ + "Sequence"),
      entry_(prefix_ + "Entry"),
      access_(prefix_ + "Access"),
      resource_field_(options.resource_field),
      pattern_(std::move(pattern)),
      slashes_(options.encoded_slashes ? EncodedSlash::part_of_the_name : EncodedSlash::refused),
      safe_methods_(options.safe_methods) {}

bool TicketReader::is_own(std::string_view field) const {
  return starts_with_word(field, prefix_) ||
         (resource_field_ && same_word(field, *resource_field_));
}

tl::expected<std::optional<std::string_view>, Problem> TicketReader::value(
    const RequestHead& head, const std::string& field) const {
  const auto found = only_value(head.fields, field);
  if (!found) return tl::unexpected(malformed(field, found.error().what));
  return *found;
}

tl::expected<ResourceName, Problem> TicketReader::resource(const RequestHead& head) const {
  if (!resource_field_) {
    auto name = pattern_.find(head.target, slashes_);
    if (!name) return tl::unexpected(problem_of(name.error()));
    return std::move(*name);
  }
  if (const auto ok = check_target(head.target, slashes_); !ok) {
    return tl::unexpected(problem_of(ok.error()));
  }
  const auto field = value(head, *resource_field_);
  if (!field) return tl::unexpected(field.error());
  if (!*field) return tl::unexpected(missing(*resource_field_));
  const auto decoded = percent_decoded(**field);
  if (!decoded) {
    return tl::unexpected(
        malformed(*resource_field_, "a percent sign is not followed by two hexadecimal digits"));
  }
  auto name = ResourceName::parse(*decoded);
  if (!name) return tl::unexpected(malformed(*resource_field_, name.error().message));
  return std::move(*name);
}

tl::expected<Token, Problem> TicketReader::token(const RequestHead& head) const {
  std::string_view values[3];
  const std::string* const fields[3] = {&token_, &lineage_, &request_};
  for (std::size_t i = 0; i < std::size(fields); ++i) {
    const auto found = value(head, *fields[i]);
    if (!found) return tl::unexpected(found.error());
    if (!*found) return tl::unexpected(missing(*fields[i]));
    values[i] = **found;
  }
  if (!kit::digits_in<std::int64_t>(values[0])) {
    return tl::unexpected(
        malformed(token_, "it must be a whole number from 1 to 9223372036854775807"));
  }
  auto token = Token::parse(values[0], values[1], values[2]);
  if (!token) return tl::unexpected(malformed(prefix_ + "…", token.error().message));
  return std::move(*token);
}

tl::expected<std::optional<Ticket>, Problem> TicketReader::read(const RequestHead& head) const {
  if (safe_methods_ == SafeMethods::pass && passes_by(head)) {
    if (const auto ok = check_target(head.target, slashes_); !ok) {
      return tl::unexpected(problem_of(ok.error()));
    }
    return std::nullopt;
  }
  auto name = resource(head);
  if (!name) return tl::unexpected(std::move(name.error()));
  auto proof = token(head);
  if (!proof) return tl::unexpected(std::move(proof.error()));
  fence::Attempt attempt{.token = std::move(*proof)};
  attempt.writes = !only_reads(head) || safe_methods_ == SafeMethods::as_writes;

  const auto sequence = value(head, sequence_);
  if (!sequence) return tl::unexpected(sequence.error());
  if (*sequence) {
    const auto number = kit::digits_in<std::int64_t>(**sequence);
    if (!number || *number == 0) {
      return tl::unexpected(
          malformed(sequence_, "it must be a whole number from 1 to 9223372036854775807"));
    }
    attempt.sequence = *number;
  }
  const auto mode = value(head, entry_);
  if (!mode) return tl::unexpected(mode.error());
  if (*mode && !same_word(**mode, "single") && !same_word(**mode, "repeatable")) {
    return tl::unexpected(malformed(entry_, "it must be 'single' or 'repeatable'"));
  }
  attempt.single = *mode && same_word(**mode, "single");
  const auto access = value(head, access_);
  if (!access) return tl::unexpected(access.error());
  if (*access && same_word(**access, "read")) return tl::unexpected(no_readers());
  if (*access && !same_word(**access, "write")) {
    return tl::unexpected(malformed(access_, "it must be 'write'"));
  }
  return Ticket{std::move(*name), std::move(attempt)};
}

}  // namespace leasehold::gate
