// Commands to a running gate, over its socket.
//
// Rules: every line is answered by "ok" and lines of names, or by one line of error. No command
// lowers a mark within its lineage; one that fails changes nothing.
#include <string>

#include "fuzz/fuzz.h"
#include "gate/src/control.h"
#include "gate/src/text.h"

namespace leasehold::fuzz {
namespace {

using namespace gate;

ResourceStates some_states() {
  const auto lineage = Lineage::parse(std::string(32, '7') + "/lock").value();
  const fence::Mark held{
      .lineage = lineage,
      .holder = fence::Mark::Holder{TokenNumber::of(34).value(),
                                    RequestId::from_hex(std::string(32, 'a')).value()}};
  ResourceStates states;
  states[ResourceName::parse("a").value()] = {.mark = held};
  states[ResourceName::parse("b c").value()] = {.mark = held, .open = true};
  states[ResourceName::parse("d").value()] = {
      .mark = {.lineage = lineage, .least = TokenNumber::of(50).value()}};
  return states;
}

void check_change(const ResourceStates& before, const ResourceName& name,
                  const ResourceState& after) {
  const auto found = before.find(name);
  if (found == before.end() || found->second.mark.lineage != after.mark.lineage) return;
  must(after.mark.threshold() >= found->second.mark.threshold(), "no command lowers a mark");
}

void check_answer(const std::string& answer) {
  must(answer.ends_with('\n'), "an answer is whole lines");
  if (answer.starts_with("ok\n")) {
    must(answer.find_first_of(" \t\r") == std::string::npos, "names are encoded");
    return;
  }
  must(answer.starts_with("error invalid ") || answer.starts_with("error unavailable "),
       "an error has a word that the other side knows");
  must(is_printable(std::string_view(answer).substr(0, answer.size() - 1)), "an error is one line");
}

}  // namespace
}  // namespace leasehold::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace leasehold::fuzz;
  static const ResourceStates states = some_states();
  ResourceStates now = states;
  Version written = 0;
  Turns turns(
      states,
      [&](const leasehold::ResourceName& name, const ResourceState& state) {
        check_change(now, name, state);
        now[name] = state;
        return ++written;
      },
      TurnOptions{.max_resources = 8});
  std::string_view rest = text_of(data, size);
  while (!rest.empty()) {
    const std::string line(take_until(rest, '\n'));
    const Version before = written;
    Version wait_for = 0;
    const std::string answer = answer_command(turns, line, wait_for);
    check_answer(answer);
    must(answer.starts_with("ok\n") || written == before, "what fails changes nothing");
    must(wait_for <= written, "nobody waits for what is not written");
    turns.durable(written);
  }
  return 0;
}
