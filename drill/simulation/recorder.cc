#include "recorder.h"

#include <cstdio>
#include <stdexcept>
#include <string_view>

namespace leasehold::simulation {
namespace {

std::string_view to_string(EventKind kind) {
  switch (kind) {
    case EventKind::call_arrives:
      return "call arrives at the store";
    case EventKind::reply_arrives:
      return "reply of the store";
    case EventKind::call_times_out:
      return "call times out";
    case EventKind::patience_ends:
      return "call stops waiting for the others";
    case EventKind::nudge_arrives:
      return "nudge";
    case EventKind::ended_arrives:
      return "told of the end";
    case EventKind::tick:
      return "tick";
    case EventKind::worker_wakes:
      return "worker wakes";
    case EventKind::access_arrives:
      return "access arrives at the resource";
    case EventKind::access_answered:
      return "answer of the resource";
    case EventKind::access_times_out:
      return "access times out";
    case EventKind::client_resumes:
      return "client resumes";
    case EventKind::client_restarts:
      return "client restarts";
    case EventKind::client_reconnects:
      return "client reconnects";
    case EventKind::store_restarts:
      return "store restarts";
    case EventKind::store_resumes:
      return "store resumes";
    case EventKind::store_deletes:
      return "store deletes";
    case EventKind::nemesis:
      return "nemesis";
    case EventKind::weather:
      return "weather changes";
  }
  return "?";
}

}  // namespace

void Recorder::record(const drill::Record& record) {
  mix(static_cast<std::uint64_t>(record.token));
  mix(static_cast<std::uint64_t>(record.deadline));
  mix(record.value);
  mix((std::uint64_t{record.request} << 32) | (std::uint64_t{record.process} << 16) |
      (static_cast<std::uint64_t>(record.kind) << 8) |
      static_cast<std::uint64_t>(record.operation));
  if (const auto done = history_.append(record); !done) {
    throw std::logic_error(done.error().message);
  }
}

std::string Recorder::tail() const {
  std::string text;
  const std::uint64_t count = std::min<std::uint64_t>(steps_, last_.size());
  for (std::uint64_t i = steps_ - count + 1; i <= steps_; ++i) {
    const Event& event = last_[i % last_.size()];
    char line[160];
    std::snprintf(line, sizeof line, "  step %llu %.6f s client %u: %s (%u, %u)\n",
                  static_cast<unsigned long long>(i), static_cast<double>(event.time) / 1e9,
                  event.client, to_string(event.kind).data(), event.what, event.detail);
    text += line;
  }
  return text;
}

}  // namespace leasehold::simulation
