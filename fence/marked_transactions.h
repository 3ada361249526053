// FencedTransactions over pass(): an adapter adds how a mark is read, and how it is committed
// together with the user's operations.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "fence/attempt.h"
#include "fence/pass.h"
#include "kit/try.h"
#include "leasehold/transaction_fence.h"

namespace leasehold::fence {

// `Transactions`: FencedTransactions, or a class of the adapter's that adds to it.
template <class Transactions>
class MarkedTransactions : public Transactions {
 public:
  using Operation = typename Transactions::Operation;
  using Operations = std::vector<Operation>;
  using Answer = typename Transactions::Answer;  // has a bool `repeated`

  Result<Answer> transact(const ResourceName& resource, const Token& token,
                          const Operations& operations, const EnterOptions& options) final {
    const auto about = TRY(describe(operations));
    const auto attempt = TRY(attempt_of(token, options, about.writes, about.content));
    const CallContext context = context_of(options);
    Answer answer;
    const auto passed =
        TRY(pass(resource, attempt, at(resource, operations, context, answer), context));
    answer.repeated = passed == Passed::repeated;
    return answer;
  }

  Result<std::optional<FenceMark>> mark(const ResourceName& resource) final {
    return shown_mark(resource, context_of({}));
  }
  Result<std::vector<FenceMark>> marks() final {
    auto all = TRY(all_marks(context_of({.timeout = kListTimeout})));
    std::sort(all.begin(), all.end(),
              [](const FenceMark& a, const FenceMark& b) { return a.resource < b.resource; });
    return all;
  }
  Status adopt(const ResourceName& resource, const Lineage& lineage, TokenNumber at_least) final {
    const CallContext context = context_of({});
    const Operations none;
    Answer unused;
    return pass_adoption(resource, lineage, at_least, at(resource, none, context, unused), context);
  }
  Status reset(const ResourceName& resource) final {
    const CallContext context = context_of({});
    const Operations none;
    Answer unused;
    return pass_reset(resource, at(resource, none, context, unused), context);
  }

 protected:
  struct Description {
    bool writes = false;
    std::vector<std::string> content = {};  // all that tells the operations from others
  };
  // `invalid` for what the store would not take, and for what is the fence's own.
  [[nodiscard]] virtual Result<Description> describe(const Operations& operations) const = 0;

  // As in Pass. What a transaction that was done has answered is left in `answer`.
  [[nodiscard]] virtual Result<SeenMark> read(const ResourceName& resource,
                                              const CallContext& context) = 0;
  [[nodiscard]] virtual Result<Commit> commit(const ResourceName& resource, const SeenMark& seen,
                                              const Mark& next, const Operations& operations,
                                              const CallContext& context, Answer& answer) = 0;
  [[nodiscard]] virtual Status count_refusal(const ResourceName& resource,
                                             const CallContext& context) = 0;

  [[nodiscard]] virtual Result<std::optional<FenceMark>> shown_mark(const ResourceName& resource,
                                                                    const CallContext& context) = 0;
  // In any order.
  [[nodiscard]] virtual Result<std::vector<FenceMark>> all_marks(const CallContext& context) = 0;

 private:
  static constexpr Millis kListTimeout = std::chrono::minutes(1);  // there may be many

  // By reference: for the duration of one call.
  Pass at(const ResourceName& resource, const Operations& operations, const CallContext& context,
          Answer& answer) {
    return {
        .read = [this, &resource, &context] { return read(resource, context); },
        .commit =
            [this, &resource, &operations, &context, &answer](const SeenMark& seen,
                                                              const Mark& next) {
              return commit(resource, seen, next, operations, context, answer);
            },
        .count_refusal = [this, &resource, &context] { return count_refusal(resource, context); }};
  }
};

}  // namespace leasehold::fence
