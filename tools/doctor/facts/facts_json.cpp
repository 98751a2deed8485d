#include "doctor/facts/facts_json.hpp"

#include <nlohmann/json.hpp>

namespace shale::tools {

namespace {

using nlohmann::json;

template <class Number>
json limit_json(Number limit) {
  return limit == no_limit<Number> ? json(nullptr) : json(limit);
}

template <class T>
json known_json(const known<T>& fact) {
  if (!fact) return nullptr;
  if constexpr (std::is_same_v<T, std::uint64_t> || std::is_same_v<T, double>)
    return limit_json(*fact);
  else return *fact;
}

json lifetime_json(shared_lifetime lifetime) {
  switch (lifetime) {
    case shared_lifetime::creator:
      return "creator";
    case shared_lifetime::counted:
      return "counted";
    default:
      return "manual";
  }
}

json support_json(const known<mapping_support>& support) {
  if (!support) return nullptr;
  switch (*support) {
    case mapping_support::mapped:
      return "mapped";
    case mapping_support::copied:
      return "copied";
    default:
      return "refused";
  }
}

json state_json(leftover_state state) {
  switch (state) {
    case leftover_state::abandoned:
      return "abandoned";
    case leftover_state::written:
      return "written";
    default:
      return "unclear";
  }
}

template <class T>
json list_json(const known<std::vector<T>>& list) {
  if (!list) return nullptr;
  json result = json::array();
  for (const T& item : *list) result.push_back(facts_json(item));
  return result;
}

json step_json(const pool_step& step) {
  const pool_statistics& pool = step.pool;
  return {{"step", step.name},
          {"live_bytes", pool.live_bytes},
          {"live_blocks", pool.live_blocks},
          {"peak_live_bytes", pool.peak_live_bytes},
          {"cached_bytes", pool.cached_bytes},
          {"idle_bytes", pool.idle_bytes},
          {"mapped_bytes", pool.mapped_bytes},
          {"largest_free_bytes", pool.largest_free_bytes},
          {"hits", pool.hits},
          {"misses", pool.misses},
          {"splits", pool.splits},
          {"coalesces", pool.coalesces}};
}

}  // namespace

json facts_json(const version_facts& facts) {
  json libraries = json::object();
  for (const auto& [library, number] : facts.libraries) libraries[library] = number;
  return {{"shale", facts.shale},
          {"format", facts.format},
          {"compiler", facts.compiler},
          {"kernel", facts.kernel},
          {"libraries", std::move(libraries)}};
}

json facts_json(const processor_facts& facts) {
  return {{"model", known_json(facts.model)},
          {"isa", known_json(facts.kernels)},
          {"forced_isa", facts.forced.empty() ? json(nullptr) : json(facts.forced)},
          {"features", facts.features},
          {"blas", known_json(facts.blas)},
          {"online", facts.online},
          {"usable", facts.usable},
          {"quota", known_json(facts.quota)},
          {"threads", facts.threads},
          {"starts_threads", facts.starts_threads}};
}

json facts_json(const memory_facts& facts) {
  json pressure = nullptr;
  if (facts.pressure)
    pressure = {{"some_10", facts.pressure->some_10},
                {"some_60", facts.pressure->some_60},
                {"full_10", facts.pressure->full_10},
                {"full_60", facts.pressure->full_60}};
  return {{"total_bytes", known_json(facts.total_bytes)},
          {"available_bytes", known_json(facts.available_bytes)},
          {"group_limit_bytes", known_json(facts.group_limit_bytes)},
          {"group_throttle_bytes", known_json(facts.group_throttle_bytes)},
          {"group_used_bytes", known_json(facts.group_used_bytes)},
          {"budget_bytes", facts.budget_bytes},
          {"pressure", std::move(pressure)},
          {"overcommit", known_json(facts.overcommit)},
          {"commit_limit_bytes", known_json(facts.commit_limit_bytes)},
          {"committed_bytes", known_json(facts.committed_bytes)}};
}

json facts_json(const limit_facts& facts) {
  return {{"address_space_bytes", limit_json(facts.address_space_bytes)},
          {"address_space_used_bytes", known_json(facts.address_space_used_bytes)},
          {"data_bytes", limit_json(facts.data_bytes)},
          {"data_used_bytes", known_json(facts.data_used_bytes)},
          {"file_bytes", limit_json(facts.file_bytes)},
          {"descriptors", limit_json(facts.descriptors)},
          {"descriptors_hard", limit_json(facts.descriptors_hard)},
          {"descriptors_used", known_json(facts.descriptors_used)},
          {"mappings_max", known_json(facts.mappings_max)},
          {"mappings_used", known_json(facts.mappings_used)}};
}

json facts_json(const huge_page_facts& facts) {
  return {{"enabled", known_json(facts.enabled)},
          {"defrag", known_json(facts.defrag)},
          {"disabled_for_process", facts.disabled_for_process}};
}

json facts_json(const pool_trial& trial) {
  json steps = json::array();
  for (const pool_step& step : trial.steps) steps.push_back(step_json(step));
  return {{"bytes", trial.bytes},
          {"huge_bytes", known_json(trial.huge_bytes)},
          {"first_seconds", trial.first_seconds},
          {"again_seconds", trial.again_seconds},
          {"steps", std::move(steps)},
          {"all_clear", trial.all_clear}};
}

json facts_json(const shared_segment& segment) {
  return {{"name", segment.name},
          {"bytes", segment.bytes},
          {"lifetime", lifetime_json(segment.lifetime)},
          {"attached", segment.attached},
          {"dead", segment.dead}};
}

json facts_json(const segment_facts& facts) {
  return {{"file_system", known_json(facts.file_system)},
          {"size_bytes", known_json(facts.size_bytes)},
          {"free_bytes", known_json(facts.free_bytes)},
          {"usable", facts.failure.empty()},
          {"segments", list_json(facts.segments)}};
}

json facts_json(const leftover& file) {
  return {{"path", file.path},
          {"target", file.name.target},
          {"bytes", file.bytes},
          {"state", state_json(file.state)}};
}

json facts_json(const file_facts& facts) {
  const auto reason = [](const std::string& why) {
    return why.empty() ? json(nullptr) : json(why);
  };
  return {{"not_opened", reason(facts.not_opened)}, {"not_written", reason(facts.not_written)}};
}

json facts_json(const place_facts& facts) {
  const place_trial& trial = facts.trial;
  return {{"path", facts.path},
          {"folder", facts.folder},
          {"file_system", facts.mount ? json(facts.mount->type) : json(nullptr)},
          {"device", facts.mount ? json(facts.mount->source) : json(nullptr)},
          {"mounted_at", facts.mount ? json(facts.mount->folder) : json(nullptr)},
          {"read_only", facts.mount ? json(facts.mount->read_only) : json(nullptr)},
          {"reading", support_json(facts.reading)},
          {"writing", support_json(facts.writing)},
          {"size_bytes", facts.size_bytes},
          {"free_bytes", facts.free_bytes},
          {"untried", facts.failure.empty() ? json(nullptr) : json(facts.failure)},
          {"files", facts.files},
          {"free_files", facts.free_files},
          {"locks", known_json(trial.locks)},
          {"reserves", known_json(trial.reserves)},
          {"punches", known_json(trial.punches)},
          {"mapped_bytes", trial.mapped_bytes},
          {"huge_bytes", known_json(trial.huge_bytes)},
          {"file", facts.file ? facts_json(*facts.file) : json(nullptr)},
          {"leftovers", list_json(facts.leftovers)}};
}

}  // namespace shale::tools
