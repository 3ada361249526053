// Another process that writes through the etcd fence, told what to do on its standard input. gRPC
// does not survive a fork, so the children of the suite of all fences are real programs instead.
//
//   fence_worker URL DATA
//     read RESOURCE TOKEN LINEAGE REQUEST            the data of RESOURCE is the key DATA +
//     RESOURCE write RESOURCE TOKEN LINEAGE REQUEST [VALUE]
//   answers "ok [VALUE]", "refused", or "failed SENTENCE"
#include <iostream>
#include <sstream>
#include <string>

#include "leasehold/etcd/fence.h"

namespace {

using namespace leasehold;

std::string answer(const etcd::Resources& resources, const std::string& data,
                   const std::string& order) {
  std::istringstream words(order);
  std::string what, resource, number, lineage, request, value;
  words >> what >> resource >> number >> lineage >> request >> value;
  const Token token = Token::parse(number, lineage, request).value();
  const std::string key = data + resource;
  const etcd::Operation operation =
      what == "read" ? etcd::Operation(etcd::Get{key}) : etcd::Operation(etcd::Put{key, value});
  const auto done = resources.fence(resource).value().transaction(
      token, {operation}, {.timeout = std::chrono::seconds(20)});
  if (!done && done.error().code == ErrorCode::fenced_out) return "refused";
  if (!done) return "failed " + to_string(done.error());
  return "ok " + (done->values.empty() ? "" : done->values.front().value_or(""));
}

}  // namespace

int main(int, char** arguments) {
  const auto resources = etcd::Resources::open(arguments[1]).value();
  for (std::string order; std::getline(std::cin, order);) {
    std::cout << answer(resources, arguments[2], order) << std::endl;
  }
}
