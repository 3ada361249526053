// Prints the page of a made-up drill, to be looked at.
#include <cstdlib>
#include <iostream>
#include <string_view>

#include "leasehold/drill/report.h"
#include "made_up.h"

int main(int argc, char** argv) {
  using namespace leasehold::drill;
  MadeUpPlan plan;
  if (argc > 1) plan.seconds = static_cast<unsigned>(std::atoi(argv[1]));
  if (argc > 2) plan.cycles_per_second = static_cast<unsigned>(std::atoi(argv[2]));
  plan.fenced = !(argc > 3 && std::string_view(argv[3]) == "damage");
  const MadeUp made = made_up(plan);
  std::cout << to_html(made.outcome, made.history);
}
