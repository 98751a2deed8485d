#include "format/space/unused_section.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "shale/error.hpp"

namespace shale::format {

// The whole section is read, so free ranges are appended in the order of the tree.
// Ranges that touch become one range; the entries of such a run are written anew later, and so are
// those of ranges that become free.
unused_section::unused_section(const tree& map_tree, std::uint64_t end_of_file,
                               generation_set protected_generations)
    : protected_(std::move(protected_generations)) {
  std::uint64_t previous_end = 0;
  byte_interval run{};  // free space that is not appended yet
  for (auto cursor = map_tree.seek(space_key(space_section::unused, 0)); cursor.valid();
       cursor.next()) {
    ++entries_read_;
    const auto record = decode_space_record(cursor.key(), cursor.short_value(), end_of_file);
    if (!record || record->offset < previous_end)
      throw error(errc::corrupt, "the space map is damaged",
                  {fmt::format("an entry after byte {} is not possible", previous_end)});
    const std::uint64_t end = record->offset + record->entry.bytes;
    previous_end = end;
    if (!record->entry.is_free() &&
        protected_.overlaps(record->entry.born, record->entry.freed)) {  // space.2
      freed_.emplace_hint(freed_.end(), record->offset, record->entry);
      continue;
    }
    if (!record->entry.is_free()) touched_.insert(record->offset);
    if (run.end != 0 && run.end == record->offset) {
      touched_.insert({run.first, record->offset});
      run.end = end;
      continue;
    }
    if (run.end != 0) free_.append(run.first, run.end);
    run = {record->offset, end};
  }
  if (run.end != 0) free_.append(run.first, run.end);
}

void unused_section::protect(generation_set protected_generations) {
  protected_ = std::move(protected_generations);
  for (auto range = freed_.begin(); range != freed_.end();) {
    const auto& [first, entry] = *range;
    if (protected_.overlaps(entry.born, entry.freed)) {  // space.2
      ++range;
      continue;
    }
    touched_.insert(first);
    free_.add(first, first + entry.bytes);
    range = freed_.erase(range);
  }
}

void unused_section::add_freed(std::uint64_t first, std::uint64_t end, std::uint64_t born,
                               std::uint64_t freed) {
  space_entry entry{end - first, born, freed};
  const auto joins = [&](const space_entry& other) {
    return other.born == entry.born && other.freed == entry.freed;
  };
  auto after = freed_.lower_bound(first);
  if (after != freed_.end() && after->first == end && joins(after->second)) {
    entry.bytes += after->second.bytes;
    touched_.insert(after->first);
    after = freed_.erase(after);
  }
  if (after != freed_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second.bytes == first && joins(before->second)) {
      before->second.bytes += entry.bytes;
      touched_.insert(before->first);
      return;
    }
  }
  freed_.emplace(first, entry);
  touched_.insert(first);
}

bool unused_section::enter_into(tree& map_tree) {
  std::set<std::uint64_t> touched = free_.take_touched();
  touched.merge(std::exchange(touched_, {}));
  bool changed = false;
  std::vector<std::uint64_t> gone;
  for (const std::uint64_t offset : touched) {
    space_entry wanted;
    if (const auto free = free_.ranges().find(offset); free != free_.ranges().end())
      wanted.bytes = free->second - offset;
    else if (const auto freed = freed_.find(offset); freed != freed_.end()) wanted = freed->second;
    const std::string key = space_key(space_section::unused, offset);
    if (wanted.bytes == 0) {
      gone.push_back(offset);
      continue;
    }
    const auto value = encode_space_entry(wanted);
    const auto have = map_tree.find(key);
    if (have && std::equal(value.begin(), value.end(), have->begin(), have->end())) continue;
    map_tree.insert(key, value);
    changed = true;
  }
  for (const std::uint64_t offset : gone)
    changed |= map_tree.erase(space_key(space_section::unused, offset));
  return changed;
}

}  // namespace shale::format
