#include "session.h"

#include <algorithm>

#include "passing_on.h"
#include "text.h"

namespace leasehold::gate {
namespace {

// A body up to this size is read before the request enters: then its client can neither hold up
// the resource nor leave half a request at the upstream.
constexpr std::size_t kSmallBody = 64 * 1024;
constexpr int kMaxInterim = 16;
constexpr std::size_t kMaxLinger = 256 * 1024;
constexpr std::chrono::seconds kLingerTime{2};
constexpr const char* kLeft =
    "the client closed its side of the connection while the request waited for its turn; it was "
    "not forwarded";

// Services that expect no body here may take it for the next request. So there is none after it.
bool may_be_left_unread(const RequestHead& head) {
  if (head.body.framing == Framing::none) return false;
  return head.is("GET") || head.is("HEAD") || head.is("DELETE") || head.is("OPTIONS");
}

Parsed<void> check_method(const RequestHead& head) {
  if (head.is("CONNECT") || head.is("TRACE")) {
    return bad_message("the gate does not do " + std::string(head.method), 501);
  }
  for (const Field& field : head.fields) {
    // An offer to speak HTTP/2 may be passed over; any other protocol cannot be fenced.
    if (same_word(field.name, "Upgrade") && !same_word(field.value, "h2c")) {
      return bad_message("the gate does not change the protocol", 501);
    }
  }
  return {};
}

}  // namespace

struct Session::Forwarding {
  explicit Forwarding(GateCore& its_core) : core(its_core) {}
  ~Forwarding() {
    // Not told otherwise: it may still take effect.
    if (visit != nullptr) core.turns.missed(visit);
  }
  Forwarding(const Forwarding&) = delete;

  GateCore& core;
  const RequestHead* head = nullptr;
  const Ticket* ticket = nullptr;
  Turns::Visit* visit = nullptr;  // until its end is known
  std::unique_ptr<Connection> upstream;
  BodyDecoder* decoder = nullptr;  // of the request's body
  Pace* up_pace = nullptr;         // of the client that sends
  Pace* down_pace = nullptr;       // of the client that reads
  bool reused = false;             // the connection has served a request before
  bool again = false;              // nothing was lost: send it over another connection
  bool only_fresh = false;
  bool request_complete = false;
  bool response_begun = false;  // the client has seen a part of it
  bool response_complete = false;
  bool told_to_close = false;
  bool client_gone = false;
  bool client_broke_off = false;  // in the middle of its request
  bool keep_upstream = false;
  std::optional<Problem> problem;  // instead of an answer

