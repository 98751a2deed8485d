// Tests the interface that the array floor uses: arrays, chunks, extents, and their costs.

#include "format/container/container_file.hpp"

#include <gtest/gtest.h>

#include "format/bytes/checksum.hpp"
#include "format/bytes/generation_set.hpp"
#include "format/catalog/attributes.hpp"
#include "format/chunks/chunk_index.hpp"
#include "format/chunks/chunk_numbers.hpp"
#include "format/os/file_io.hpp"
#include "format/pages/header.hpp"
#include "format/pages/page.hpp"
#include "format/pages/page_cache.hpp"
#include "format/pages/page_reader.hpp"
#include "format/pages/root_page.hpp"
#include "format/pages/superblock.hpp"
#include "format/recorded_container.hpp"
#include "format/small_history.hpp"
#include "format/space/remembered_space.hpp"
#include "format/transaction/commit.hpp"
#include "shale/error.hpp"
#include "support/failures.hpp"

namespace shale::format {
namespace {

using test::chunked_record;
using test::code_of;
using test::observe;
using test::pattern;
using test::plain_state;
using test::storyteller;

constexpr std::chrono::milliseconds at_once{0};

class ContainerFile : public test::recorded_container {
 protected:
  template <class Body>
  std::uint64_t commit(Body&& body) {
    transaction change = container.begin(at_once);
    body(change);
    change.commit();
    metadata_bytes = change.metadata_bytes_written();
    return change.generation();
  }

  void expect_sound() { EXPECT_EQ(test::unsound(container.latest()), ""); }

  static array_record dense_record(const std::string& name, std::uint64_t bytes) {
    array_record record;
    record.name = name;
    record.dtype = dtype::uint8;
    record.shape = {static_cast<index_t>(bytes)};
    record.fill_value.resize(1);
    record.layout = dense_layout{};
    return record;
  }

