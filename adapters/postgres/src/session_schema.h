#pragma once
namespace leasehold::postgres {
inline constexpr const char* kSessionSchema = "";
}