  bool changes_nothing() const {
    if (ticket != nullptr) return !ticket->attempt.writes;
    return head->is("GET") || head->is("HEAD") || head->is("OPTIONS");
  }
};

struct Session::Upload {
  explicit Upload(asio::io_context& io) : finished(io) {}
  Event finished;
  bool stop = false;
};

Session::Session(GateCore& core, tcp::socket socket, std::string client)
    : core_(core), client_(std::move(socket), core.watch), address_(std::move(client)) {}

Session::~Session() = default;

Async<void> Session::serve() {
  for (;;) {
    const bool read = co_await read_request_head();
    if (!read) break;
    const After after = co_await handle();
    if (after == After::close || core_.stopping) break;
  }
  co_await linger();
  client_.close();
}

void Session::close_if_idle() {
  if (idle_) client_.close();
}

Async<bool> Session::read_request_head() {
  if (client_.in().empty()) {
    if (core_.stopping) co_return false;
    idle_ = true;
    const NetTime until = NetClock::now() + core_.options.idle_timeout;
    const std::error_code error = co_await client_.fill(until);
    idle_ = false;
    if (error) co_return false;
  }
  const NetTime by = NetClock::now() + core_.options.head_timeout;
  // An empty line in front is from a client that counted its last body wrong; one may be.
  if (client_.in() == "\r") {
    const std::error_code error = co_await client_.fill(by);
    if (error) co_return false;
  }
  if (client_.in().starts_with("\r\n")) client_.consume(2);
  const HeadRead read = co_await read_head(client_, by);
  if (read.bad) {
    Problem problem = problem_of(*read.bad);
    co_await refuse(nullptr, std::move(problem));
    co_return false;
  }
  if (read.error) co_return false;
  head_.assign(client_.in().substr(0, read.size));
  client_.consume(read.size);
  co_return true;
}

Async<Session::After> Session::handle() {
  const auto head = parse_request(head_);
  if (!head) {
    Problem problem = problem_of(head.error());
    co_await refuse(nullptr, std::move(problem));
    co_return After::close;
  }
  auto allowed = check_method(*head);
  if (allowed) allowed = check_connection(head->fields, core_.tickets);
  if (!allowed) {
    Problem problem = problem_of(allowed.error());
    const After after = co_await refuse(&*head, std::move(problem));
    co_return after;
  }
  auto ticket = core_.tickets.read(*head);
  if (!ticket) {
    const After after = co_await refuse(&*head, std::move(ticket.error()));
    co_return after;
  }
  const After after = co_await forward(*head, *ticket ? &**ticket : nullptr);
  co_return after;
}

// Before it enters: the whole of a small body, or what is there of a large one. False if the client
// left or sent nonsense.
Async<bool> Session::read_small_body(const RequestHead& head, BodyDecoder& decoder) {
  body_.clear();
  const bool wait = head.body.framing == Framing::length && head.body.length <= kSmallBody &&
                    !head.expects_continue;
  Pace pace(core_.options.client_timeout);
  while (!decoder.done() && body_.size() < kSmallBody) {
    const auto step = decoder.step(client_.in());
    if (!step) {
      Problem problem = problem_of(step.error());
      co_await refuse(nullptr, std::move(problem));
      co_return false;
    }
    body_ += step->data;
    client_.consume(step->consumed);
    if (step->consumed > 0) continue;
    if (!wait) break;
    const NetTime by = pace.wait();
    const std::error_code error = co_await client_.fill(by);
    pace.done(client_.in().size());
    if (error) {
      if (client_.timed_out()) core_.log("closed: a body came too slowly, client=" + address_);
      co_return false;
    }
  }
  co_return true;
}

Async<std::optional<Objection>> Session::enter(const Ticket& ticket, Turns::Visit*& visit) {
  struct Answer {
    explicit Answer(asio::io_context& io) : told(io) {}
    Event told;
    std::optional<Objection> objection;
  };
  auto answer = std::make_shared<Answer>(core_.io);
  visit = core_.turns.enter(ticket, [answer](std::optional<Objection> objection) {
    answer->objection = std::move(objection);
    answer->told.set();
  });
  const bool waited = !answer->told.is_set();
  co_await answer->told.wait();
  if (answer->objection) {
    visit = nullptr;
    co_return std::move(answer->objection);
  }
  if (waited && client_.has_hung_up()) {
    core_.turns.withdrawn(visit);
    visit = nullptr;
  }
  co_return std::nullopt;
}

Async<Session::After> Session::forward(const RequestHead& head, const Ticket* ticket) {
  BodyDecoder decoder(head.body);
  const bool readable = co_await read_small_body(head, decoder);
  if (!readable) co_return After::close;
  Turns::Visit* visit = nullptr;
  if (ticket != nullptr) {
    const auto objection = co_await enter(*ticket, visit);
    if (objection) {
      Problem problem = problem_of(*objection, *ticket);
      const After after = co_await refuse(&head, std::move(problem), decoder.done());
      co_return after;
    }
    if (visit == nullptr) {
      Problem problem = problem_of(BadMessage{400, kLeft});
      co_await refuse(&head, std::move(problem), decoder.done());
      co_return After::close;
    }
  }

  Forwarding way(core_);
  Pace up_pace(core_.options.client_timeout);
  Pace down_pace(core_.options.client_timeout);
  way.head = &head;
  way.ticket = ticket;
  way.visit = visit;
  way.decoder = &decoder;
  way.up_pace = &up_pace;
  way.down_pace = &down_pace;
  way.request_complete = decoder.done();
  do {
    way.again = false;
    const bool sent = co_await send_request(way);
    if (sent) co_await relay(way);
  } while (way.again);
  if (way.keep_upstream) core_.upstream.give_back(std::move(way.upstream));
  if (way.problem && !way.response_begun) {
    const After after = co_await refuse(&head, std::move(*way.problem), decoder.done());
    co_return after;
  }
  if (!way.response_complete) {
    client_.close_abruptly();
    co_return After::close;
  }
  const bool keep = decoder.done() && !way.client_gone && !way.told_to_close;
  co_return keep ? After::keep : After::close;
}

Async<bool> Session::open_upstream(Forwarding& way) {
  way.upstream = way.only_fresh ? nullptr : core_.upstream.take_idle();
  way.reused = way.upstream != nullptr;
  if (way.reused) co_return true;
  std::string error;
  way.upstream = co_await core_.upstream.connect(error);
  if (way.upstream) co_return true;
  way.problem = Problem{
      .status = 502,
      .type = "upstream-unreachable",
      .detail = "the upstream cannot be reached (" + error + "); the request was not forwarded",
      .retry_after = 1};
  co_return false;
}

// The head and as much of the body as is there. False if nothing was sent.
Async<bool> Session::send_request(Forwarding& way) {
  const RequestHead& head = *way.head;
  RequestChanges changes;
  changes.keep_expectation = head.expects_continue && !way.request_complete && body_.empty();
  changes.closes = may_be_left_unread(head);
  if (core_.options.add_forwarded) {
    changes.forwarded_for = address_.substr(0, address_.rfind(':'));
  }
  std::string text = request_head_for_upstream(head, changes);
  std::string tail;
  if (head.body.framing == Framing::chunked) {
    if (!body_.empty()) text += chunk_start(body_.size());
    if (!body_.empty()) tail = "\r\n";
    if (way.request_complete) tail += "0\r\n" + way.decoder->trailer() + "\r\n";
  }
  for (;;) {
    const bool open = co_await open_upstream(way);
    if (!open) {
      if (way.visit != nullptr) core_.turns.withdrawn(way.visit);
      way.visit = nullptr;
      co_return false;
    }
    const NetTime by = NetClock::now() + core_.options.answer_timeout;
    const auto sent = co_await way.upstream->send({text, body_, tail}, by);
    // The kernel took nothing: the upstream had closed the idle connection.
    const bool untouched =
        sent.error && way.reused && sent.bytes == 0 && !way.upstream->timed_out();
    if (!untouched) co_return true;  // its answer, or that there is none, is read next
  }
}

// Passes the rest of the request's body on while the answer may come.
Async<void> Session::upload(Forwarding& way, Upload& upload) {
  try {
    while (!upload.stop) {
      const bool more = co_await upload_some(way);
      if (!more) break;
    }
  } catch (const std::exception&) {  // no memory
    way.client_broke_off = true;
  }
  if (way.client_broke_off && !upload.stop) way.upstream->close();
  upload.finished.set();
}

Async<bool> Session::upload_some(Forwarding& way) {
  const bool chunked = way.head->body.framing == Framing::chunked;
  const auto step = way.decoder->step(client_.in());
  if (!step) {
    way.client_broke_off = true;
    co_return false;
  }
  const NetTime by = NetClock::now() + core_.options.answer_timeout;
  if (!step->data.empty()) {
    const std::string start = chunked ? chunk_start(step->data.size()) : std::string();
    const std::string_view end = chunked ? "\r\n" : "";
    const auto sent = co_await way.upstream->send({start, step->data, end}, by);
    if (sent.error) co_return false;
  }
  client_.consume(step->consumed);
  way.upstream->postpone(by);
  if (way.decoder->done()) {
    std::string last;
    if (chunked) last = "0\r\n" + way.decoder->trailer() + "\r\n";
    const auto sent = co_await way.upstream->send(last, by);
    way.request_complete = !sent.error;
    way.upstream->postpone(NetClock::now() + core_.options.answer_timeout);
    co_return false;
  }
  if (step->consumed > 0) co_return true;
  const std::size_t had = client_.in().size();
  const NetTime until = way.up_pace->wait();
  // The upstream is not silent as long as it has not got everything.
  way.upstream->postpone(until + core_.options.answer_timeout);
  const std::error_code error = co_await client_.fill(until);
  way.up_pace->done(client_.in().size() - had);
  way.client_broke_off = bool(error);
  co_return !error;
}

Async<void> Session::relay(Forwarding& way) {
  std::shared_ptr<Upload> rest;
  if (!way.request_complete) {
    rest = std::make_shared<Upload>(core_.io);
    asio::co_spawn(core_.io, upload(way, *rest), asio::detached);
  }
  std::exception_ptr failure;
  try {
    co_await relay_answer(way);
  } catch (...) {
    failure = std::current_exception();  // the upload uses what would go away
  }
  if (rest) {
    // The answer was yes, and the service has yet to get the rest of what it said yes to.
    const bool owed = way.response_complete && way.visit != nullptr;
    if (owed) co_await rest->finished.wait();
    rest->stop = true;
    if (!rest->finished.is_set()) {
      client_.cancel();
      way.upstream->close();
      way.keep_upstream = false;
    }
    co_await rest->finished.wait();
    if (owed && way.request_complete) answered(way);
    if (owed && !way.request_complete) {
      missed(way, "it answered before the end of the request, which never came", 502);
    }
  }
  if (failure) std::rethrow_exception(failure);
}

Async<void> Session::relay_answer(Forwarding& way) {
  ResponseHead response;
  std::string text;
  const bool has_head = co_await relay_head(way, response, text);
  if (!has_head) co_return;
  ResponseChanges changes;
  changes.closes = way.head->wants_close || core_.stopping || !way.decoder->done();
  changes.via = core_.options.add_forwarded;
  way.told_to_close = changes.closes;
  std::string head = response_head_for_client(response, changes);
  co_await relay_body(way, response, std::move(head));
  way.keep_upstream = way.response_complete && way.request_complete && !response.closes &&
                      way.upstream->in().empty() && !may_be_left_unread(*way.head);
}

// Reads heads until the final one; passes interim ones on. False if none came.
Async<bool> Session::relay_head(Forwarding& way, ResponseHead& response, std::string& text) {
  for (int interim = 0; interim <= kMaxInterim; ++interim) {
    const NetTime by = NetClock::now() + core_.options.answer_timeout;
    const HeadRead read = co_await read_head(*way.upstream, by);
    if (read.error) {
      no_head(way, interim > 0);
      co_return false;
    }
    if (read.bad) {
      missed(way, "its head is malformed: " + read.bad->what, 502);
      co_return false;
    }
    text.assign(way.upstream->in().substr(0, read.size));
    way.upstream->consume(read.size);
    auto parsed = parse_response(text, way.head->is("HEAD"));
    if (!parsed || parsed->status == 101) {
      missed(way, parsed ? "it changed the protocol" : "its head is wrong: " + parsed.error().what,
             502);
      co_return false;
    }
    response = std::move(*parsed);
    if (!response.is_interim()) co_return true;
    if (response.status == 100 && !way.head->expects_continue) continue;
    const std::string head = response_head_for_client(response, {});
    co_await send_to_client(way, {head, {}, {}});
    way.response_begun = false;  // the final one is still to come
  }
  missed(way, "it sends interim answers only", 502);
  co_return false;
}

// The connection ended, or time did, before a head had come.
void Session::no_head(Forwarding& way, bool heard_something) {
  const bool late = way.upstream->timed_out();
  const bool silent = !heard_something && way.upstream->in().empty();
  // It was closed while it was idle, and nothing can be done twice.
  if (way.reused && silent && !late && way.request_complete && way.changes_nothing()) {
    way.again = way.only_fresh = true;
    return;
  }
  if (way.client_broke_off) {
    missed(way, "the client left in the middle of its request", 400);
    return;
  }
  missed(way, late ? "it was too late" : "it closed the connection", late ? 504 : 502);
}

// `head` goes out with the first of the body. The turn ends when the last byte has come from the
// upstream, not when the client has taken it.
Async<void> Session::relay_body(Forwarding& way, const ResponseHead& response, std::string head) {
  const bool chunked =
      response.body.framing == Framing::chunked || response.body.framing == Framing::until_close;
  BodyDecoder decoder(response.body);
  const NetTime start = NetClock::now();
  for (;;) {
    const auto step = decoder.step(way.upstream->in());
    if (!step) {
      missed(way, "its body is malformed: " + step.error().what, 502);
      co_return;
    }
    if (decoder.done()) answer_is_complete(way, response.status);
    std::string tail;
    if (chunked && !step->data.empty()) {
      head += chunk_start(step->data.size());
      tail = "\r\n";
    }
    if (chunked && decoder.done()) tail += "0\r\n" + decoder.trailer() + "\r\n";
    const bool waits = step->consumed == 0 && !decoder.done();
    // The head waits for the first of the body only as long as that is there already.
    if (!step->data.empty() || decoder.done() || (waits && !head.empty())) {
      co_await send_to_client(way, {head, step->data, tail});
      head.clear();
    }
    way.upstream->consume(step->consumed);
    if (decoder.done()) break;
    if (!waits) continue;
    if (way.client_gone && way.changes_nothing()) co_return;  // nobody waits for the rest
    const NetTime limit = way.client_gone ? start + core_.options.answer_timeout : NetTime::max();
    const NetTime by = std::min(NetClock::now() + core_.options.answer_timeout, limit);
    const std::error_code error = co_await way.upstream->fill(by);
    if (!error) continue;
    if (error == asio::error::eof && decoder.end_of_stream()) continue;
    missed(way, way.upstream->timed_out() ? "its end was too late" : "it ends in the middle", 502);
    co_return;
  }
  way.response_complete = true;
}

Async<void> Session::send_to_client(Forwarding& way, std::array<std::string_view, 3> texts) {
  if (way.client_gone) co_return;
  way.response_begun = true;
  const NetTime by = way.down_pace->wait();
  const auto sent = co_await client_.send(texts, by);
  way.down_pace->done(sent.bytes);
  // A client that left does not end what it began: the upstream's answer is awaited all the same.
  if (sent.error) way.client_gone = true;
}

// Before the whole request was sent, only a refusal is an end: then no more of it is sent.
void Session::answer_is_complete(Forwarding& way, int status) {
  if (!way.request_complete && status < 300) return;
  if (!way.request_complete) way.upstream->close();
  answered(way);
}

void Session::answered(Forwarding& way) {
  if (way.visit != nullptr) core_.turns.answered(way.visit, NetClock::now());
  way.visit = nullptr;
}

void Session::missed(Forwarding& way, const std::string& why, int status) {
  if (way.visit != nullptr) core_.turns.missed(way.visit);
  way.visit = nullptr;
  std::string detail = "the upstream's answer is missing: " + why;
  std::optional<std::string> resource;
  if (way.ticket != nullptr) {
    resource = way.ticket->resource.str();
    if (way.ticket->attempt.writes) {
      detail += ". The request may have taken effect or may yet; nothing passes to resource '" +
                *resource + "' until this is cleared";
    }
  }
  way.problem =
      Problem{.status = status, .type = "answer-missing", .detail = detail, .resource = resource};
  if (!way.response_begun) return;
  log_refusal(way.head, *way.problem);
}

Async<Session::After> Session::refuse(const RequestHead* head, Problem problem, bool body_read) {
  log_refusal(head, problem);
  const bool at_end = head != nullptr && (body_read || head->body.framing == Framing::none);
  const bool keep = at_end && !head->wants_close && !core_.stopping;
  const std::string text = response_of(problem, keep, head != nullptr && head->is("HEAD"));
  const NetTime by = NetClock::now() + core_.options.client_timeout;
  const auto sent = co_await client_.send(text, by);
  co_return keep && !sent.error ? After::keep : After::close;
}

// Closing a socket with unread input would reset it, and the client might never see its answer.
Async<void> Session::linger() {
  client_.end_of_sending();
  const NetTime by = NetClock::now() + kLingerTime;
  std::size_t thrown_away = 0;
  while (thrown_away < kMaxLinger) {
    thrown_away += client_.in().size();
    client_.consume(client_.in().size());
    const std::error_code error = co_await client_.fill(by);
    if (error) co_return;
  }
}

void Session::log_refusal(const RequestHead* head, const Problem& problem) const {
  if (!core_.options.log) return;
  std::string line = "refused status=" + std::to_string(problem.status) +
                     " type=" + std::string(problem.type) + " client=" + address_;
  if (head != nullptr) line += " method=" + std::string(head->method);
  if (problem.resource) line += " resource=" + json_string(*problem.resource);
  if (problem.numbers) {
    line += " offered=" + std::to_string(problem.numbers->offered) +
            " mark=" + std::to_string(problem.numbers->mark);
  }
  core_.log(line + " detail=" + json_string(problem.detail));
}

}  // namespace leasehold::gate
