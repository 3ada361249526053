#include "fence_marks.h"

#include <algorithm>
#include <map>

#include "fence/attempt.h"
#include "fence/record.h"
#include "kit/try.h"
#include "leasehold/name.h"
#include "node_names.h"

namespace leasehold::zookeeper {

using fence::Commit;
using fence::Passed;
using fence::SeenMark;

namespace {

constexpr auto kOpenWithin = std::chrono::seconds(5);

const std::string& path_of(const Operation& operation) {
  return std::visit([](const auto& it) -> const std::string& { return it.path; }, operation);
}

bool writes(const Operation& operation) {
  return !std::holds_alternative<Check>(operation);
}

Step step_of(const Operation& operation) {
  if (const Create* it = std::get_if<Create>(&operation)) {
    return {.kind = Step::Kind::create, .path = it->path, .data = it->data};
  }
  if (const Set* it = std::get_if<Set>(&operation)) {
    return {.kind = Step::Kind::set, .path = it->path, .data = it->data, .version = it->version};
  }
  if (const Delete* it = std::get_if<Delete>(&operation)) {
    return {.kind = Step::Kind::remove, .path = it->path, .version = it->version};
  }
  const Check& it = std::get<Check>(operation);
  return {.kind = Step::Kind::check, .path = it.path, .version = it.version};
}

// Kind, path, data and version of every operation.
std::vector<std::string> content_of(const std::vector<Operation>& operations) {
  std::vector<std::string> parts;
  for (const Operation& operation : operations) {
    Step step = step_of(operation);
    parts.push_back(std::to_string(static_cast<int>(step.kind)));
    parts.push_back(std::move(step.path));
    parts.push_back(std::move(step.data));
    parts.push_back(std::to_string(step.version));
  }
  return parts;
}

// The step at which the whole was refused.
std::size_t failed_step(const std::vector<int>& each) {
  return static_cast<std::size_t>(
      std::find_if(each.begin(), each.end(), [](int rc) { return rc != 0; }) - each.begin());
}

}  // namespace

CallContext context_of(const EnterOptions& options) {
  return {BootClock::now() + options.within, options.stop};
}

Status check_path(const std::string& path) {
  const auto wrong = [] {
    return fail(ErrorCode::invalid,
                "the path of a node begins with '/' and has no empty parts, no '.' and '..', and "
                "no control characters");
  };
  if (path.size() < 2 || path.front() != '/') return wrong();
  std::string_view rest = path;
  while (!rest.empty()) {
    rest.remove_prefix(1);
    const std::string_view part = rest.substr(0, rest.find('/'));
    if (part == "." || part == ".." || !leasehold::detail::check_name("path", part)) return wrong();
    rest.remove_prefix(part.size());
  }
  if (path == "/zookeeper" || path.starts_with("/zookeeper/")) {
    return fail(ErrorCode::invalid, "the folder /zookeeper belongs to the server itself");
  }
  return {};
}

Result<std::shared_ptr<FenceMarks>> FenceMarks::open(const Url& url) {
  auto options = TRY(Options::of(url));
  auto marks = std::make_shared<FenceMarks>(std::move(options));
  TRY(marks->session_.connect({BootClock::now() + kOpenWithin, {}}));
  return marks;
}

std::string FenceMarks::mark_path(const ResourceName& resource) const {
  return folder() + "/" + encode(resource.str());
}

std::string FenceMarks::refused_path(const ResourceName& resource) const {
  return mark_path(resource) + "/refused";
}

// ---- one transaction -----------------------------------------------------------------------

Status FenceMarks::install(const CallContext& context) {
  const auto rc = TRY(session_.create(folder(), "", context));
  if (outcome_of(rc) == Outcome::done || outcome_of(rc) == Outcome::node_exists) return {};
  return fail(
      error_at(session_.options().address,
               Error(ErrorCode::unavailable, "the server does not let this client make " + folder(),
                     words_of(rc))));
}

Result<SeenMark> FenceMarks::seen(const ResourceName& resource, const CallContext& context) {
  const auto node = TRY(session_.read(mark_path(resource), context));
  if (!node) return SeenMark{};
  auto record = TRY(fence::read_record(resource, node->data));
  return SeenMark{std::move(record.mark), std::int64_t{node->stat.version} + 1};
}

Result<Commit> FenceMarks::commit(const ResourceName& resource, const SeenMark& before,
                                  const fence::Mark& next, const std::vector<Operation>& operations,
                                  const CallContext& context) {
  const bool moves = next != before.mark;
  if (!moves && operations.empty()) return Commit::done;
  const bool is_new = before.version == 0;
  std::vector<Step> steps = {{.kind = is_new  ? Step::Kind::create
                                      : moves ? Step::Kind::set
                                              : Step::Kind::check,
                              .path = mark_path(resource),
                              .data = fence::to_text(next),
                              .version = static_cast<std::int32_t>(before.version - 1)}};
  for (const Operation& operation : operations) steps.push_back(step_of(operation));
  const auto done = TRY(session_.transact(std::move(steps), context));
  if (done.rc == 0) return Commit::done;
  const std::size_t at = failed_step(done.each);
  if (at == 0) return mark_refused(done.rc, is_new, context);
  const std::string which =
      at - 1 < operations.size() ? " on " + path_of(operations[at - 1]) : std::string();
  return fail(error_at(
      session_.options().address,
      Error(ErrorCode::invalid, "ZooKeeper refused the operation" + which, words_of(done.rc))));
}

// The transaction has failed at the mark itself.
Result<Commit> FenceMarks::mark_refused(int rc, bool is_new, const CallContext& context) {
  const Outcome outcome = outcome_of(rc);
  if (is_new && outcome == Outcome::no_node) {
    TRY(install(context));
    return Commit::conflict;
  }
  const bool changed =
      is_new ? outcome == Outcome::node_exists : rc == kBadVersion || outcome == Outcome::no_node;
  if (changed) return Commit::conflict;
  return fail(error_at(session_.options().address,
                       Error(ErrorCode::unavailable, "ZooKeeper refused the mark", words_of(rc))));
}

// ZooKeeper counts how often a node was set.
Status FenceMarks::count_refusal(const ResourceName& resource, const CallContext& context) {
  const std::string path = refused_path(resource);
  auto rc = session_.set(path, "", context);
  if (rc && outcome_of(*rc) == Outcome::no_node) rc = session_.create(path, "", context);
  if (rc && outcome_of(*rc) == Outcome::node_exists) rc = session_.set(path, "", context);
  if (!rc) return fail(rc.error());
  if (outcome_of(*rc) == Outcome::done) return {};
  return fail(ErrorCode::unavailable, "ZooKeeper refused to set " + path, words_of(*rc));
}

// ---- entering ------------------------------------------------------------------------------

Status FenceMarks::check(const std::vector<Operation>& operations) const {
  std::size_t bytes = 0;
  for (const Operation& operation : operations) {
    const std::string& path = path_of(operation);
    TRY(check_path(path));
    if (path == folder() || path.starts_with(folder() + "/")) {
      return fail(ErrorCode::invalid, "what is in " + folder() + " is the fence's own");
    }
    const Step step = step_of(operation);
    if (step.version < -1) {
      return fail(ErrorCode::invalid, "a version is " + std::to_string(step.version) +
                                          "; it must be from 0 on, or -1 for any");
    }
    bytes += step.path.size() + step.data.size();
  }
  if (bytes <= kMostRequestBytes) return {};
  return fail(ErrorCode::invalid, "the operations have " + std::to_string(bytes) +
                                      " bytes; ZooKeeper takes at most " +
                                      std::to_string(kMostRequestBytes));
}

fence::Pass FenceMarks::pass_at(const ResourceName& resource,
                                const std::vector<Operation>& operations,
                                const CallContext& context) {
  return {
      .read = [this, &resource, &context] { return seen(resource, context); },
      .commit =
          [this, &resource, &operations, &context](const SeenMark& before,
                                                   const fence::Mark& next) {
            return commit(resource, before, next, operations, context);
          },
      .count_refusal = [this, &resource, &context] { return count_refusal(resource, context); }};
}

Result<TransactionResult> FenceMarks::pass(const ResourceName& resource, const Token& token,
                                           const std::vector<Operation>& operations,
                                           const EnterOptions& options) {
  TRY(check(operations));
  const bool changes = std::any_of(operations.begin(), operations.end(), writes);
  const auto attempt = TRY(fence::attempt_of(token, options, changes, content_of(operations)));
  const CallContext context = context_of(options);
  const auto passed =
      TRY(fence::pass(resource, attempt, pass_at(resource, operations, context), context));
  return TransactionResult{.repeated = passed == Passed::repeated};
}

Status FenceMarks::adopt(const ResourceName& resource, const Lineage& lineage, TokenNumber at_least,
                         const CallContext& context) {
  const std::vector<Operation> none;
  return fence::pass_adoption(resource, lineage, at_least, pass_at(resource, none, context),
                              context);
}

Status FenceMarks::reset(const ResourceName& resource, const CallContext& context) {
  const std::vector<Operation> none;
  return fence::pass_reset(resource, pass_at(resource, none, context), context);
}

// ---- looking -------------------------------------------------------------------------------

Result<std::optional<Fence::Node>> FenceMarks::read_data(const std::string& path,
                                                         const CallContext& context) {
  const auto node = TRY(session_.read(path, context));
  if (!node) return std::nullopt;
  return Fence::Node{node->data, node->stat.version};
}

Result<std::optional<FenceMark>> FenceMarks::read(const ResourceName& resource,
                                                  const CallContext& context) {
  const auto found = TRY(seen(resource, context));
  if (found.version == 0) return std::nullopt;
  const auto refused = TRY(session_.read(refused_path(resource), context));
  return found.mark.shown(resource, refused ? std::int64_t{refused->stat.version} + 1 : 0);
}

Result<std::vector<FenceMark>> FenceMarks::all(const CallContext& context) {
  const auto names = TRY(session_.children(folder(), context));
  std::map<ResourceName, FenceMark> marks;
  for (const std::string& name : names.value_or(std::vector<std::string>())) {
    const auto resource = ResourceName::parse(decode(name).value_or(""));
    if (!resource) continue;  // no fence makes such a node
    auto mark = TRY(read(*resource, context));
    if (mark) marks.emplace(*resource, std::move(*mark));
  }
  std::vector<FenceMark> all;
  for (auto& [resource, mark] : marks) all.push_back(std::move(mark));
  return all;
}

}  // namespace leasehold::zookeeper
