#include "ops/evaluation/stage_order.hpp"

#include <algorithm>

namespace shale::ops {

using namespace detail;

void stage_order::add(const node_ref& root) {
  for (const auto& value : post_order(root, walk::through_stages, walked_)) enter(*value);
  nodes_.at(root.get()).is_output = true;
  count_use(*root);
}

// The inputs of the node have been entered.
void stage_order::enter(const node& value) {
  node_facts facts;
  for (const auto& input : inputs_of(value, walk::through_stages)) {
    facts.level = std::max(facts.level, nodes_.at(input.get()).level);
    count_use(*input);
  }
  if (const auto* staged = std::get_if<staged_leaf>(&value.content)) {
    facts.stage = number_of(staged->from, facts.level);
    ++facts.level;
    level_count_ = std::max(level_count_, facts.level);
  }
  nodes_.emplace(&value, facts);
  order_.push_back(&value);
}

std::size_t stage_order::number_of(const std::shared_ptr<const stage>& made, std::size_t level) {
  if (const auto known = numbers_.find(made.get()); known != numbers_.end()) return known->second;
  std::size_t number = stages_.size();
  if (const node* whole = computed_as_a_whole(*made))
    number = whole_.try_emplace(whole, number).first->second;
  if (number == stages_.size()) stages_.push_back({made, level});
  else stages_[number].joined.push_back(made.get());
  numbers_.emplace(made.get(), number);
  return number;
}

void stage_order::count_use(const node& value) {
  const std::size_t number = nodes_.at(&value).stage;
  if (number != none) ++stages_[number].uses;
}

// The level in which a stage runs. Its first reader is known.
std::size_t stage_order::level_of(const stage_facts& known) const {
  return known.made->reduces ? known.level : std::min(known.first_reader, level_count_) - 1;
}

// Goes from the outputs to the leaves, so all readers of a node come before it. A stage may have
// several leaves. Its level is final when the last of them has been looked at. Until then, the
// level may be too high. This does no harm, because each input takes the smallest level of its
// readers.
void stage_order::find_first_readers() {
  for (auto value = order_.rbegin(); value != order_.rend(); ++value) {
    const node_facts& here = nodes_.at(*value);
    if (here.level == 0) continue;
    std::size_t level = here.first_reader;
    if (here.stage != none) {
      stage_facts& read = stages_[here.stage];
      read.first_reader = std::min(read.first_reader, level);
      level = level_of(read);
    }
    for (const auto& input : inputs_of(**value, walk::through_stages)) {
      node_facts& facts = nodes_.at(input.get());
      facts.first_reader = std::min(facts.first_reader, level);
    }
  }
}

// The same for the last readers. The levels of all stages are known.
void stage_order::find_last_readers() {
  for (auto value = order_.rbegin(); value != order_.rend(); ++value) {
    const node_facts& here = nodes_.at(*value);
    if (here.level == 0) continue;
    std::size_t level = here.is_output ? level_count_ : here.last_reader;
    if (here.stage != none) {
      stage_facts& read = stages_[here.stage];
      read.last_reader = std::max(read.last_reader, level);
      level = level_of(read);
    }
    for (const auto& input : inputs_of(**value, walk::through_stages)) {
      node_facts& facts = nodes_.at(input.get());
      facts.last_reader = std::max(facts.last_reader, level);
    }
  }
}

stage_levels stage_order::levels() {
  find_first_readers();
  find_last_readers();
  std::vector<std::vector<const stage_facts*>> early(level_count_);
  for (const stage_facts& known : stages_) early[known.level].push_back(&known);
  stage_levels result(level_count_);
  for (std::size_t level = level_count_; level-- > 0;)
    for (const stage_facts* known : early[level]) result[level_of(*known)].push_back(known->made);
  return result;
}

const stage_order::stages& stage_order::joined_with(const stage& computed) const {
  return stages_[numbers_.at(&computed)].joined;
}

std::size_t stage_order::uses(const stage& computed) const {
  return stages_[numbers_.at(&computed)].uses;
}

// Goes from the last reader to the first one. So the first reader here that finds a result is the
// last one that reads it. Nodes that a later reader has looked at are skipped, because they lead to
// no other results. Nodes of level 0 are skipped too, because neither they nor their inputs read a
// stage.
std::vector<stage_order::stages> stage_order::read_last(std::span<const reader> readers,
                                                        std::size_t level) {
  std::vector<stages> result(readers.size());
  std::set<const node*> seen;
  std::set<std::size_t> found;
  for (std::size_t k = readers.size(); k-- > 0;) {
    reader open = readers[k];
    while (!open.empty()) {
      const node& value = *open.back();
      open.pop_back();
      const node_facts& facts = nodes_.at(&value);
      ++nodes_looked_at_;
      if (facts.level == 0 || !seen.insert(&value).second) continue;
      if (facts.stage == none) {
        for (const auto& input : inputs_of(value, walk::through_stages))
          open.push_back(input.get());
        continue;
      }
      const stage_facts& read = stages_[facts.stage];
      if (read.last_reader == level && found.insert(facts.stage).second)
        result[k].push_back(read.made.get());
    }
  }
  return result;
}

}  // namespace shale::ops
