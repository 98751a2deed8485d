// From facts to verdicts: what makes Shale slow or fail, and what to do about it. Asks nothing of
// the system.
#pragma once

#include <vector>

#include "doctor/findings.hpp"
#include "doctor/machine.hpp"
#include "doctor/place.hpp"
#include "doctor/pool_trial.hpp"
#include "doctor/segments.hpp"

namespace shale::tools {

std::vector<check> diagnose(const version_facts& facts);
std::vector<check> diagnose(const processor_facts& facts);
std::vector<check> diagnose(const memory_facts& facts);
std::vector<check> diagnose(const limit_facts& facts);
std::vector<check> diagnose(const huge_page_facts& facts, const pool_trial& trial);
std::vector<check> diagnose(const segment_facts& facts);
std::vector<check> diagnose(const place_facts& facts);

}  // namespace shale::tools
