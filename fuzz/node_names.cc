// Keys of etcd and nodes of ZooKeeper, which any client may have written, and what stands in them.
//
// Rules: every text has a name of its own, which is read as it was written and has no slash. Names
// that we would not have written are not taken for ours. Labels and notes are printable. In a queue
// whoever holds fits to all who hold before it.
#include <algorithm>
#include <string>
#include <vector>

#include "adapters/etcd/src/keys.h"
#include "adapters/etcd/src/version.h"
#include "adapters/zookeeper/src/node_names.h"
#include "adapters/zookeeper/src/queue.h"
#include "fuzz/fuzz.h"

namespace leasehold::fuzz {
namespace {

template <class Encode, class Decode>
void check_names(std::string_view text, Encode encode, Decode decode) {
  const std::string name = encode(text);
  must(name.find('/') == std::string::npos && is_printable(name), "a name is one part of a path");
  must(decode(name) == text, "a name is read as it was written");
  if (const auto decoded = decode(text)) {
    must(encode(*decoded) == text, "what we would not have written is not ours");
  }
}

void check_etcd(std::string_view text) {
  const etcd::Keys keys("leasehold/");
  for (const std::string& key : {std::string(text), "leasehold/" + std::string(text)}) {
    const auto place = keys.parse(key);
    if (!place) continue;
    const std::string base = place->outside ? keys.known_as(place->lock) : keys.folder(place->lock);
    must(base + std::string(place->leaf) == key, "a key is in its lock's folder or at its name");
    must(key >= keys.locks_begin() && key < keys.locks_end(), "a lock's key is among the locks");
    const RequestId request = etcd::request_of(place->leaf, 7);
    must(etcd::request_of(place->leaf, 7) == request, "a key's request stays the same");
  }
  if (const auto leaf = etcd::Leaf::parse(text)) {
    const auto again = etcd::Leaf::parse(etcd::leaf_of(leaf->request, leaf->mode));
    must(again && again->request == leaf->request && again->mode == leaf->mode,
         "a request and its mode are read as they were written");
    must(leaf->mode.check().has_value(), "no mode that could not be asked for");
  }
  for (const std::string& folder : {keys.slots(), keys.set_permits()}) {
    const auto place = etcd::Keys::parse_numbered(folder + std::string(text), folder);
    if (!place) continue;
    const std::string name = etcd::percent_encode(place->lock.str());
    must(name + "/" + std::to_string(place->number) == text,
         "a lock and a number are read as they were written");
  }
  if (const auto value = etcd::OwnValue::parse(text)) {
    must(is_printable(value->owner) && is_printable(value->note),
         "labels and notes can be printed");
    const auto again = etcd::OwnValue::parse(value->str());
    must(again && again->state == value->state && again->since_ms == value->since_ms &&
             again->owner == value->owner && again->note == value->note,
         "a value is read as it was written");
  }
  if (const auto record = etcd::decode_record(text)) {
    const auto again = etcd::decode_record(etcd::encode_record(*record));
    must(again && again->parameters == record->parameters && again->result == record->result,
         "a record is read as it was written");
  }
  if (const auto version = etcd::Version::parse(text)) {
    must(version->major >= 0 && version->minor >= 0 && version->patch >= 0,
         "a version has no negative part");
    (void)etcd::known_fault(*version);
  }
}

void check_queue(const std::vector<std::string>& names, const zookeeper::Slots& slots) {
  const zookeeper::Queue queue(names);
  for (std::size_t place = 0; place < queue.size(); ++place) {
    if (!queue.fits(place)) {
      const auto waits_for = queue.waits_for(place, slots);
      must(waits_for ? *waits_for < place : queue.mode(place).is_permit(),
           "one waits for somebody before it, or as a permit for anybody");
      continue;
    }
    for (std::size_t before = 0; before < place; ++before) {
      must(queue.fits(before) && !queue.mode(place).is_exclusive() &&
               queue.mode(before).kind() == queue.mode(place).kind(),
           "who fits comes after its own kind alone");
    }
    if (queue.mode(place).is_permit()) {
      must(queue.with_slots_up_to(place, slots).of(queue.number(place)).has_value(),
           "a permit that fits has a slot");
    }
  }
}

void check_zookeeper(std::string_view text) {
  if (const auto label = zookeeper::Label::parse(text)) {
    must(is_printable(label->owner) && is_printable(label->note), "a label can be printed");
    must(label->session_ms >= 0, "no session lasts less than nothing");
    const auto again = zookeeper::Label::parse(label->str());
    must(again && again->session_ms == label->session_ms && again->owner == label->owner &&
             again->note == label->note,
         "a label is read as it was written");
  }
  const auto slots = zookeeper::Slots::parse(text);
  if (slots) {
    const auto again = zookeeper::Slots::parse(slots->str());
    must(again && again->str() == slots->str(), "slots are read as they were written");
  }
  if (const auto store = zookeeper::lineage_in(text)) {
    must(zookeeper::lineage_text(*store) == text, "a lineage is read as it was written");
  } else {
    must(is_printable(zookeeper::why_not_ours("/x", text).message), "a refusal is one line");
  }
  std::vector<std::string> names;
  for (std::string_view rest = text; !rest.empty();) {
    names.emplace_back(take_until(rest, '\n'));
  }
  check_queue(names, slots.value_or(zookeeper::Slots()));
  const auto children = zookeeper::in_order(names);
  must(children.size() <= names.size(), "nobody is invented");
  std::reverse(names.begin(), names.end());
  const auto reversed = zookeeper::in_order(names);
  must(children.size() == reversed.size(), "nobody is lost");
  for (std::size_t i = 0; i < children.size(); ++i) {
    must(children[i].name == reversed[i].name && children[i].request == reversed[i].request,
         "the order does not depend on how the names came");
  }
}

void check_own_node(std::string_view text) {
  if (text.size() < 16) return;
  RequestId::Bytes bytes;
  std::copy_n(text.begin(), bytes.size(), bytes.begin());
  const RequestId request(bytes);
  for (const auto recipe : {zookeeper::Recipe::curator, zookeeper::Recipe::kazoo}) {
    const std::string name = zookeeper::node_prefix(request, recipe) + "0000000042";
    const auto children = zookeeper::in_order({name});
    must(children.size() == 1 && children[0].request == request, "our own node is found again");
  }
  const auto permits = 1 + static_cast<unsigned char>(text.back()) * 39;
  for (const Mode mode : {Mode::exclusive(), Mode::shared(), Mode::permit_of(permits)}) {
    const auto curator = zookeeper::Recipe::curator;
    const std::string name = zookeeper::node_prefix(request, curator, mode) + "0000000042";
    must(zookeeper::mode_of(name) == mode, "its mode is read as it was written");
    must(name.starts_with(zookeeper::request_prefix(request, curator)), "in every mode");
  }
}

}  // namespace
}  // namespace leasehold::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace leasehold;
  const std::string_view text = fuzz::text_of(data, size);
  fuzz::check_names(text, etcd::percent_encode, etcd::percent_decode);
  fuzz::check_names(text, zookeeper::encode, zookeeper::decode);
  fuzz::check_etcd(text);
  fuzz::check_zookeeper(text);
  fuzz::check_own_node(text);
  return 0;
}
