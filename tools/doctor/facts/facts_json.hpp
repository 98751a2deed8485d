// Facts as JSON. Scripts rely on these keys. A limit that is not set and an unknown fact are null.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "doctor/facts/machine.hpp"
#include "doctor/facts/place.hpp"
#include "doctor/facts/pool_trial.hpp"
#include "doctor/facts/segments.hpp"

namespace shale::tools {

nlohmann::json facts_json(const version_facts& facts);
nlohmann::json facts_json(const processor_facts& facts);
nlohmann::json facts_json(const memory_facts& facts);
nlohmann::json facts_json(const limit_facts& facts);
nlohmann::json facts_json(const huge_page_facts& facts);
nlohmann::json facts_json(const pool_trial& trial);
nlohmann::json facts_json(const shared_segment& segment);
nlohmann::json facts_json(const segment_facts& facts);
nlohmann::json facts_json(const leftover& file);
nlohmann::json facts_json(const file_facts& facts);
nlohmann::json facts_json(const place_facts& facts);

}  // namespace shale::tools
