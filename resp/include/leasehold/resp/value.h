// What travels in RESP2 and RESP3.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::resp {

enum class Type {
  null,  // also RESP2's $-1 and *-1
  simple,
  error,  // also a bulk error
  integer,
  bulk,
  array,
  boolean,
  real,
  big_number,
  verbatim,
  map,
  set,
  push,
};

// One value. Which fields count depends on the type.
struct Value {
  Type type = Type::null;
  std::string text;          // simple, error, bulk, big_number; verbatim, without its format
  std::int64_t integer = 0;  // integer; boolean: 0 or 1
  double real = 0;
  std::vector<Value> items;  // array, set, push; map: key, value, key, value

  bool is_error() const { return type == Type::error; }
  // An item of an array; null if there is none at that place.
  const Value& at(std::size_t index) const;
  // What a map, or RESP2's flat array, has under a key; null if nothing.
  const Value& under(std::string_view key) const;
};

}  // namespace leasehold::resp
