// Bodies of HTTP messages, taken apart as a connection does it.
#pragma once

#include <string>
#include <string_view>

#include "fuzz/fuzz.h"
#include "gate/src/body.h"

namespace leasehold::fuzz {

struct Body {
  bool bad = false;
  bool done = false;
  std::string data;
  std::string trailer;
  std::size_t consumed = 0;
  bool operator==(const Body&) const = default;
};

// `input` comes in portions; what the decoder has not consumed stays in front of the next one.
inline Body decoded(gate::BodyFrame frame, std::string_view input, std::size_t portion) {
  gate::BodyDecoder decoder(frame);
  Body body;
  std::size_t came = 0;
  while (came < input.size() && !decoder.done()) {
    came += std::min(portion, input.size() - came);
    for (;;) {
      const std::string_view waiting = input.substr(body.consumed, came - body.consumed);
      const auto step = decoder.step(waiting);
      if (!step) {
        body.bad = true;
        return body;
      }
      must(step->consumed <= waiting.size(), "no more is consumed than came");
      must(step->data.size() <= step->consumed, "no more is given out than came");
      body.consumed += step->consumed;
      body.data += step->data;
      if (step->consumed == 0 || decoder.done()) break;
    }
  }
  body.done = decoder.done();
  body.trailer = decoder.trailer();
  return body;
}

// Portions make no difference, and a body that is passed on in chunks is the same body.
inline void check_body(gate::BodyFrame frame, std::string_view input) {
  const Body whole = decoded(frame, input, SIZE_MAX);
  const Body parts = decoded(frame, input, 1);
  must(parts.bad == whole.bad, "portions make no body bad or good");
  if (whole.bad) return;
  must(parts == whole, "portions make no difference");
  must(frame.framing != gate::Framing::length || whole.data.size() <= frame.length,
       "a body is not longer than announced");
  std::string chunks;
  if (!whole.data.empty()) chunks += gate::chunk_start(whole.data.size()) + whole.data + "\r\n";
  const std::string trailer = whole.done ? whole.trailer : "";  // it is checked when it is complete
  chunks += gate::chunk_start(0) + trailer + "\r\n";
  const Body again = decoded({gate::Framing::chunked, 0}, chunks + "next", SIZE_MAX);
  must(again.done && !again.bad && again.data == whole.data && again.trailer == trailer,
       "a body that is passed on is the same");
  must(again.consumed == chunks.size(), "what follows a body is not touched");
}

}  // namespace leasehold::fuzz
