// Where a body ends, and what is in it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "head.h"

namespace leasehold::gate {

// Takes a body apart as its bytes come. Passive: bytes in, data out, in constant memory.
class BodyDecoder {
 public:
  explicit BodyDecoder(BodyFrame frame);

  struct Step {
    std::size_t consumed = 0;  // bytes of the input that are done with; 0: it needs more of them
    std::string_view data;     // a part of the body, inside the input
  };
  // Call it until it is done or consumes nothing. Fails if the chunks are malformed.
  [[nodiscard]] Parsed<Step> step(std::string_view input);

  // The stream has ended. True if the body is complete by that.
  bool end_of_stream();

  bool done() const { return state_ == State::done; }

  // Behind the last chunk: "Name: value\r\n" lines, checked; empty if there are none.
  const std::string& trailer() const { return trailer_; }

 private:
  enum class State { data, chunk_size, chunk_data, chunk_end, trailer, done };

  Parsed<Step> take_data(std::string_view input, State next);
  Parsed<Step> take_chunk_size(std::string_view input);
  Parsed<Step> take_chunk_end(std::string_view input);
  Parsed<Step> take_trailer(std::string_view input);

  BodyFrame frame_;
  State state_;
  std::uint64_t left_ = 0;
  std::string trailer_;
};

// "1f\r\n", to stand before a chunk; "\r\n" stands behind it.
std::string chunk_start(std::size_t size);

}  // namespace leasehold::gate
