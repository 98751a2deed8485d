#include "format/transaction/commit.hpp"

#include <fmt/format.h>

#include <span>
#include <utility>

#include "format/bytes/byte_order.hpp"
#include "format/bytes/file_layout.hpp"
#include "format/os/file_io.hpp"
#include "format/os/locks.hpp"
#include "shale/error.hpp"

namespace shale::format {

namespace {

constexpr generation_range alone(std::uint64_t generation) noexcept {
  return {generation, generation};
}

}  // namespace

std::uint32_t slot_to_write(const slots& both) noexcept {
  return 1 - newest_slot(both).value_or(1);
}

void require_no_pin_above(std::uint64_t newest, const pin_scan& held, open_file& asking,
                          const std::string& path) {
  if (held.foreign) throw foreign_lock(asking, *held.foreign, path);
  if (held.pins.empty() || held.pins.back().last <= newest) return;
  const std::uint64_t above = held.pins.back().last;
  found_lock found;
  const lock_range byte{pin_locks + above, pin_locks + above};
  const bool there = uninterrupted([&] { return asking.find_lock(byte, found); }) > 0;
  if (above > newest + unpublished_max && there)
    throw foreign_lock(asking, found, path)
        .add_detail(fmt::format("a reader of generation {} would hold it, but the newest is {}: or "
                                "was an older copy written over the file?",
                                above, newest));
  // The kernel names the process of a POSIX lock only, and containers take no such locks.
  if (there && found.process > 0)
    throw foreign_lock(asking, found, path)
        .add_detail(fmt::format("it is on the byte of generation {}, but no reader's: readers lock "
                                "by open file descriptions",
                                above));
  std::string holders = there ? asking.holders_of(found) : std::string();
  if (holders.empty()) holders = "a process that this one may not inspect";
  throw error(
      errc::io, "a generation that a reader holds is gone",
      {"file " + path,
       fmt::format("the newest superblock is of generation {}, generation {} is held by {}", newest,
                   above, holders),
       "its commit never reached the device: save the data that this reader sees, then close the "
       "reader and try again",
       fmt::format(
           "or that process is no reader, and holds a lock of its own on byte {}: end it, or "
           "let it lock something else",
           byte.first)});
}

void write_mark(open_file& file, const uuid& mark, const std::string& path) {
  write_all(file, mark_offset, std::as_bytes(std::span(mark.bytes)), path);
}

bool has_mark(open_file& file, const uuid& mark, const std::string& path) {
  uuid now;
  read_exact(file, mark_offset, std::as_writable_bytes(std::span(now.bytes)), path);
  return now == mark;
}

void erase_mark(open_file& file) noexcept {
  constexpr std::byte none[mark_bytes] = {};
  (void)uninterrupted([&] { return file.pwrite(none, mark_offset); });
}

void rewrite_in_place(open_file& file, const slots& both, const std::string& path) {
  for (std::uint32_t i = 0; i < 2; ++i)
    write_all(file, superblock_offsets[i], both[i].sector, path);
}

generation_set held_generations::all() const {
  std::vector<generation_range> together;
  for (const generation_set* set : {&read, &retained, &published})
    together.insert(together.end(), set->ranges().begin(), set->ranges().end());
  return generation_set(std::move(together));
}

held_generations protected_generations(const slots& both, const std::vector<generation_range>& pins,
                                       const std::vector<std::uint64_t>& retained) {
  std::vector<generation_range> listed;
  listed.reserve(retained.size());
  for (const std::uint64_t generation : retained) listed.push_back(alone(generation));
  std::vector<generation_range> published;
  for (const slot& written : both)
    if (written.fields) published.push_back(alone(written.fields->generation));
  return {generation_set(pins), generation_set(std::move(listed)),
          generation_set(std::move(published))};
}

void write_slot(open_file& file, std::uint32_t number, const superblock& next, const uuid& id,
                const std::string& path) {
  write_all(file, superblock_offsets[number], encode_superblock(next, id, number), path);
}

void announce(open_file& file, std::uint64_t generation) noexcept {
  // A reader reads the word first, then the superblocks, and then waits for the word to change. So
  // it cannot miss a commit: a commit in between has changed the word, and the same value comes
  // back only after 2^32 generations.
  std::byte word_and_no_mark[mark_offset + mark_bytes - live_page_offset] = {};
  store(word_and_no_mark, static_cast<std::uint32_t>(generation));
  (void)uninterrupted([&] { return file.pwrite(word_and_no_mark, live_page_offset); });
  file.wake_word(live_page_offset);
}

void announce_beside_mark(open_file& file, std::uint64_t generation) noexcept {
  std::byte word[4];
  store(word, static_cast<std::uint32_t>(generation));
  (void)uninterrupted([&] { return file.pwrite(word, live_page_offset); });
  file.wake_word(live_page_offset);
}

}  // namespace shale::format
