// What `leasehold doctor` found, for a person and for a program.
#pragma once

#include <string>

#include "leasehold/diagnosis.h"

namespace leasehold::cli {

// The worst first; what is ok last, one line each.
std::string doctor_text(const DiagnosisReport& report);
// The names and types of the fields are part of the program's interface.
std::string doctor_json(const DiagnosisReport& report);

}  // namespace leasehold::cli
