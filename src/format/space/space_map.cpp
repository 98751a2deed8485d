#include "format/space/space_map.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "format/bytes/byte_order.hpp"
#include "shale/error.hpp"
#include "shale/index.hpp"
#include "storage/system/pages.hpp"

namespace shale::format {
namespace {

// Chunks that reuse free space are packed into stretches of at most this length. A stretch is taken
// from the free ranges as a whole; `close_chunks` gives back the unused rest.
constexpr std::uint64_t stretch_bytes_max = 8u << 20;

// About as many pages as a small commit writes.
constexpr std::uint64_t pages_of_commit_bytes = 8 * page_bytes;

// In its first rounds, `write_changes` places pages where they fit best. In later rounds it appends
// them to the file: this only lengthens one entry of the map, so it changes no further page.
constexpr int fitting_rounds = 6;

[[noreturn]] void throw_corrupt(const char* problem, std::uint64_t first, std::uint64_t end) {
  throw error(errc::corrupt, "the space map contradicts the container's references",
              {fmt::format("bytes {} to {}: {}", first, end, problem)});
}

// The end of the base generation's file.
std::uint64_t checked_end(std::uint64_t end_of_file) {
  if (end_of_file % chunk_alignment != 0)
    throw error(errc::corrupt, "the space map is damaged",
                {fmt::format("it cannot end with the file, at byte {}", end_of_file)});
  return end_of_file;
}

unused_section section_of(const tree& map_tree, std::uint64_t end_of_file,
                          generation_set protected_generations,
                          std::optional<unused_section> remembered) {
  if (!remembered) return unused_section(map_tree, end_of_file, std::move(protected_generations));
  remembered->protect(std::move(protected_generations));
  return *std::move(remembered);
}

}  // namespace

space_map::space_map(tree& map_tree, std::uint64_t generation, std::uint64_t end_of_file,
                     generation_set protected_generations, std::optional<unused_section> remembered)
    : map_tree_(&map_tree),
      generation_(generation),
      end_(checked_end(end_of_file)),
      unused_(section_of(map_tree, end_of_file, std::move(protected_generations),
                         std::move(remembered))) {}

void space_map::note_taken(std::uint64_t first, std::uint64_t end) {
  fresh_.unite(first, end);
  ++times_taken_;
}

// Takes new space at the end of the file. Free space that ends there becomes part of it.
extent space_map::grow(std::uint64_t bytes, std::uint64_t alignment) {
  return grow_from(unused_.free_space().beginning_of(end_).value_or(end_), bytes, alignment);
}

// Takes new space from `tail` on, behind which the file has only free space. The end of the file
// may lie inside a page. Then the rest of that page becomes free.
extent space_map::grow_from(std::uint64_t tail, std::uint64_t bytes, std::uint64_t alignment) {
  const std::uint64_t first = shale::detail::align_up(tail, alignment);
  if (bytes > file_bytes_max || first > file_bytes_max - bytes)
    throw error(errc::out_of_space, "the container would be too large",
                {fmt::format("{} bytes from byte {} on, at most {} are possible", bytes, first,
                             file_bytes_max)});
  if (first < end_) unused_.free_space().take(first, end_);
  else unused_.free_space().add(end_, first);
  end_ = first + bytes;
  note_taken(first, end_);
  return {first, bytes};
}

// Takes free space, or grows the file. The caller enters the space in `allocated_`.
extent space_map::take(std::uint64_t space, std::uint64_t alignment) {
  const auto first = unused_.free_space().find(space, alignment);
  if (!first) return grow(space, alignment);
  unused_.free_space().take(*first, *first + space);
  note_taken(*first, *first + space);
  return {*first, space};
}

extent space_map::allocate(std::uint64_t bytes, std::uint64_t alignment) {
  const extent found = take(page_space(bytes), alignment);
  allocated_.add(found.offset, found.end());
  return {found.offset, bytes};
}

// Chunks are packed one after the other into an open stretch [chunks_at_, chunks_end_). If a chunk
// does not fit, the stretch is closed, and the next one comes from free space. If no free range is
// long enough, a stretch at the end of the file is lengthened, or a new one begins there. Free
// space comes first, because a transaction that stores the same chunks again and again (space.4)
// would lengthen the file each time.
extent space_map::allocate_chunk(std::uint64_t stored_bytes) {
  const std::uint64_t space = chunk_space(stored_bytes);
  if (chunks_end_ - chunks_at_ < space) {
    const std::uint64_t missing = page_space(space - (chunks_end_ - chunks_at_));
    const std::uint64_t pages = page_space(space);
    if (!unused_.free_space().find(pages, page_bytes) && chunks_end_ == end_ && chunks_at_ != 0 &&
        end_ <= file_bytes_max - missing) {
      end_ += missing;
      chunks_end_ = end_;
      note_taken(end_ - missing, end_);
    } else {
      close_chunks();
      if (const auto first = unused_.free_space().find(pages, page_bytes)) {
        const auto range = std::prev(unused_.free_space().ranges().upper_bound(*first));
        const std::uint64_t most = *first + std::max(pages, stretch_bytes_max);
        chunks_at_ = *first;
        chunks_end_ = std::min(range->second / page_bytes * page_bytes, most);
        unused_.free_space().take(chunks_at_, chunks_end_);
        note_taken(chunks_at_, chunks_end_);
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
  unused_.free_space().add(chunks_at_, chunks_end_);
  chunks_at_ = chunks_end_ = 0;
}

// Where pages go that should lie in one run: behind the last ones, or else into free space with room
// for the next ones too, or else where they just fit. Nothing if they fit nowhere.
std::optional<std::uint64_t> space_map::place_for_run(std::uint64_t bytes) const {
  const free_ranges& free = unused_.free_space();
  if (free.contains(next_page_, next_page_ + bytes)) return next_page_;
  if (const auto roomy = free.find(std::max(bytes, pages_of_commit_bytes), page_bytes))
    return roomy;
  return free.find(bytes, page_bytes);
}

// One contiguous run is best for the map, for reading, and for the device. If no free range is long
// enough, pieces are used, but only if the free space is much larger than the request: else the
// file grows.
std::vector<std::uint64_t> space_map::allocate_pages(std::size_t count) {
  std::vector<std::uint64_t> pages;
  const auto use = [&](std::uint64_t first, std::uint64_t end) {
    allocated_.add(first, end);
    for (; first < end; first += page_bytes) pages.push_back(first);
    next_page_ = end;
  };
  const auto use_free = [&](std::uint64_t first, std::uint64_t end) {
    unused_.free_space().take(first, end);
    note_taken(first, end);
    use(first, end);
  };
  std::uint64_t missing = count * page_bytes;
  if (missing == 0) return pages;
  if (const auto first = place_for_run(missing)) {
    use_free(*first, *first + missing);
  } else if (unused_.free_space().page_total() >= 4 * missing) {
    while (missing > 0) {
      const auto [first_free, end] = *unused_.free_space().largest();
      const std::uint64_t stop = std::min(end, first_free + missing);
      use_free(first_free, stop);
      missing -= stop - first_free;
    }
  } else {
    const extent run = grow(missing, page_bytes);
    use(run.offset, run.end());
  }
  return pages;
}

void space_map::release(std::uint64_t offset, std::uint64_t bytes) {
  const std::uint64_t end = offset + bytes;
  if (allocated_.contains(offset, end)) {  // space.4
    allocated_.subtract(offset, end);
    unused_.free_space().add(offset, end);
    return;
  }
  if (allocated_.overlaps(offset, end) || released_.overlaps(offset, end))
    throw_corrupt("two things lie there", offset, end);
  released_.add(offset, end);
}

void space_map::withdraw(const extent& got, std::uint64_t end_before) {
  release(got.offset, got.bytes);
  if (end_before < end_) unused_.free_space().take(end_before, end_);
  end_ = end_before;
}

// Removes released ranges from the live section, and adds them to the freed ranges. A freed range
// keeps the generation in which it was born and dies in the generation being made. A released range
// may be the middle of a live entry, so the rests on both sides are entered again.
bool space_map::enter_released() {
  // Pages of the map's own tree are released while this runs. The next round enters them.
  const range_set batch = std::exchange(released_, {});
  for (const auto& range : batch.ranges()) {
    const std::uint64_t end = range.second;
    for (std::uint64_t first = range.first; first < end;) {
      const auto cursor = map_tree_->seek_floor(space_key(space_section::live, first));
      std::optional<space_record> record;
      if (cursor.valid()) record = decode_space_record(cursor.key(), cursor.short_value(), end_);
      if (!record || record->section != space_section::live ||
          record->offset + record->entry.bytes <= first)
        throw_corrupt("in use, but not live in the map", first, end);
      const std::uint64_t live_first = record->offset;
      const std::uint64_t live_end = live_first + record->entry.bytes;
      const std::uint64_t stop = std::min(end, live_end);
      if (stop < live_end)
        map_tree_->insert(
            space_key(space_section::live, stop),
            encode_space_entry({live_end - stop, record->entry.born, space_entry::never}));
      if (live_first < first)
        map_tree_->insert(
            space_key(space_section::live, live_first),
            encode_space_entry({first - live_first, record->entry.born, space_entry::never}));
      else map_tree_->erase(space_key(space_section::live, live_first));
      unused_.add_freed(first, stop, record->entry.born, generation_);
      first = stop;
    }
  }
  return !batch.empty();
}

// Makes the live section agree with `allocated_`. Between two rounds of `write_changes`, allocated
// ranges may join and split. So entries that the last round made are erased if no range begins
// there any more.
bool space_map::enter_allocated() {
  bool changed = false;
  const range_set wanted = allocated_;
  for (const auto& [first, end] : wanted.ranges()) {
    const auto have = entered_.ranges().find(first);
    if (have != entered_.ranges().end() && have->second == end) continue;
    map_tree_->insert(space_key(space_section::live, first),
                      encode_space_entry({end - first, generation_, space_entry::never}));
    changed = true;
  }
  for (const auto& [first, end] : entered_.ranges()) {
    if (wanted.ranges().contains(first)) continue;
    map_tree_->erase(space_key(space_section::live, first));
    changed = true;
  }
  entered_ = wanted;
  return changed;
}

// Gives places to the changed pages of the map's own tree. Returns false if all have one.
// `at_end`: takes no free space, not even at the end of the file.
bool space_map::place_pages(bool at_end) {
  const std::size_t count = map_tree_->unplaced();
  if (count == 0) return false;
  std::vector<std::uint64_t> pages;
  if (at_end) {
    const extent run = grow_from(end_, count * page_bytes, page_bytes);
    allocated_.add(run.offset, run.end());
    for (std::uint64_t page = run.offset; page < run.end(); page += page_bytes)
      pages.push_back(page);
  } else {
    pages = allocate_pages(count);
  }
  map_tree_->place(pages);
  return true;
}

// The map stores its own pages (space.5), so entering a change may itself take or release pages,
// and each of these is a change again. The loop repeats the four steps until a round changes
// nothing. It ends because a page is copied at most once in a transaction: after some rounds all
// pages on the affected paths are copied, and from `fitting_rounds` on new pages only lengthen one
// entry (the first one may also leave the rest of a page free).
void space_map::write_changes() {
  close_chunks();
  for (int round = 0;; ++round) {
    bool changed = enter_released();
    changed |= enter_allocated();
    changed |= unused_.enter_into(*map_tree_);
    changed |= place_pages(round >= fitting_rounds);
    if (!changed) return;
    // A sound map needs a few rounds.
    if (round == 1000)
      throw error(errc::corrupt, "writing the space map does not end",
                  {"its tree must be damaged"});
  }
}

}  // namespace shale::format
