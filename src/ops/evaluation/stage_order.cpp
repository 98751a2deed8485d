#include "ops/evaluation/stage_order.hpp"

#include <algorithm>

namespace shale::ops {

using namespace detail;

void stage_order::add(const node_ref& root) {
  for (const auto& value : post_order(root, walk::through_stages, walked_)) level_of_node(*value);
}

stage_levels stage_order::levels() const {
  std::map<const stage*, std::size_t> read_in;  // the first level that reads a stage's result
  stage_levels late(levels_.size());
  for (std::size_t level = levels_.size(); level-- > 0;) {
    for (const auto& current : levels_[level]) {
      const auto reader = read_in.find(current.get());
      const std::size_t latest = (reader == read_in.end() ? levels_.size() : reader->second) - 1;
      const std::size_t chosen = current->reduces ? level : latest;
      late[chosen].push_back(current);
      for (const stage* input : stages_read(*current)) {
        const auto [known, is_new] = read_in.emplace(input, chosen);
        if (!is_new) known->second = std::min(known->second, chosen);
      }
    }
  }
  return late;
}

// Nodes of level 0 read no stage, and neither does what they are computed from. So a long computation
// without stages is not walked again for each stage that reads it.
void stage_order::add_stages_read(const node& value, std::set<const stage*>& to) const {
  std::set<const node*> seen;
  std::vector<const node*> open{&value};
  while (!open.empty()) {
    const node& current = *open.back();
    open.pop_back();
    if (nodes_.at(&current) == 0 || !seen.insert(&current).second) continue;
    if (const auto* staged = std::get_if<staged_leaf>(&current.content)) {
      to.insert(staged->from.get());
      continue;
    }
    for (const auto& input : inputs_of(current, walk::through_stages)) open.push_back(input.get());
  }
}

std::set<const stage*> stage_order::stages_read(const node_ref& value) const {
  std::set<const stage*> result;
  add_stages_read(*value, result);
  return result;
}

std::set<const stage*> stage_order::stages_read(const stage& reader) const {
  std::set<const stage*> result = stages_read(reader.input);
  if (reader.factor) add_stages_read(*reader.factor, result);
  return result;
}

// The number of levels that must have run before the node can be read. The levels of its inputs are
// known already, so this does not recurse deeply.
int stage_order::level_of_node(const node& value) {
  if (const auto known = nodes_.find(&value); known != nodes_.end()) return known->second;
  int level = 0;
  if (const auto* staged = std::get_if<staged_leaf>(&value.content)) {
    level = level_of_stage(staged->from);
  } else {
    for (const auto& input : inputs_of(value, walk::through_stages))
      level = std::max(level, level_of_node(*input));
  }
  nodes_.emplace(&value, level);
  return level;
}

int stage_order::level_of_stage(const std::shared_ptr<const stage>& current) {
  if (const auto known = stages_.find(current.get()); known != stages_.end()) return known->second;
  const int before = std::max(level_of_node(*current->input),
                              current->factor ? level_of_node(*current->factor) : 0);
  if (static_cast<std::size_t>(before) == levels_.size()) levels_.emplace_back();
  levels_[static_cast<std::size_t>(before)].push_back(current);
  stages_.emplace(current.get(), before + 1);
  return before + 1;
}

}  // namespace shale::ops
