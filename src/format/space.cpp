#include "format/space.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "format/bytes.hpp"
#include "shale/error.hpp"
#include "shale/index.hpp"

namespace shale::format {
namespace {

constexpr std::size_t key_bytes = 9;
constexpr std::size_t value_bytes = 24;

// Chunks of one transaction are packed into stretches of at most this, where they fill old space.
constexpr std::uint64_t stretch_bytes_max = 8u << 20;

// Rounds of `settle` that place pages where they fit best; later ones append to the file, which
// only ever lengthens one entry of the map and so changes no further page.
constexpr int fitting_rounds = 6;

constexpr std::uint64_t up(std::uint64_t value, std::uint64_t alignment) noexcept {
  return (value + alignment - 1) / alignment * alignment;
}

std::uint64_t whole_pages(std::uint64_t first, std::uint64_t end) noexcept {
  const std::uint64_t start = up(first, page_bytes);
  const std::uint64_t stop = end / page_bytes * page_bytes;
  return stop > start ? stop - start : 0;
}

std::array<std::byte, value_bytes> encode(const space_entry& entry) noexcept {
  std::array<std::byte, value_bytes> value;
  store(value.data(), entry.bytes);
  store(value.data() + 8, entry.born);
  store(value.data() + 16, entry.freed);
  return value;
}

[[noreturn]] void throw_corrupt(const char* what, std::uint64_t first, std::uint64_t end) {
  throw error(errc::corrupt, "the space map contradicts what the container refers to",
              {fmt::format("bytes {} to {}: {}", first, end, what)});
}

}  // namespace

std::string space_key(space_section section, std::uint64_t offset) {
  std::string key(1, static_cast<char>(section));
  append_ordered(key, offset);
  return key;
}

std::optional<space_record> decode_space_record(std::string_view key, bytes_view value,
                                                std::uint64_t end_of_file) noexcept {
  if (key.size() != key_bytes || value.size() != value_bytes) return std::nullopt;
  space_record record{};
  record.section = static_cast<space_section>(key[0]);
  record.offset = load_ordered(key, 1);
  record.entry = {load<std::uint64_t>(value.data()), load<std::uint64_t>(value.data() + 8),
                  load<std::uint64_t>(value.data() + 16)};
  const space_entry& entry = record.entry;
  const bool is_live = record.section == space_section::live;
  if (!is_live && record.section != space_section::unused) return std::nullopt;
  if (record.offset < first_extent_offset || record.offset > end_of_file ||
      record.offset % chunk_alignment != 0 || entry.bytes == 0 ||
      entry.bytes % chunk_alignment != 0 || entry.bytes > end_of_file - record.offset)
    return std::nullopt;
  const bool has_life = entry.born > 0 && entry.born < entry.freed;
  if (is_live ? !has_life || entry.freed != space_entry::never
              : !(entry.is_free() || (has_life && entry.freed != space_entry::never)))
    return std::nullopt;
  return record;
}

bool lives_in(std::uint64_t born, std::uint64_t freed,
              const std::vector<generation_range>& generations) noexcept {
  return std::any_of(generations.begin(), generations.end(), [&](const generation_range& range) {
    return range.first < freed && range.last >= born;
  });
}

// ---- free_ranges ------------------------------------------------------------------------------

void free_ranges::insert(std::uint64_t first, std::uint64_t end) {
  ranges_.emplace(first, end);
  touched_.insert(first);
  if (const std::uint64_t pages = whole_pages(first, end); pages > 0) {
    by_pages_.emplace(pages, first);
    page_total_ += pages;
  }
}

void free_ranges::remove(map::iterator at) {
  const auto [first, end] = *at;
  ranges_.erase(at);
  touched_.insert(first);
  if (const std::uint64_t pages = whole_pages(first, end); pages > 0) {
    by_pages_.erase({pages, first});
    page_total_ -= pages;
  }
}

void free_ranges::add(std::uint64_t first, std::uint64_t end) {
  if (first == end) return;
  const auto after = ranges_.lower_bound(first);
  if (after != ranges_.begin() && std::prev(after)->second == first) {
    first = std::prev(after)->first;
    remove(std::prev(after));
  }
  if (after != ranges_.end() && after->first == end) {
    end = after->second;
    remove(after);
  }
  insert(first, end);
}

void free_ranges::take(std::uint64_t first, std::uint64_t end) {
  if (first == end) return;
  const auto at = std::prev(ranges_.upper_bound(first));
  const auto [old_first, old_end] = *at;
  assert(old_first <= first && end <= old_end);
  remove(at);
  if (old_first != first) insert(old_first, first);
  if (end != old_end) insert(end, old_end);
}

std::optional<std::uint64_t> free_ranges::find(std::uint64_t bytes, std::uint64_t alignment) const {
  for (auto at = by_pages_.lower_bound({bytes, 0}); at != by_pages_.end(); ++at) {
    const std::uint64_t start = up(at->second, alignment);
    const std::uint64_t end = ranges_.find(at->second)->second;
    if (start <= end && bytes <= end - start) return start;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> free_ranges::ending_at(std::uint64_t end) const {
  const auto after = ranges_.lower_bound(end);
  if (after == ranges_.begin() || std::prev(after)->second != end) return std::nullopt;
  return std::prev(after)->first;
}

std::optional<std::pair<std::uint64_t, std::uint64_t>> free_ranges::largest() const {
  if (by_pages_.empty()) return std::nullopt;
  const auto [pages, offset] = *by_pages_.rbegin();
  const std::uint64_t first = up(offset, page_bytes);
  return std::pair(first, first + pages);
}

// ---- space_map --------------------------------------------------------------------------------

space_map::space_map(tree& books, std::uint64_t generation, std::uint64_t end_of_file,
                     std::vector<generation_range> protected_generations)
    : books_(&books),
      generation_(generation),
      end_(end_of_file),
      protected_(std::move(protected_generations)) {
  std::uint64_t previous_end = 0;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> unchanged;
  for (auto at = books.seek(space_key(space_section::unused, 0)); at.valid(); at.next()) {
    const auto record = decode_space_record(at.key(), at.short_value(), end_of_file);
    if (!record || record->offset < previous_end)
      throw error(errc::corrupt, "the space map is damaged",
                  {fmt::format("an entry behind byte {} is not possible", previous_end)});
    const std::uint64_t end = record->offset + record->entry.bytes;
    previous_end = end;
    if (record->entry.is_free()) unchanged.emplace_back(record->offset, end);
    if (!record->entry.is_free() &&
        lives_in(record->entry.born, record->entry.freed, protected_)) {  // space.2
      freed_.emplace(record->offset, record->entry);
    } else {
      free_.add(record->offset, end);
      touched_.insert(record->offset);  // it may have been joined to the one before
    }
  }
  touched_.merge(free_.take_touched());
  for (const auto& [first, end] : unchanged) {
    const auto range = free_.ranges().find(first);
    if (range != free_.ranges().end() && range->second == end) touched_.erase(first);
  }
}

// New space at the end of the file, making use of free space that ends there.
extent space_map::grow(std::uint64_t bytes, std::uint64_t alignment) {
  const std::uint64_t tail = free_.ending_at(end_).value_or(end_);
  const std::uint64_t first = up(tail, alignment);
  if (bytes > file_bytes_max || first > file_bytes_max - bytes)
    throw error(errc::out_of_space, "the container would be too large",
                {fmt::format("{} bytes from byte {} on, at most {} are possible", bytes, first,
                             file_bytes_max)});
  if (first < end_) free_.take(first, end_);
  else free_.add(end_, first);
  end_ = first + bytes;
  return {first, bytes};
}

extent space_map::allocate(std::uint64_t bytes, std::uint64_t alignment) {
  const std::uint64_t space = page_space(bytes);
  extent found{0, space};
  if (const auto first = free_.find(space, alignment)) {
    free_.take(*first, *first + space);
    found.offset = *first;
  } else {
    found = grow(space, alignment);
  }
  allocated_.add(found.offset, found.end());
  return {found.offset, bytes};
}

extent space_map::allocate_chunk(std::uint64_t stored_bytes) {
  const std::uint64_t space = chunk_space(stored_bytes);
  if (chunks_end_ - chunks_at_ < space) {
    const std::uint64_t missing = page_space(space - (chunks_end_ - chunks_at_));
    if (chunks_end_ == end_ && chunks_at_ != 0 && end_ <= file_bytes_max - missing) {
      end_ += missing;
      chunks_end_ = end_;
    } else {
      close_chunks();
      const std::uint64_t pages = page_space(space);
      if (const auto first = free_.find(pages, page_bytes)) {
        const auto range = std::prev(free_.ranges().upper_bound(*first));
        const std::uint64_t most = *first + std::max(pages, stretch_bytes_max);
        chunks_at_ = *first;
        chunks_end_ = std::min(range->second / page_bytes * page_bytes, most);
        free_.take(chunks_at_, chunks_end_);
      } else {
        const extent fresh = grow(pages, page_bytes);
        chunks_at_ = fresh.offset;
        chunks_end_ = fresh.end();
      }
    }
  }
  const extent found{chunks_at_, stored_bytes};
  chunks_at_ += space;
  allocated_.add(found.offset, chunks_at_);
  return found;
}

void space_map::close_chunks() {
  free_.add(chunks_at_, chunks_end_);
  chunks_at_ = chunks_end_ = 0;
}

std::vector<std::uint64_t> space_map::allocate_pages(std::size_t count) {
  std::vector<std::uint64_t> pages;
  const auto use = [&](std::uint64_t first, std::uint64_t end) {
    allocated_.add(first, end);
    for (; first < end; first += page_bytes) pages.push_back(first);
  };
  std::uint64_t missing = count * page_bytes;
  const bool together = free_.find(missing, page_bytes).has_value();
  // Together is best for the map and for reading; pieces are used when much lies idle in them.
  if (!together && free_.page_total() >= 4 * missing) {
    while (missing > 0) {
      const auto [first, end] = *free_.largest();
      const std::uint64_t stop = std::min(end, first + missing);
      free_.take(first, stop);
      use(first, stop);
      missing -= stop - first;
    }
  } else if (missing > 0) {
    const extent run = allocate(missing, page_bytes);
    allocated_.subtract(run.offset, run.end());
    use(run.offset, run.end());
  }
  return pages;
}

void space_map::release(std::uint64_t offset, std::uint64_t bytes) {
  const std::uint64_t end = offset + bytes;
  if (allocated_.contains(offset, end)) {  // space.4
    allocated_.subtract(offset, end);
    free_.add(offset, end);
    return;
  }
  if (allocated_.overlaps(offset, end) || released_.overlaps(offset, end))
    throw_corrupt("two things lie there", offset, end);
  released_.add(offset, end);
}

void space_map::withdraw(const extent& got, std::uint64_t end_before) {
  release(got.offset, got.bytes);
  if (end_before < end_) free_.take(end_before, end_);
  end_ = end_before;
}

void space_map::add_freed(std::uint64_t first, std::uint64_t end, std::uint64_t born) {
  space_entry entry{end - first, born, generation_};
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

// Cuts what was released out of the live section; it becomes freed, with the life that it had.
bool space_map::enter_released() {
  // The tree's own pages are released while this runs: they are for the next round.
  const range_set batch = std::exchange(released_, {});
  for (const auto& range : batch.ranges()) {
    const std::uint64_t end = range.second;
    for (std::uint64_t first = range.first; first < end;) {
      const auto at = books_->seek_floor(space_key(space_section::live, first));
      std::optional<space_record> record;
      if (at.valid()) record = decode_space_record(at.key(), at.short_value(), end_);
      if (!record || record->section != space_section::live ||
          record->offset + record->entry.bytes <= first)
        throw_corrupt("in use, but not live in the map", first, end);
      const std::uint64_t live_first = record->offset;
      const std::uint64_t live_end = live_first + record->entry.bytes;
      const std::uint64_t stop = std::min(end, live_end);
      if (stop < live_end)
        books_->insert(space_key(space_section::live, stop),
                       encode({live_end - stop, record->entry.born, space_entry::never}));
      if (live_first < first)
        books_->insert(space_key(space_section::live, live_first),
                       encode({first - live_first, record->entry.born, space_entry::never}));
      else books_->erase(space_key(space_section::live, live_first));
      add_freed(first, stop, record->entry.born);
      first = stop;
    }
  }
  return !batch.empty();
}

bool space_map::enter_allocated() {
  bool changed = false;
  const range_set wanted = allocated_;
  for (const auto& [first, end] : wanted.ranges()) {
    const auto have = entered_.ranges().find(first);
    if (have != entered_.ranges().end() && have->second == end) continue;
    books_->insert(space_key(space_section::live, first),
                   encode({end - first, generation_, space_entry::never}));
    changed = true;
  }
  for (const auto& [first, end] : entered_.ranges()) {
    if (wanted.ranges().contains(first)) continue;
    books_->erase(space_key(space_section::live, first));
    changed = true;
  }
  entered_ = wanted;
  return changed;
}

bool space_map::enter_unused() {
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
    const auto value = encode(wanted);
    const auto have = books_->find(key);
    if (have && std::equal(value.begin(), value.end(), have->begin(), have->end())) continue;
    books_->insert(key, value);
    changed = true;
  }
  for (const std::uint64_t offset : gone)
    changed |= books_->erase(space_key(space_section::unused, offset));
  return changed;
}

bool space_map::place_pages(bool at_end) {
  const std::size_t count = books_->unplaced();
  if (count == 0) return false;
  std::vector<std::uint64_t> pages;
  if (at_end) {
    const std::uint64_t first = end_;
    end_ += count * page_bytes;
    allocated_.add(first, end_);
    for (std::uint64_t at = first; at < end_; at += page_bytes) pages.push_back(at);
  } else {
    pages = allocate_pages(count);
  }
  books_->place(pages);
  return true;
}

void space_map::settle() {
  close_chunks();
  for (int round = 0;; ++round) {
    bool changed = enter_released();
    changed |= enter_allocated();
    changed |= enter_unused();
    changed |= place_pages(round >= fitting_rounds);
    if (!changed) return;
    // Pages are copied at most once and, by now, placed without touching others: a sound map
    // settles within a few rounds.
    if (round == 1000)
      throw error(errc::corrupt, "the space map does not settle", {"its tree must be damaged"});
  }
}

}  // namespace shale::format
