#include "fence_marks.h"

#include <algorithm>

#include "fence/record.h"
#include "fence_admin.h"
#include "kit/text/resource_url.h"
#include "kit/text/visible_text.h"
#include "kit/try.h"
#include "node_names.h"

namespace leasehold::zookeeper {

using fence::Commit;
using fence::SeenMark;

namespace {

const std::string& path_of(const Operation& operation) {
  return std::visit([](const auto& it) -> const std::string& { return it.path; }, operation);
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

// The step at which the whole was refused.
std::size_t failed_step(const std::vector<int>& each) {
  return static_cast<std::size_t>(
      std::find_if(each.begin(), each.end(), [](int rc) { return rc != 0; }) - each.begin());
}

}  // namespace

Result<std::unique_ptr<FenceMarks>> FenceMarks::open(const Url& url) {
  auto options = TRY(Options::of(url, kFenceOffer));
  auto marks = std::make_unique<FenceMarks>(std::move(options));
  TRY(marks->session_.connect(fence::context_of({})));
  return marks;
}

Result<std::unique_ptr<FenceAdmin>> open_fence_admin(const Url& url) {
  return FenceMarks::open(url);
}

Result<Resources> Resources::open(std::string_view text) {
  const Url url = TRY(
      kit::resource_url(text, {"zookeeper"}, "the data of this fence is at a zookeeper:// URL"));
  auto marks = TRY(FenceMarks::open(url));
  return Resources(std::move(marks));
}

std::string FenceMarks::mark_path(const ResourceName& resource) const {
  return folder() + "/" + encode(resource.str());
}

std::string FenceMarks::refused_path(const ResourceName& resource) const {
  return mark_path(resource) + "/refused";
}

// ---- one transaction -----------------------------------------------------------------------

Status FenceMarks::install() {
  return make_folder(fence::context_of({}));
}

Status FenceMarks::make_folder(const CallContext& context) {
  const auto rc = TRY(session_.create(folder(), "", context));
  if (outcome_of(rc) == Outcome::done || outcome_of(rc) == Outcome::node_exists) return {};
  return fail(
      error_at(session_.options().address,
               Error(ErrorCode::unavailable, "the server does not let this client make " + folder(),
                     words_of(rc))));
}

Result<SeenMark> FenceMarks::read(const ResourceName& resource, const CallContext& context) {
  const auto node = TRY(session_.read(mark_path(resource), context));
  if (!node) return SeenMark{};
  auto record = TRY(fence::read_record(
      resource, node->data,
      "delete the node " + kit::in_quotes(mark_path(resource)) + " with what is below it"));
  return SeenMark{std::move(record.mark), std::int64_t{node->stat.version} + 1};
}

Result<Commit> FenceMarks::commit(const ResourceName& resource, const SeenMark& before,
                                  const fence::Mark& next, const Operations& operations,
                                  const CallContext& context, TransactionResult&) {
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
    TRY(make_folder(context));
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

// Kind, path, data and version.
Result<FenceMarks::Description> FenceMarks::describe(const Operations& operations) const {
  Description about;
  std::size_t bytes = 0;
  for (const Operation& operation : operations) {
    Step step = step_of(operation);
    TRY(check_path(step.path));
    if (step.path == folder() || step.path.starts_with(folder() + "/")) {
      return fail(ErrorCode::invalid, "what is in " + folder() + " is the fence's own");
    }
    if (step.version < -1) {
      return fail(ErrorCode::invalid, "a version is " + std::to_string(step.version) +
                                          "; it must be from 0 on, or -1 for any");
    }
    bytes += step.path.size() + step.data.size();
    about.writes |= step.kind != Step::Kind::check;
    about.content.push_back(std::to_string(static_cast<int>(step.kind)));
    about.content.push_back(std::move(step.path));
    about.content.push_back(std::move(step.data));
    about.content.push_back(std::to_string(step.version));
  }
  if (bytes <= kMostRequestBytes) return about;
  return fail(ErrorCode::invalid, "the operations have " + std::to_string(bytes) +
                                      " bytes; ZooKeeper takes at most " +
                                      std::to_string(kMostRequestBytes));
}

// ---- looking -------------------------------------------------------------------------------

Result<std::optional<FencedNode>> FenceMarks::read_after_entering(const ResourceName& resource,
                                                                  const Token& token,
                                                                  const std::string& path,
                                                                  const EnterOptions& options) {
  TRY(check_path(path));
  TRY(transact(resource, token, {}, options));
  const auto node = TRY(session_.read(path, fence::context_of(options)));
  if (!node) return std::nullopt;
  return FencedNode{node->data, node->stat.version};
}

Result<std::optional<FenceMark>> FenceMarks::shown_mark(const ResourceName& resource,
                                                        const CallContext& context) {
  const auto found = TRY(read(resource, context));
  if (found.version == 0) return std::nullopt;
  const auto refused = TRY(session_.read(refused_path(resource), context));
  return found.mark.shown(resource, refused ? std::int64_t{refused->stat.version} + 1 : 0);
}

Result<std::vector<FenceMark>> FenceMarks::all_marks(const CallContext& context) {
  const auto names = TRY(session_.children(folder(), context));
  std::vector<FenceMark> all;
  for (const std::string& name : names.value_or(std::vector<std::string>())) {
    const auto resource = ResourceName::parse(decode(name).value_or(""));
    if (!resource) continue;  // no fence makes such a node
    auto mark = TRY(shown_mark(*resource, context));
    if (mark) all.push_back(std::move(*mark));
  }
  return all;
}

}  // namespace leasehold::zookeeper
