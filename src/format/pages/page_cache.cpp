#include "format/pages/page_cache.hpp"

namespace shale::format {

std::shared_ptr<const page> page_cache::find(const page_ref& ref) {
  const std::lock_guard lock(mutex_);
  const auto found = by_ref_.find(ref);
  if (found == by_ref_.end()) return nullptr;
  recent_.splice(recent_.begin(), recent_, found->second);
  return found->second->content;
}

void page_cache::insert(const page_ref& ref, std::shared_ptr<const page> verified) {
  const std::lock_guard lock(mutex_);
  if (by_ref_.contains(ref)) return;  // another thread read it meanwhile
  recent_.push_front({ref, std::move(verified)});
  by_ref_.emplace(ref, recent_.begin());
  if (recent_.size() > pages_max) {
    by_ref_.erase(recent_.back().ref);
    recent_.pop_back();
  }
}

std::optional<root_fields> page_cache::find_root(std::uint64_t generation, const page_ref& ref) {
  const std::lock_guard lock(mutex_);
  if (!root_ || root_->generation != generation || root_->ref != ref) return std::nullopt;
  return root_->fields;
}

void page_cache::insert_root(std::uint64_t generation, const page_ref& ref,
                             const root_fields& verified) {
  const std::lock_guard lock(mutex_);
  root_.emplace(root_entry{generation, ref, verified});
}

}  // namespace shale::format
