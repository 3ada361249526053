// Several drills, one after the other, and one table of them.
#pragma once

#include <functional>
#include <vector>

#include "cli/command/exit_status.h"
#include "drill/runner/run.h"
#include "leasehold/error.h"

namespace leasehold::cli {

// One drill per store and fault of `plan`. Store "all": every one that a drill can start. With
// `each_fault`: each fault by itself, with pauses, instead of all of them together.
std::vector<drill::Plan> drills_of(const drill::Plan& plan, bool each_fault);

using RunDrill = std::function<Result<drill::Drilled>(const drill::Plan&)>;

// Prints a table, for a page in Markdown if asked; a fault that a store cannot have is told with
// its reason. A drill that could not be held is told on stderr, and the others go on. Gives the
// exit status: damage if any drill shows it, else that of one that could not be held, else the
// worst.
ExitStatus tell_drills(const std::vector<drill::Plan>& plans, const RunDrill& run, bool markdown);

}  // namespace leasehold::cli