  plain_state told;
  std::uint64_t metadata_bytes = 0;
};

TEST_F(ContainerFile, StartsEmpty) {
  const generation_view view = container.latest();
  EXPECT_EQ(view.generation(), 1u);
  EXPECT_EQ(view.array_count(), 0u);
  EXPECT_TRUE(view.list().empty());
  EXPECT_FALSE(view.find("a"));
  EXPECT_FALSE(view.find(""));
  EXPECT_FALSE(view.find(std::string(5000, 'a')));
  expect_sound();
}

TEST_F(ContainerFile, CommitsATransactionThatChangesNothing) {
  EXPECT_EQ(commit([](transaction&) {}), 2u);
  expect_sound();
}

TEST_F(ContainerFile, KeepsEveryFieldOfARecord) {
  array_record record = chunked_record("group/a");
  record.shape = {5, 0, 7};
  record.dtype = dtype::complex128;
  record.fill_value = pattern(16, 3);
  record.chunked().chunk_shape = {2, 3, 4};
  record.chunked().grid_capacity = {4, 1, 2};
  record.chunked().stages = {{stage_kind::bitround, 40}, {stage_kind::bit_shuffle, 0}};
  set_attribute(record, "units", "K");
  set_attribute(record, "empty", "");
  set_attribute(record, std::string("zero\0byte", 9), std::string("\0\xff", 2));
  set_attribute(record, "units", "mK");
  commit([&](transaction& change) { change.put(record); });
  array_record expected = record;
  expected.created = expected.modified = 2;
  EXPECT_EQ(container.latest().find("group/a"), expected);

  array_record scalar = dense_record("scalar", 1);
  scalar.shape = {};
  commit([&](transaction& change) {
    scalar.dense().extents = {change.allocate(1)};
    change.put(scalar);
  });
  EXPECT_EQ(container.latest().find("scalar")->shape, dims());
  expect_sound();
}

TEST_F(ContainerFile, KeepsArraysWithoutElements) {
  commit([](transaction& change) {
    change.put(dense_record("empty", 0));
    array_record chunked = chunked_record("also empty");
    chunked.shape = {0};
    change.put(chunked);
  });
  EXPECT_TRUE(container.latest().find("empty")->dense().extents.empty());
  EXPECT_EQ(chunk_grid(*container.latest().find("also empty")), (dims{0}));
  expect_sound();
}

TEST_F(ContainerFile, ListsNamesInByteOrder) {
  commit([](transaction& change) {
    for (const char* const name : {"b", "a/2", "a/10", "a", "a/1", "ab", "\xc3\xa9"})
      change.put(chunked_record(name));
    EXPECT_EQ(change.list("a/"), (std::vector<std::string>{"a/1", "a/10", "a/2"}));
  });
  const generation_view view = container.latest();
  EXPECT_EQ(view.list(),
            (std::vector<std::string>{"a", "a/1", "a/10", "a/2", "ab", "b", "\xc3\xa9"}));
  EXPECT_EQ(view.list("a/"), (std::vector<std::string>{"a/1", "a/10", "a/2"}));
  EXPECT_EQ(view.list("a/", "a/1"), (std::vector<std::string>{"a/10", "a/2"}));
  EXPECT_EQ(view.list("", "a/2", 2), (std::vector<std::string>{"ab", "b"}));
  EXPECT_EQ(view.list("a/", "b"), std::vector<std::string>{});
  EXPECT_TRUE(view.list("c").empty());
  EXPECT_TRUE(view.list("", "", 0).empty());
}

TEST_F(ContainerFile, RemembersWhenArraysWereMadeAndChanged) {
  commit([](transaction& change) { change.put(chunked_record("a")); });
  commit([](transaction& change) { change.put(chunked_record("b")); });
  commit([&](transaction& change) { storyteller(change, told).chunk("a", 0, 1); });
  EXPECT_EQ(container.latest().find("a")->created, 2u);
  EXPECT_EQ(container.latest().find("a")->modified, 4u);
  EXPECT_EQ(container.latest().find("b")->modified, 3u);
}

TEST_F(ContainerFile, TransactionsSeeTheirOwnChanges) {
  commit([&](transaction& change) {
    storyteller story(change, told);
    story.create_chunked("a");
    story.chunk("a", 3, 1);
    EXPECT_EQ(change.find("a")->chunked().chunk_count, 1u);
    ASSERT_TRUE(change.find_chunk("a", 3));
    EXPECT_FALSE(change.find_chunk("a", 4));
    std::vector<std::byte> stored(change.find_chunk("a", 3)->stored_bytes);
    change.read_chunk(*change.find_chunk("a", 3), stored);
    story.chunk("a", 3, 2);
    EXPECT_EQ(change.find("a")->chunked().chunk_count, 1u);
    EXPECT_EQ(change.chunks("a").size(), 1u);
    EXPECT_TRUE(change.erase_chunk("a", 3));
    EXPECT_FALSE(change.erase_chunk("a", 3));
    EXPECT_EQ(change.find("a")->chunked().stored_bytes, 0u);
    // A record longer than a page, read back before it is committed.
    story.note("a", "long", std::string(100'000, 'n'));
    EXPECT_EQ(change.find("a")->attributes.at(0).second.size(), 100'000u);
    EXPECT_FALSE(change.find("b"));
    told["a"].chunks.clear();
  });
  EXPECT_EQ(observe(container.latest()), told);
  expect_sound();
}

TEST_F(ContainerFile, ReplacingARecordKeepsChunksOfTheSameShape) {
  commit([&](transaction& change) {
    storyteller story(change, told);
    story.create_chunked("a");
    story.chunk("a", 3, 1);
  });
  commit([&](transaction& change) { change.put(*change.find("a")); });
  EXPECT_EQ(observe(container.latest()), told);
  for (const bool longer : {false, true}) {
    commit([&](transaction& change) {
      array_record other = *change.find("a");
      if (longer) other.shape = {1500};           // chunks beyond it would stay
      else other.chunked().grid_capacity = {64};  // the numbers would then mean other chunks
      change.put(other);
    });
    EXPECT_TRUE(observe(container.latest()).at("a").chunks.empty());
    EXPECT_EQ(container.latest().find("a")->chunked().chunk_count, 0u);
    expect_sound();
    commit([&](transaction& change) {
      storyteller(change, told).create_chunked("a");
      storyteller(change, told).chunk("a", 3, 1);
    });
  }
}

TEST_F(ContainerFile, ChangesKindWhenReplacedByTheOther) {
  commit([&](transaction& change) {
    storyteller story(change, told);
    story.create_chunked("a");
    story.chunk("a", 3, 1);
    story.dense("a", 3000, 1);
    story.dense("b", 3000, 1);
  });
  expect_sound();
  commit([&](transaction& change) {
    storyteller(change, told).create_chunked("b");
    storyteller(change, told).dense("a", 3000, 2);
  });
  EXPECT_EQ(observe(container.latest()), told);
  expect_sound();
}

TEST_F(ContainerFile, RenamesWithAndWithoutAnOpenIndex) {
  commit([&](transaction& change) {
    storyteller story(change, told);
    story.create_chunked("a");
    story.chunk("a", 3, 1);
    story.rename("a", "b");  // its index is open in the transaction
    story.chunk("b", 4, 2);
    story.dense("d", 10, 1);
  });
  commit([&](transaction& change) {
    storyteller story(change, told);
    story.rename("b", "c");  // its index is not open
    story.rename("d", "e");
    EXPECT_EQ(code_of([&] { change.rename("nothing", "x"); }), errc::not_found);
    EXPECT_EQ(code_of([&] { change.rename("c", "e"); }), errc::already_exists);
    EXPECT_EQ(code_of([&] { change.rename("c", ""); }), errc::invalid_argument);
    change.rename("c", "c");
  });
  EXPECT_EQ(observe(container.latest()), told);
  EXPECT_EQ(container.latest().array_count(), 2u);
  expect_sound();
}

TEST_F(ContainerFile, GivesBackUnreferencedExtents) {
  commit([&](transaction& change) {
    change.allocate(100'000);
    change.allocate_chunk(5000);
    const extent unused = change.allocate(5000);
    change.release(unused);
    EXPECT_EQ(code_of([&] { change.release(unused); }), errc::invalid_argument);
    EXPECT_EQ(change.allocate(0).bytes, 0u);
  });
  expect_sound();
  EXPECT_LT(verify(container.latest()).live_bytes, first_extent_offset + 10 * page_bytes);
}

TEST_F(ContainerFile, GivesBackTheExtentsOfARange) {
  commit([&](transaction& change) {
    const extent first = change.allocate(5000);
    const extent second = change.allocate(5000);
    const extent third = change.allocate(5000);
    ASSERT_LT(first.offset, second.offset);
    ASSERT_LT(second.offset, third.offset);
    change.release_within({first.offset, third.offset - first.offset});
    EXPECT_EQ(code_of([&] { change.release(first); }), errc::invalid_argument);
    EXPECT_EQ(code_of([&] { change.release(second); }), errc::invalid_argument);
    change.release_within({first.offset, third.offset - first.offset});  // nothing is left there
    change.release(third);
  });
  expect_sound();
}

TEST_F(ContainerFile, HasItsFullLengthIfExtentsWereNotWritten) {
  commit([&](transaction& change) {
    storyteller(change, told).create_chunked("a");
    change.allocate_chunk(1'000'000);  // at the end, never written, named by nothing
  });
  EXPECT_GE(files.now().at(path).size(), container.latest().end_of_file());
  EXPECT_EQ(observe(container_file::open(files, path, open_access::read).latest()), told);
  expect_sound();
}

// A write of a part of a page that is not in the cache would read the page first.
TEST_F(ContainerFile, ChunksBeginInPagesThatAreWrittenAsAWhole) {
  constexpr std::uint64_t whole = 20 * page_bytes;
  extent old;
  {
    transaction change = container.begin(at_once);
    old = change.allocate_chunk(whole);
    change.write(old.offset, pattern(whole, 1));
    change.commit();  // nothing refers to it, so its space is free
  }
  transaction change = container.begin(at_once);
  const extent first = change.allocate_chunk(100), second = change.allocate_chunk(page_bytes + 50);
  ASSERT_EQ(first.offset % page_bytes, 0u);
  ASSERT_GE(first.offset, old.offset);
  ASSERT_LE(first.offset + 3 * page_bytes, old.end());
  ASSERT_EQ(second.offset, first.offset + chunk_space(100));
  const auto bytes = files.now().at(path);
  const auto is_clear = [&](std::uint64_t page) {
    const auto begin =
        bytes.begin() + static_cast<std::ptrdiff_t>(first.offset + page * page_bytes);
    return std::all_of(begin, begin + page_bytes,
                       [](auto byte) { return byte == decltype(byte)(); });
  };
  EXPECT_TRUE(is_clear(0));
  EXPECT_TRUE(is_clear(1));
  EXPECT_FALSE(is_clear(2)) << "a page was written that has no chunk";
  change.write(first.offset, pattern(100, 2));
  const extent third = change.allocate_chunk(30);
  EXPECT_EQ(third.offset / page_bytes, second.end() / page_bytes);
  change.write(second.offset, pattern(second.bytes, 3));
  std::vector<std::byte> back(100);
  change.read(first.offset, back);
  EXPECT_EQ(back, pattern(100, 2)) << "a page with a chunk was cleared";
}

// The caller writes the first bytes. The file system has to do as little as possible for the others.
TEST_F(ContainerFile, SpaceThatIsWrittenOverIsNeitherClearedNorReserved) {
  constexpr std::uint64_t whole = 20 * page_bytes, overwritten = 18 * page_bytes - 100;
  extent old;
  {
    transaction change = container.begin(at_once);
    old = change.allocate(2 * whole);
    change.write(old.offset, pattern(2 * whole, 1));
    change.commit();  // nothing refers to it, so its space is free
  }
  transaction change = container.begin(at_once);
  const std::uint64_t reserved = files.calls_of("allocate"), punched = files.calls_of("punch");
  const extent found = change.allocate(whole, overwritten);
  EXPECT_EQ(files.calls_of("allocate"), reserved);
  EXPECT_EQ(files.calls_of("punch"), punched);
  ASSERT_GE(found.offset, old.offset);
  ASSERT_LE(found.end(), old.end());
  const auto at = [](const std::vector<std::byte>& bytes, std::uint64_t first, std::uint64_t end) {
    return std::vector(bytes.begin() + static_cast<std::ptrdiff_t>(first),
                       bytes.begin() + static_cast<std::ptrdiff_t>(end));
  };
  std::vector<std::byte> bytes(whole);
  change.read(found.offset, bytes);
  const std::uint64_t shift = found.offset - old.offset;
  EXPECT_EQ(at(bytes, 0, 10 * page_bytes),
            at(pattern(2 * whole, 1), shift, shift + 10 * page_bytes));
  EXPECT_EQ(at(bytes, 17 * page_bytes, whole), std::vector<std::byte>(3 * page_bytes))
      << "the page of the last byte that the caller writes, and all after it";
}

// Where the file system does not tell whether a write can use the blocks of a file.
TEST_F(ContainerFile, SpaceThatMayBeMissingIsGivenBackAndReserved) {
  constexpr std::uint64_t whole = 20 * page_bytes;
  commit([&](transaction& change) {
    const extent old = change.allocate(2 * whole);
    change.write(old.offset, pattern(2 * whole, 1));
  });
  files.tells_space = false;
  transaction change = container.begin(at_once);
  const std::uint64_t reserved = files.calls_of("allocate"), punched = files.calls_of("punch");
  const extent found = change.allocate(whole, whole);
  EXPECT_EQ(files.calls_of("punch"), punched + 1);
  EXPECT_EQ(files.calls_of("allocate"), reserved + 1);
  std::vector<std::byte> bytes(whole);
  change.read(found.offset, bytes);
  EXPECT_EQ(bytes, std::vector<std::byte>(whole));
}

// A large page stays if somebody has mapped a part of it.
TEST_F(ContainerFile, PagesThatStayInTheCacheArePunched) {
  commit([&](transaction& change) { change.write(change.allocate(20 * page_bytes).offset, {}); });
  transaction change = container.begin(at_once);
  const std::uint64_t punched = files.calls_of("punch");
  files.drops_pages = false;
  const extent chunk = change.allocate_chunk(page_bytes);
  EXPECT_LT(chunk.end(), container.latest().end_of_file());
  EXPECT_EQ(files.calls_of("punch"), punched + 1);
}

TEST_F(ContainerFile, PagesThatCouldNotBePunchedAreTriedAgain) {
  commit([&](transaction& change) { change.write(change.allocate(20 * page_bytes).offset, {}); });
  transaction change = container.begin(at_once);
  files.drops_pages = false;
  files.fail_call(files.calls() + 1, test::fault::error, EIO);  // the first asks for the size
  EXPECT_EQ(code_of([&] { change.allocate_chunk(page_bytes); }), errc::io);
  EXPECT_EQ(files.failed_call(), "punch");
  const std::uint64_t punched = files.calls_of("punch");
  change.allocate_chunk(page_bytes);
  EXPECT_GT(files.calls_of("punch"), punched);
}

TEST_F(ContainerFile, LargePartsThatReadAsZerosAreHoles) {
  constexpr std::uint64_t whole = 3u << 20, overwritten = 1u << 20;
  extent old;
  {
    transaction change = container.begin(at_once);
    old = change.allocate(2 * whole);
    change.write(old.offset, pattern(2 * whole, 1));
    change.commit();
  }
  transaction change = container.begin(at_once);
  const std::uint64_t reserved = files.calls_of("allocate");
  const std::uint64_t punched = files.calls_of("punch");
  const extent found = change.allocate(whole, overwritten);
  ASSERT_GE(found.offset, old.offset);
  ASSERT_LE(found.end(), old.end());
  EXPECT_EQ(files.calls_of("punch"), punched + 1);
  EXPECT_EQ(files.calls_of("allocate"), reserved + 1) << "no store may fail on a full disk";
  std::vector<std::byte> bytes(whole - overwritten);
  change.read(found.offset + overwritten, bytes);
  EXPECT_EQ(bytes, std::vector<std::byte>(whole - overwritten));
}

TEST_F(ContainerFile, AWriterReadsBackNoPageThatItWrote) {
  commit([&](transaction& change) {
    storyteller story(change, told);
    for (const char* name : {"a", "b", "c"}) story.create_chunked(name);
  });
  const std::uint64_t before = files.calls_of("pread");
  transaction change = container.begin(at_once);
  EXPECT_TRUE(change.find("b"));
  EXPECT_EQ(files.calls_of("pread") - before, 2u) << "the superblocks";
}

// Each call of the system costs time, and each separate run is a request of its own to the device.
TEST_F(ContainerFile, TheNewPagesOfASmallCommitLieInOneRun) {
  const auto change_note = [&](const char* text) {
    commit([&](transaction& change) {
      storyteller story(change, told);
      if (!told.contains("a")) story.create_chunked("a");
      story.note("a", "note", text);
    });
  };
  for (int k = 0; k < 10; ++k) change_note("first");
  const std::uint64_t before = files.calls_of("pwrite");
  for (int k = 0; k < 10; ++k) change_note("second");
  EXPECT_LE(files.calls_of("pwrite") - before, 10u * 4 + 5)
      << "most: the mark, the pages, the superblock, the word that wakes waiters";
}

// Reading the map at each beginning would cost more the more free ranges there are.
TEST_F(ContainerFile, AWriterRemembersTheSpaceMap) {
  const auto change_note = [&](container_file& file, const char* text) {
    transaction change = file.begin(at_once);
    storyteller story(change, told);
    if (!told.contains("a")) story.create_chunked("a");
    story.note("a", "note", text);
    change.commit();
  };
  for (int k = 0; k < 10; ++k) change_note(container, "first");
  const std::uint64_t end = container.latest().end_of_file();
  std::uint64_t read = unused_section::entries_read();
  for (int k = 0; k < 30; ++k) change_note(container, "second");
  EXPECT_EQ(unused_section::entries_read(), read);
  EXPECT_EQ(container.latest().end_of_file(), end) << "freed ranges are used again";
  expect_sound();

  // What is remembered belongs to one map, and the other writer has made another one.
  read = unused_section::entries_read();
  container_file other = container_file::open(files, path, open_access::write);
  change_note(other, "third");
  EXPECT_GT(unused_section::entries_read(), read);
  read = unused_section::entries_read();
  change_note(container, "fourth");
  EXPECT_GT(unused_section::entries_read(), read);
  expect_sound();

  // A transaction that ends without a commit has changed what it took.
  transaction given_up = container.begin(at_once);
  given_up.allocate(5000);
  given_up.abort();
  change_note(container, "fifth");
  expect_sound();
}

// A page that is no tree page must not be found through a reference of a damaged tree.
TEST_F(ContainerFile, ARootThatWasWrittenIsNoTreePage) {
  page root = encode_root({});
  root.stamp(7, first_extent_offset);
  const page_ref ref{first_extent_offset, checksum_metadata(root.bytes())};
  std::unique_ptr<open_file> file;
  ASSERT_GE(files.open(path, open_access::write, file), 0);
  write_all(*file, ref.offset, root.bytes(), path);
  page_cache cache;
  page_reader reader(*file, path, cache, ref.offset + page_bytes);
  reader.keep_written(ref, root);
  EXPECT_EQ(code_of([&] { reader.load_page(ref); }), errc::corrupt);
  EXPECT_TRUE(cache.find_root(7, ref));
  EXPECT_FALSE(cache.find_root(8, ref)) << "a root page belongs to one generation";
}

TEST_F(ContainerFile, LongValuesShowNoOldBytesBehindThem) {
  const auto long_note = [&](std::size_t bytes, char letter) {
    commit([&](transaction& change) {
      storyteller story(change, told);
      if (!told.contains("a")) story.create_chunked("a");
      story.note("a", "long", std::string(bytes, letter));
    });
  };
  for (int round = 0; round < 8; ++round) {  // enough rounds to reuse old space
    long_note(8100, 'x');
    long_note(4200, 'y');
    const auto bytes = files.now().at(path);
    const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const std::size_t last = text.rfind(std::string(4000, 'y'));
    ASSERT_NE(last, std::string::npos);
    std::size_t end = last + 4000;
    while (text[end] == 'y') ++end;
    // The rest of the descriptor is short, and the bytes after it in its page are zero.
    const std::size_t page_end = (end + page_bytes - 1) / page_bytes * page_bytes;
    ASSERT_EQ(text.substr(end, page_end - end).find("xxxx"), std::string::npos) << round;
  }
}

TEST_F(ContainerFile, TakesOnlyExtentsThatItGave) {
  commit([&](transaction& change) { storyteller(change, told).dense("d", 5000, 1); });
  const extent taken = container.latest().find("d")->dense().extents.at(0);
  transaction change = container.begin(at_once);
  array_record thief = dense_record("thief", 5000);
  thief.dense().extents = {taken};
  EXPECT_EQ(code_of([&] { change.put(thief); }), errc::invalid_argument);
  thief.dense().extents = {{first_extent_offset, 5000}};
  EXPECT_EQ(code_of([&] { change.put(thief); }), errc::invalid_argument);
  const extent own = change.allocate(4096);
  thief.dense().extents = {own, own};
  EXPECT_EQ(code_of([&] { change.put(thief); }), errc::invalid_argument);
  change.put(chunked_record("a"));
  EXPECT_EQ(code_of([&] {
              change.set_chunk("a", 0, {taken.offset, 100, 0, 0});
            }),
            errc::invalid_argument);
  EXPECT_EQ(code_of([&] { change.set_chunk("d", 0, {}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { change.set_chunk("nothing", 0, {}); }), errc::not_found);
  const extent chunk = change.allocate_chunk(100);
  EXPECT_EQ(code_of([&] {
              change.set_chunk("a", 32, {chunk.offset, 100, 0, 0});
            }),
            errc::invalid_argument);  // the capacity is 32
  EXPECT_EQ(code_of([&] { change.allocate_chunk(0); }), errc::invalid_argument);
  // The transaction still works after these errors.
  change.commit();
  EXPECT_EQ(test::unsound(container.latest()).find("two things"), std::string::npos);
}

// A key, a value, and 48 bytes for both.
TEST_F(ContainerFile, BoundsTheBytesOfAttributes) {
  transaction change = container.begin(at_once);
  array_record record = dense_record("d", page_bytes);
  record.dense().extents = {change.allocate(page_bytes)};
  record.attributes = {{"k", std::string(attributes_bytes_max - 48, 'x')}};
  EXPECT_EQ(code_of([&] { change.put(record); }), errc::invalid_argument);
  record.attributes[0].second.pop_back();
  change.put(record);
  change.commit();
  EXPECT_EQ(container.latest().find("d")->attributes, record.attributes);
}

// Attributes may be nearly as long as a value of the catalog, and each extent takes 16 bytes of it.
TEST_F(ContainerFile, RefusesRecordsThatTheCatalogHasNoRoomFor) {
  constexpr std::size_t pages = 4200;
  transaction change = container.begin(at_once);
  array_record record = dense_record("d", pages * page_bytes);
  for (std::size_t page = 0; page < pages; ++page)
    record.dense().extents.push_back(change.allocate(page_bytes));
  change.put(record);
  record.attributes = {{"k", std::string(attributes_bytes_max - 49, 'x')}};
  EXPECT_EQ(code_of([&] { change.put(record); }), errc::invalid_argument);
  // A name may take what extents have left.
  record.attributes[0].second.resize(value_bytes_max - 16 * pages - 1000);
  change.put(record);
  EXPECT_EQ(code_of([&] { change.rename("d", std::string(1024, 'n')); }), errc::invalid_argument);
  record.attributes.clear();
  change.put(record);
  // The transaction still works after these errors.
  change.commit();
  EXPECT_EQ(container.latest().find("d")->dense().extents, record.dense().extents);
  EXPECT_EQ(test::unsound(container.latest()), "");
}

TEST_F(ContainerFile, SharesTheRestOfADenseArrayWithOlderGenerations) {
  commit([&](transaction& change) { storyteller(change, told).dense("d", 10 * page_bytes, 1); });
  const plain_state before = told;
  const generation_view held = container.latest();
  const extent whole = held.find("d")->dense().extents.at(0);
  commit([&](transaction& change) {
    storyteller story(change, told);
    story.dense_page("d", 4, 2);
    story.dense_page("d", 4, 3);  // the page is new already
    story.dense_page("d", 9, 4);
  });
  const array_record changed = *container.latest().find("d");
  for (const std::size_t page : {0u, 3u, 5u, 8u})
    EXPECT_EQ(changed.dense().extents.at(page).offset, whole.offset + page * page_bytes);
  EXPECT_EQ(observe(container.latest()), told);
  EXPECT_EQ(observe(held), before);
  expect_sound();
  EXPECT_EQ(test::unsound(held), "");
  // Two pages and a page of checksums are of the held generation alone; no other page is new.
  const verification report = verify(container.latest());
  EXPECT_GE(report.freed_bytes, 3 * page_bytes);
  EXPECT_LT(report.freed_bytes, 10 * page_bytes);
}

TEST_F(ContainerFile, RefusesRecordsThatNameBytesTwiceOrInPart) {
  commit([&](transaction& change) { storyteller(change, told).dense("d", 5 * page_bytes, 1); });
  transaction change = container.begin(at_once);
  const array_record old = *change.find("d");
  const extent whole = old.dense().extents.at(0);
  const extent own = change.allocate(2 * page_bytes);
  const auto refuses = [&](std::vector<extent> extents) {
    array_record record = old;
    record.dense() = {};  // without checksums
    record.dense().extents = std::move(extents);
    return code_of([&] { change.put(record); }) == errc::invalid_argument;
  };
  const extent rest{whole.offset + 3 * page_bytes, 2 * page_bytes};
  EXPECT_TRUE(refuses({{whole.offset, 4 * page_bytes}, rest}));
  EXPECT_TRUE(refuses({{whole.offset, 4 * page_bytes}, {own.offset, page_bytes}}));
  EXPECT_TRUE(refuses({{whole.offset + page_bytes, 500 * page_bytes}}));
  EXPECT_FALSE(refuses({rest, own, {whole.offset, page_bytes}}));
  change.commit();
  expect_sound();
}

TEST_F(ContainerFile, RefusesRecordsThatMeanNothing) {
  transaction change = container.begin(at_once);
  const auto refuses = [&](auto&& spoil) {
    array_record record = chunked_record("a");
    spoil(record);
    return code_of([&] { change.put(record); }) == errc::invalid_argument;
  };
  EXPECT_FALSE(refuses([](array_record&) {}));
  const std::string bad_names[] = {{},         std::string(1025, 'n'), "tab\t",   "\xff",
                                   "\xc0\x80", "\xed\xa0\x80",         "\xc2\x85"};
  for (const std::string& name : bad_names)
    EXPECT_TRUE(refuses([&](array_record& r) { r.name = name; })) << name;
  EXPECT_FALSE(refuses([&](array_record& r) { r.name = std::string(1024, 'n'); }));
  EXPECT_TRUE(refuses([](array_record& r) { r.shape = {-1}; }));
  EXPECT_TRUE(refuses([](array_record& r) { r.shape = {index_t{1} << 40, index_t{1} << 40}; }));
  EXPECT_TRUE(refuses([](array_record& r) { r.fill_value.resize(3); }));
  EXPECT_TRUE(refuses([](array_record& r) { r.chunked().chunk_shape = {0}; }));
  EXPECT_TRUE(refuses([](array_record& r) { r.chunked().chunk_shape = {index_t{1} << 40}; }));
  EXPECT_TRUE(refuses([](array_record& r) { r.chunked().chunk_shape = {4, 4}; }));
  EXPECT_TRUE(refuses([](array_record& r) { r.chunked().grid_capacity = {3}; }));
  EXPECT_TRUE(refuses([](array_record& r) { r.chunked().stages = {{stage_kind::zstd, 99}}; }));
  EXPECT_TRUE(refuses([](array_record& r) { r.layout = dense_layout{}; }));  // no extents
  EXPECT_TRUE(refuses([](array_record& r) { r.attributes = {{"b", ""}, {"a", ""}}; }));
}

TEST_F(ContainerFile, EndsATransactionOnce) {
  transaction change = container.begin(at_once);
  change.commit();
  EXPECT_FALSE(change.active());
  EXPECT_EQ(code_of([&] { change.commit(); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { change.put(chunked_record("a")); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { change.allocate(10); }), errc::invalid_argument);
  change.abort();
  EXPECT_EQ(container.latest().generation(), 2u);
  transaction moved = container.begin(at_once);
  EXPECT_EQ(code_of([&] { moved = container.begin(at_once); }), errc::busy);
  moved.abort();
  moved = container.begin(at_once);
  EXPECT_EQ(moved.generation(), 3u);
}

TEST_F(ContainerFile, ReadersSeeWhatTheyPinnedAndLatestMoves) {
  commit([&](transaction& change) { storyteller(change, told).dense("d", 5000, 1); });
  const plain_state before = told;
  const generation_view old_view = container.latest();
  commit([&](transaction& change) { storyteller(change, told).dense("d", 6000, 2); });
  EXPECT_EQ(observe(old_view), before);
  EXPECT_EQ(observe(container.latest()), told);
}

// No function retains generations yet, but a file of a later version may hold some. So the test
// writes the tree itself. Makes the newest generation list one retained generation under a key;
// returns the superblock.
superblock forge_retained(test::recording_file_system& files, const std::string& path,
                          std::uint64_t kept, const std::string& key) {
  const auto bytes = files.now().at(path);
  superblock_sector sector;
  std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(superblock_offsets[1]), 512,
              sector.begin());
  superblock fields = decode_superblock(sector, uuid{}, 1).value();
  std::unique_ptr<open_file> raw;
  files.open(path, open_access::write, raw);

  page retained(tree_kind::retained, page_kind::leaf, 0);
  retained.insert_value(0, key, std::vector<std::byte>(56));
  const std::uint64_t place = fields.end_of_file;
  retained.stamp(kept, place);
  raw->pwrite(retained.bytes(), place);
  page root(bytes_view(bytes).subspan(fields.root.offset, page_bytes));
  root_fields of_root = decode_root(root, kept, fields.root.offset).value();
  of_root.retained = {place, checksum_metadata(retained.bytes())};
  root = encode_root(of_root);
  root.stamp(kept, fields.root.offset);
  raw->pwrite(root.bytes(), fields.root.offset);
  fields.root_checksum = checksum_metadata(root.bytes());
  fields.end_of_file += page_bytes;
  raw->pwrite(encode_superblock(fields, uuid{}, 1), superblock_offsets[1]);
  return fields;
}

TEST_F(ContainerFile, ProtectsRetainedGenerations) {
  commit([&](transaction& change) {
    storyteller story(change, told);
    story.create_chunked("a");
    for (unsigned i = 0; i < 20; ++i) story.chunk("a", i, i);
    story.dense("d", 30'000, 1);
  });
  const std::uint64_t kept = container.latest().generation();
  const superblock fields = forge_retained(files, path, kept, chunk_key(kept));

  const auto before = files.now().at(path);
  std::vector<std::uint64_t> used;  // extents of the retained generation
  container_file reader = container_file::open(files, path, open_access::read);
  const array_record chunked = reader.latest().find("a").value();
  for (const auto& chunk : reader.latest().chunks(chunked)) used.push_back(chunk.entry.offset);
  used.push_back(reader.latest().find("d")->dense().extents.at(0).offset);
  used.push_back(fields.root.offset);
  for (unsigned round = 0; round < 20; ++round)
    commit([&](transaction& change) {
      storyteller story(change, told);
      for (unsigned i = 0; i < 20; ++i) story.chunk("a", i, 100 + i + round);
      story.dense("d", 30'000, round + 2);
    });
  const auto after = files.now().at(path);
  for (const std::uint64_t offset : used)
    EXPECT_TRUE(std::equal(before.begin() + static_cast<std::ptrdiff_t>(offset),
                           before.begin() + static_cast<std::ptrdiff_t>(offset) + 64,
                           after.begin() + static_cast<std::ptrdiff_t>(offset)))
        << "byte " << offset << " of a retained generation was used again";
  EXPECT_EQ(observe(container.latest()), told);
}

// commit.2: what a writer leaves alone, and what the report of the file's space tells by its
// holder.
TEST(ProtectedGenerations, AreThoseOfReadersOfTheFileAndOfItsSuperblocks) {
  slots both;
  both[1].fields = superblock{};
  both[1].fields->generation = 8;
  const held_generations held = protected_generations(both, {{2, 2}, {3, 3}}, {5, 6});
  for (std::uint64_t generation = 1; generation < 10; ++generation) {
    SCOPED_TRACE(generation);
    const auto is_in = [&](const generation_set& set) {
      return set.overlaps(generation, generation + 1);
    };
    EXPECT_EQ(is_in(held.read), generation == 2 || generation == 3);
    EXPECT_EQ(is_in(held.retained), generation == 5 || generation == 6);
    EXPECT_EQ(is_in(held.published), generation == 8);
    EXPECT_EQ(is_in(held.all()), is_in(held.read) || is_in(held.retained) || is_in(held.published));
  }
  EXPECT_EQ(held.all().ranges(), (std::vector<generation_range>{{2, 3}, {5, 6}, {8, 8}}));
}

// A key that is not understood may stand for a generation whose bytes must stay.
TEST_F(ContainerFile, RefusesToWriteIfAKeyOfRetainedGenerationsIsInvalid) {
  commit([&](transaction& change) { storyteller(change, told).dense("d", 30'000, 1); });
  const std::uint64_t newest = container.latest().generation();
  const auto sound = files.now().at(path);
  for (const std::size_t length : {std::size_t{7}, std::size_t{9}}) {
    forge_retained(files, path, newest, std::string(length, '\1'));
    container_file reader = container_file::open(files, path, open_access::write);
    EXPECT_EQ(code_of([&] { reader.begin(std::chrono::milliseconds{0}); }), errc::corrupt);
    std::unique_ptr<open_file> raw;
    files.open(path, open_access::write, raw);
    raw->pwrite(sound, 0);
  }
}

// ---- costs -------------------------------------------------------------------------------------

TEST_F(ContainerFile, OpensOneOfManyArraysByOnePath) {
  commit([](transaction& change) {
    for (int i = 0; i < 20'000; ++i) change.put(chunked_record("array " + std::to_string(i)));
  });
  container_file reader = container_file::open(files, path, open_access::read);
  const std::uint64_t before = files.calls();
  EXPECT_TRUE(reader.latest().find("array 12345"));
  // Pinning and reading the slot again take about ten calls; the catalog has three levels.
  EXPECT_LE(files.calls() - before, 20u);
}

TEST_F(ContainerFile, ChangesOneChunkAmongManyArraysForFewPages) {
  commit([&](transaction& change) {
    storyteller story(change, told);
    for (int i = 0; i < 10'000; ++i) story.create_chunked("array " + std::to_string(i));
    for (int i = 0; i < 10'000; i += 10)
      for (unsigned c = 0; c < 4; ++c) story.chunk("array " + std::to_string(i), c, c);
  });
  std::uint64_t most = 0;
  for (int i = 0; i < 50; ++i) {
    commit([&](transaction& change) {
      storyteller(change, told).chunk("array " + std::to_string(i * 170), 2, 99);
    });
    most = std::max(most, metadata_bytes);
  }
  // A leaf and two branches of the catalog, the index, the root, and a few pages of the space map.
  EXPECT_LE(most, 16 * page_bytes);
  expect_sound();
}

TEST_F(ContainerFile, DoesNotGrowUnderSteadyUpdates) {
  commit([&](transaction& change) {
    storyteller story(change, told);
    for (int i = 0; i < 50; ++i) story.create_chunked("array " + std::to_string(i));
    for (int i = 0; i < 50; ++i)
      for (unsigned c = 0; c < 20; ++c) story.chunk("array " + std::to_string(i), c, c);
  });
  const auto update = [&](int i) {
    commit([&](transaction& change) {
      storyteller story(change, told);
      story.chunk("array " + std::to_string(i % 50), static_cast<unsigned>(i % 20),
                  static_cast<unsigned>(i));
    });
  };
  for (int i = 0; i < 100; ++i) update(i);
  const std::uint64_t size = files.now().at(path).size();
  for (int i = 100; i < 600; ++i) update(i * 7);
  EXPECT_LE(files.now().at(path).size(), size + size / 4);
  EXPECT_EQ(observe(container.latest()), told);
  expect_sound();
}

TEST_F(ContainerFile, WritesTheSameBytesForTheSameCalls) {
  test::recording_file_system other;
  container_file twin = container_file::create(other, path, {.id = uuid{}});
  for (container_file* const opened : {&container, &twin}) {
    told.clear();
    for (int step = 0; step < test::history_steps; ++step) test::commit_step(*opened, step, told);
  }
  EXPECT_EQ(files.now(), other.now());
}

// ---- grids -------------------------------------------------------------------------------------

TEST(ChunkNumbers, AreRowMajorInTheCapacity) {
  chunked_layout layout;
  layout.grid_capacity = {3, 4, 5};
  std::uint64_t expected = 0;
  for (index_t i = 0; i < 3; ++i)
    for (index_t j = 0; j < 4; ++j)
      for (index_t k = 0; k < 5; ++k, ++expected) {
        EXPECT_EQ(chunk_number(layout, {i, j, k}), expected);
        EXPECT_EQ(chunk_index(layout, expected), (dims{i, j, k}));
      }
  layout.grid_capacity = {};
  EXPECT_EQ(chunk_number(layout, {}), 0u);
}

}  // namespace
}  // namespace shale::format
