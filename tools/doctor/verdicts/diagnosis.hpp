// Turns facts into verdicts: what makes Shale slow or fail, and what the user can do about it.
// These functions do not query the system.
#pragma once

#include <vector>

#include "doctor/facts/machine.hpp"
#include "doctor/facts/place.hpp"
#include "doctor/facts/pool_trial.hpp"
#include "doctor/facts/segments.hpp"
#include "doctor/verdicts/findings.hpp"

namespace shale::tools {

std::vector<check> diagnose(const version_facts& facts);
std::vector<check> diagnose(const processor_facts& facts);
std::vector<check> diagnose(const memory_facts& facts);
std::vector<check> diagnose(const limit_facts& facts);
std::vector<check> diagnose(const huge_page_facts& facts, const pool_trial& trial);
std::vector<check> diagnose(const segment_facts& facts);
std::vector<check> diagnose(const place_facts& facts);

}  // namespace shale::tools
