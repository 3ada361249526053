#include "session.h"

#include "kit/text/number.h"
#include "kit/text/other_version.h"
#include "kit/text/visible_text.h"
#include "opening.h"

namespace leasehold::etcd {

std::optional<StoreId> lineage_in(const wire::KeyValue* kv) {
  if (kv == nullptr) return std::nullopt;
  return StoreId::from_hex(kv->value());
}

namespace {

void make_lineage(Session& session, const Limits& limits, Done<StoreId> done) {
  const StoreId fresh = StoreId::random(system_random());
  const std::string key = session.keys.lineage();
  wire::TxnRequest request;
  *request.add_compare() = created_at(key, 0);
  *request.add_success() = put(key, fresh.hex(), 0);
  *request.add_success() = put(session.keys.format(), std::string(kFormat), 0);
  *request.add_failure() = get(key);
  session.txn(
      std::move(request), limits,
      [fresh, key, done = std::move(done)](tl::expected<wire::TxnResponse, Failure> response) {
        if (!response) return done(tl::unexpected(std::move(response.error())));
        if (response->succeeded()) return done(fresh);
        const auto there = lineage_in(first_kv(*response, 0));
        if (there) return done(*there);
        done(tl::unexpected(Failure{.kind = Failure::Kind::refused,
                                    .silence = false,
                                    .words = "key '" + key + "' has a foreign value"}));
      });
}

std::int64_t number(std::string_view format) {
  return kit::digits_in<std::int64_t>(format).value_or(0);
}

Error another_format(const Session& session, const wire::KeyValue* format) {
  const std::string prefix = kit::in_quotes(session.keys.prefix());
  const std::string theirs =
      format == nullptr
          ? "the keys below " + prefix + " are of an earlier build"
          : "the keys below " + prefix + " have format " + kit::in_quotes(format->value());
  return error_at(session.address,
                  Error(ErrorCode::unsupported,
                        theirs + ", and this program knows only format " + std::string(kFormat) +
                            kit::remedy_for_version(
                                number(format == nullptr ? "" : format->value()), number(kFormat),
                                "end all programs that use them and delete them (etcdctl del "
                                "--prefix), or choose another prefix")));
}

}  // namespace

bool format_fits(const wire::KeyValue* lineage, const wire::KeyValue* format) {
  return format == nullptr ? lineage == nullptr : format->value() == kFormat;
}

void check_format(Session& session, const Limits& limits, Completion<std::monostate> done) {
  wire::TxnRequest request;
  *request.add_success() = get(session.keys.lineage());
  *request.add_success() = get(session.keys.format());
  session.txn(
      std::move(request), limits,
      [&session, done = std::move(done)](const tl::expected<wire::TxnResponse, Failure>& response) {
        if (!response) return done(fail(not_opened(session.address, response.error())));
        const wire::KeyValue* format = first_kv(*response, 1);
        if (format_fits(first_kv(*response, 0), format)) return done(std::monostate());
        done(fail(another_format(session, format)));
      });
}

// Reads first: a full server refuses every transaction that might put something.
void ensure_lineage(Session& session, const Limits& limits, Done<StoreId> done) {
  wire::TxnRequest request;
  *request.add_success() = get(session.keys.lineage());
  Limits repeated = limits;
  repeated.repeat = true;
  session.txn(std::move(request), repeated,
              [&session, repeated,
               done = std::move(done)](tl::expected<wire::TxnResponse, Failure> response) mutable {
                if (!response) return done(tl::unexpected(std::move(response.error())));
                if (const auto there = lineage_in(first_kv(*response, 0))) return done(*there);
                make_lineage(session, repeated, std::move(done));
              });
}

namespace {

class Withdrawal final : public std::enable_shared_from_this<Withdrawal> {
 public:
  Withdrawal(Session& session, RequestId request, Claim claim, Limits limits, Done<bool> done)
      : session_(session),
        request_(request),
        claim_(std::move(claim)),
        at_risk_(std::move(claim_.at_risk)),
        limits_(std::move(limits)),
        done_(std::move(done)) {}

  // One transaction, unless there is more than one lease at risk, or one of them is gone.
  void step() {
    wire::TxnRequest txn = erase_own();
    if (!at_risk_.empty()) {
      const LeaseId lease = at_risk_.back();
      *txn.add_success() = put(session_.keys.withdrawn(request_, lease), "", lease);
      *txn.add_failure() = put(session_.keys.withdrawn(request_, lease), "", lease);
    }
    session_.ride->go(
        claim_.lock, claim_.mode, std::move(txn), limits_,
        [self = shared_from_this()](const tl::expected<wire::TxnResponse, Failure>& response) {
          self->stepped(response);
        });
  }

 private:
  // Where there is a mark, the key was deleted with it, or is kept.
  wire::TxnRequest erase_own() const {
    const std::string key = session_.keys.own(claim_.lock, request_, claim_.mode);
    wire::TxnRequest txn;
    if (claim_.created != 0) {
      *txn.add_compare() = created_at(key, claim_.created);
      *txn.add_compare() = nothing_in(session_.keys.withdrawn(request_));
    }
    *txn.add_success() = erase(key);
    if (claim_.slot) {
      *txn.add_success() = erase_if(session_.keys.slot(claim_.lock, *claim_.slot),
                                    slot_value(request_, claim_.mode));
    }
    return txn;
  }

  void stepped(const tl::expected<wire::TxnResponse, Failure>& response) {
    const bool lease_is_gone = !response && response.error().lease_is_gone();
    if (!response && response.error().out_of_space()) return only_erase(response.error());
    if (!response && !lease_is_gone) return done_(tl::unexpected(response.error()));
    if (response && response->succeeded()) {
      found_ = found_ || response->responses(0).delete_range().deleted() > 0;
    }
    if (!at_risk_.empty()) at_risk_.pop_back();
    if (lease_is_gone || !at_risk_.empty()) return step();
    done_(found_);
  }

  // A full server takes no mark, but lets a key go. The failure is told even so, and it is tried
  // again until the mark is there.
  void only_erase(const Failure& full) {
    session_.txn(
        erase_own(), limits_,
        [self = shared_from_this(), full](const tl::expected<wire::TxnResponse, Failure>&) {
          self->done_(tl::unexpected(full));
        });
  }

  Session& session_;
  const RequestId request_;
  Claim claim_;
  std::vector<LeaseId> at_risk_;
  const Limits limits_;
  const Done<bool> done_;
  bool found_ = false;
};

}  // namespace

void withdraw(Session& session, const RequestId& request, Claim claim, const Limits& limits,
              Done<bool> done) {
  std::make_shared<Withdrawal>(session, request, std::move(claim), limits, std::move(done))->step();
}

std::int64_t wall_clock_ms() {
  return std::chrono::duration_cast<Millis>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace leasehold::etcd
