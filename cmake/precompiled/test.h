// The headers that are included most in tests (leasehold_precompile).
#include "common.h"

#include <filesystem>
#include <fstream>
#include <future>
#include <sstream>

#include <gmock/gmock.h>
