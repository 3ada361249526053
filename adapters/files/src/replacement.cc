#include <unistd.h>

#include <utility>

#include "inside.h"
#include "kit/try.h"
#include "leasehold/files/fence.h"

namespace leasehold::files {

struct Replacement::State {
  State(FenceOptions how, Vault where, Draft what)
      : options(std::move(how)),
        vault(std::move(where)),
        draft(std::move(what)),
        path(vault.place().vault() / draft.id / "data") {}
  State(const State&) = delete;
  ~State() {
    if (!in_place && owner == getpid()) vault.discard(draft);  // not by a forked child
  }

  FenceOptions options;
  Vault vault;  // not locked: others go on while this one is filled
  Draft draft;
  std::filesystem::path path;
  pid_t owner = getpid();
  bool in_place = false;
  bool spoiled = false;
};

Replacement::Replacement(std::unique_ptr<State> state) : state_(std::move(state)) {}
Replacement::Replacement(Replacement&&) noexcept = default;
Replacement& Replacement::operator=(Replacement&&) noexcept = default;
Replacement::~Replacement() = default;

const std::filesystem::path& Replacement::path() const {
  return state_->path;
}

Result<Replacement> Fence::stage() const {
  auto inside = TRY(go_inside(path_, options_));
  auto draft = TRY(inside.vault.draft(inside.version.kind));
  inside.vault.unlock();
  return Replacement(
      std::make_unique<Replacement::State>(options_, std::move(inside.vault), std::move(draft)));
}

Status Replacement::publish(const Token& token, const WriteOptions& options) {
  TRY(check_write(options));
  if (state_->in_place) return fail(ErrorCode::invalid, "this replacement was published before");
  if (state_->spoiled) {
    return fail(ErrorCode::invalid,
                "the disk failed when this replacement was published before; stage another one");
  }
  // A sync that failed once may succeed the next time although the data never reached the disk.
  if (auto ok = state_->vault.sync_data(state_->draft); !ok) {
    state_->spoiled = true;
    return ok;
  }
  auto inside = TRY(go_inside(state_->vault.place().path, state_->options));
  const auto attempt = TRY(write_attempt(inside, token, options));
  auto verdict = fence::judge(inside.mark(), attempt);
  if (const auto* it = std::get_if<fence::Refuse>(&verdict)) {
    return fail(refused(inside, attempt, it->why));
  }
  auto& enter = std::get<fence::Enter>(verdict);
  auto done = inside.vault.publish(state_->draft, inside.record_with(std::move(enter.next)),
                                   inside.version);
  state_->spoiled = !done && done.error().code == ErrorCode::unavailable;
  state_->in_place = done || done.error().code == ErrorCode::outcome_unknown;
  return done;
}

}  // namespace leasehold::files
