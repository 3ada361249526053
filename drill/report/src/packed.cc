#include "packed.h"

#include <cstdint>
#include <string_view>

namespace leasehold::drill {
namespace {

class Bytes {
 public:
  void number(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) put(static_cast<std::uint8_t>(value | 0x80));
    put(static_cast<std::uint8_t>(value));
  }

  void signed_number(std::int64_t value) {
    const auto doubled = static_cast<std::uint64_t>(value) << 1;
    number(value < 0 ? ~doubled : doubled);
  }

  std::string base64() && {
    if (pending_ == 1) group(2);
    if (pending_ == 2) group(3);
    return std::move(text_);
  }

 private:
  void put(std::uint8_t byte) {
    bits_ |= std::uint32_t{byte} << (16 - 8 * pending_);
    if (++pending_ == 3) group(4);
  }

  // Three bytes make four characters; at the end fewer.
  void group(int characters) {
    constexpr std::string_view kAlphabet =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (int i = 0; i < 4; ++i) {
      text_ += i < characters ? kAlphabet[(bits_ >> (18 - 6 * i)) & 0x3f] : '=';
    }
    bits_ = 0;
    pending_ = 0;
  }

  std::string text_;
  std::uint32_t bits_ = 0;
  int pending_ = 0;
};

class Packing {
 public:
  explicit Packing(const Timeline& timeline) : origin_(timeline.from) {
    for (const Lane& lane : timeline.lanes) add(lane);
  }
  std::string str() && { return std::move(bytes_).base64(); }

 private:
  void add(const Lane& lane) {
    bytes_.number(lane.held.size());
    bytes_.number(lane.faults.size());
    bytes_.number(lane.marks.size());
    begin_list();
    for (const Held& held : lane.held) add(held);
    begin_list();
    for (const FaultSpan& fault : lane.faults) add(fault);
    begin_list();
    for (const Mark& mark : lane.marks) add(mark);
  }

  void add(const Held& held) {
    time(held.from);
    length(held.from, held.until);
    length(held.until, held.to);
    token(held.first_token);
    bytes_.signed_number(held.last_token - held.first_token);
    bytes_.number(held.count - 1);
  }
  void add(const FaultSpan& fault) {
    time(fault.from);
    length(fault.from, fault.to);
    bytes_.number(static_cast<std::uint64_t>(fault.what));
    bytes_.number(fault.count - 1);
  }
  void add(const Mark& mark) {
    time(mark.time);
    bytes_.number(static_cast<std::uint64_t>(mark.sign));
    token(mark.token);
    bytes_.number(mark.count - 1);
  }

  void begin_list() {
    time_ = 0;
    token_ = 0;
  }
  std::int64_t micros(std::int64_t time) const { return (time - origin_) / 1000; }
  // Lists are in order of time, so the distance is never negative.
  void time(std::int64_t time) {
    bytes_.number(static_cast<std::uint64_t>(micros(time) - time_));
    time_ = micros(time);
  }
  void length(std::int64_t from, std::int64_t to) {
    bytes_.number(static_cast<std::uint64_t>(micros(to) - micros(from)));
  }
  void token(std::int64_t token) {
    bytes_.signed_number(token - token_);
    token_ = token;
  }

  const std::int64_t origin_;
  Bytes bytes_;
  std::int64_t time_ = 0;
  std::int64_t token_ = 0;
};

}  // namespace

std::string packed(const Timeline& timeline) {
  return Packing(timeline).str();
}

}  // namespace leasehold::drill
