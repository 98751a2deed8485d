// Reads hostile containers through the public API. The result is `corrupt`, `unsupported`, or the
// right elements, attributes and names. It is never a wrong value, a crash or a hang, and a
// declared length alone never makes a reader allocate memory.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <set>

#include "array/test_support.hpp"
#include "fuzz/container_changes.hpp"
#include "shale/executor.hpp"
#include "shale/memory_pool.hpp"
#include "support/full_disk.hpp"
#include "support/little_memory.hpp"
#include "support/long_run.hpp"
#include "support/observed_part.hpp"
#include "support/ordinary_user.hpp"

namespace shale {
namespace {

using test::code_of;
using test::run_long;
using test::text_of;

struct plain_array {
  dtype type;
  dims shape;
  array_kind kind;
  std::string elements;
  std::vector<std::pair<std::string, std::string>> attributes;
  double fill_value = 0;

  bool operator==(const plain_array&) const = default;
};
using plain_state = std::map<std::string, plain_array>;

std::string bytes_of(const tensor& row_major) {
  return {reinterpret_cast<const char*>(row_major.data()), row_major.size_bytes()};
}

class ArrayDamage : public testing::Test {
 protected:
  ArrayDamage() {
    container file = container::create(path_);
    for (int step = 0; step < 2; ++step) {
      states_.push_back(states_.empty() ? plain_state{} : states_.back());
      transaction change = file.begin();
      tell(step, change);
      change.commit();
    }
    file.close();
    sound_ = test::bytes_of_file(path_);
    file_ = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
  }
  ~ArrayDamage() override { ::close(file_); }

  void add(transaction& change, const std::string& name, const array_spec& spec) {
    const tensor values = test::counting(spec.shape, spec.dtype);
    change.create(name, spec).write(values);
    states_.back()[name] = {spec.dtype,       spec.shape, spec.kind,
                            bytes_of(values), {},         spec.fill_value.as<double>()};
  }

  void note(transaction& change, const std::string& name, const std::string& key,
            const std::string& value) {
    change.set_attribute(name, key, value);
    states_.back()[name].attributes.emplace_back(key, value);
  }

  void tell(int step, transaction& change) {
    if (step == 0) {
      add(change, "dense", {.dtype = dtype::int16, .shape = {9, 40}});
      note(change, "dense", "history", std::string(1500, 'h'));  // does not fit a tree's cell
      note(change, "dense", "unit", "m");
      return;
    }
    add(change, "höhe/packed",
        {.dtype = dtype::int32,
         .shape = {40, 9},
         .kind = array_kind::chunked,
         .chunk_shape = dims{16, 8},
         .fill_value = 7});
    note(change, "höhe/packed", "unit", std::string("\0\xff", 2));
    add(change, "one", {.dtype = dtype::float64, .shape = {}});
  }

  // Returns the result of reading: an error's code, or the whole content of a generation.
  struct outcome {
    errc code{};
    std::string text;
    std::uint64_t generation = 0;
    plain_state state;
  };

  outcome read(open_mode mode = open_mode::read) {
    outcome seen;
    try {
      const snapshot now = container::open(path_, mode).latest();
      seen.generation = now.generation();
      for (const std::string& name : now.names()) {
        const array stored = now.at(name);
        const tensor values = stored.read(test::observed_part(stored));
        seen.state[name] = {stored.dtype(),      stored.shape(),
                            stored.kind(),       bytes_of(values),
                            stored.attributes(), stored.fill_value().as<double>()};
      }
    } catch (const error& failure) {
      seen.code = failure.code();
      seen.text = failure.what();
    }
    return seen;
  }

  void write(std::uint64_t offset, const void* bytes, std::size_t count) const {
    ASSERT_EQ(::pwrite(file_, bytes, count, static_cast<off_t>(offset)),
              static_cast<ssize_t>(count));
  }

  void replace_file(const std::vector<std::byte>& bytes) const {
    ASSERT_EQ(::ftruncate(file_, 0), 0);
    write(0, bytes.data(), bytes.size());
  }

  std::uint64_t newest() const { return states_.size() + 1; }
  bool in_newest_superblock(std::uint64_t offset) const {
    const std::uint64_t slot = format::superblock_offsets[(newest() - 1) % 2];
    return offset >= slot && offset < slot + 512;
  }

  void expect_right_or_corrupt(std::uint64_t offset, const std::string& description) {
    outcome seen = read();
    if (seen.code == errc::corrupt && in_newest_superblock(offset)) seen = read(open_mode::salvage);
    if (seen.code != errc{}) {
      ASSERT_EQ(seen.code, errc::corrupt) << description << "\n" << seen.text;
      return;
    }
    // A reader may see an older generation only if the newest superblock is damaged.
    ASSERT_EQ(seen.generation, in_newest_superblock(offset) ? newest() - 1 : newest())
        << description;
    ASSERT_EQ(seen.state, states_[seen.generation - 2]) << description;
  }

  // All bytes that are used, and some of the zeros around them.
  std::vector<std::uint64_t> bytes_worth_changing() const {
    std::vector<std::uint64_t> result;
    for (std::uint64_t offset = 0; offset < sound_.size(); ++offset)
      if (sound_[offset] != std::byte{0} || offset % 61 == 0) result.push_back(offset);
    return result;
  }

  test::scratch_directory directory_;
  std::string path_ = directory_ / "hostile.shale";
  executor alone_{{.threads = 1}};
  executor::scope within_{alone_};
  std::vector<plain_state> states_;  // of generations 2 and 3
  std::vector<std::byte> sound_;
  int file_ = -1;
};

TEST_F(ArrayDamage, SoundOnesAreReadAsTheyWereWritten) {
  const outcome seen = read();
  ASSERT_EQ(seen.code, errc{}) << seen.text;
  EXPECT_EQ(seen.generation, newest());
  EXPECT_EQ(seen.state, states_.back());
}

// tree.2, codec.3
TEST_F(ArrayDamage, AnyChangedByteIsFoundOrDoesNotMatter) {
  const test::little_memory limit;
  const std::vector<int> masks =
      run_long() ? std::vector<int>{1, 2, 4, 8, 16, 32, 64, 128, 255} : std::vector<int>{1, 128};
  for (const std::uint64_t offset : bytes_worth_changing()) {
    for (const int mask : masks) {
      const std::byte changed = sound_[offset] ^ static_cast<std::byte>(mask);
      write(offset, &changed, 1);
      expect_right_or_corrupt(offset,
                              "byte " + std::to_string(offset) + " ^ " + std::to_string(mask));
      if (HasFatalFailure()) return;
    }
    write(offset, &sound_[offset], 1);
  }
}

// Readers and writers do not go on with an older generation in silence.
TEST_F(ArrayDamage, ALostCommitIsAnErrorUnlessItIsSalvaged) {
  const std::uint64_t slot = format::superblock_offsets[(newest() - 1) % 2];
  const std::byte changed = sound_[slot + 40] ^ std::byte{1};
  write(slot + 40, &changed, 1);
  for (const open_mode mode : {open_mode::read, open_mode::write}) {
    try {
      container::open(path_, mode);
      FAIL() << "opened as " << static_cast<int>(mode);
    } catch (const error& failure) {
      EXPECT_EQ(failure.code(), errc::corrupt) << failure.what();
      const std::string text = failure.what();
      for (const std::string& part :
           {path_, "byte " + std::to_string(slot), "than " + std::to_string(newest() - 1),
            std::string("salvage")})
        EXPECT_NE(text.find(part), std::string::npos) << text;
    }
  }
  const outcome salvaged = read(open_mode::salvage);
  ASSERT_EQ(salvaged.code, errc{}) << salvaged.text;
  EXPECT_EQ(salvaged.generation, newest() - 1);
  EXPECT_EQ(salvaged.state, states_[salvaged.generation - 2]);
  EXPECT_THROW(container::open(path_, open_mode::salvage).begin(no_wait), error);
  const verification found = container::open(path_, open_mode::salvage).verify();
  ASSERT_EQ(found.findings.size(), 1u);
  EXPECT_NE(found.findings[0].text.find("a later generation"), std::string::npos);
}

// The damage happens while both handles are open.
TEST_F(ArrayDamage, ALostCommitIsSeenByOpenHandles) {
  container file = container::open(path_, open_mode::write);
  const std::uint64_t slot = format::superblock_offsets[(newest() - 1) % 2];
  const std::vector<char> zeros(512);
  write(slot, zeros.data(), zeros.size());
  EXPECT_EQ(code_of([&] { file.latest(); }), errc::corrupt);
  EXPECT_EQ(code_of([&] { file.begin(no_wait); }), errc::corrupt);
  EXPECT_EQ(code_of([&] { file.wait_newer(newest(), no_wait); }), errc::corrupt);
}

// A power cut may tear the superblock of a commit that was not reported.
TEST_F(ArrayDamage, ATornSuperblockOfAnUnreportedCommitIsNotDamage) {
  const std::uint64_t slot = format::superblock_offsets[(newest() - 1) % 2];
  const std::vector<char> zeros(512);
  write(slot, zeros.data(), zeros.size());
  const auto announced = static_cast<std::uint32_t>(newest() - 1);
  write(format::live_page_offset, &announced, sizeof announced);
  const outcome seen = read();
  ASSERT_EQ(seen.code, errc{}) << seen.text;
  EXPECT_EQ(seen.generation, newest() - 1);
  EXPECT_EQ(container::open(path_, open_mode::write).begin(no_wait).generation(), newest());
}

// All checksums are corrected, so each damaged field must be refused by the code that reads it.
TEST_F(ArrayDamage, ChangesWithCorrectChecksumsAreHarmless) {
  const test::little_memory limit;
  const fuzz::checksums sums(sound_);
  ASSERT_GE(sums.sites().size(), 12u);
  const std::vector<std::uint64_t> pages = fuzz::covered_pages(sums);
  const std::set<std::uint64_t> covered(pages.begin(), pages.end());
  int read_other = 0;
  int refused = 0;
  for (std::uint64_t offset = 0; offset < sound_.size(); ++offset) {
    if (sound_[offset] == std::byte{0} || !covered.contains(offset / 4096 * 4096)) continue;
    for (const int mask :
         run_long() ? std::vector<int>{1, 4, 16, 128, 255} : std::vector<int>{255}) {
      std::vector<std::byte> changed = sound_;
      changed[offset] ^= static_cast<std::byte>(mask);
      sums.correct(changed);
      replace_file(changed);
      const outcome seen = read();
      if (seen.code == errc{}) {
        read_other += seen.state != states_.back() ? 1 : 0;
        continue;
      }
      ++refused;
      ASSERT_TRUE(seen.code == errc::corrupt || seen.code == errc::unsupported)
          << "byte " << offset << "\n"
          << seen.text;
    }
  }
  // The correction works: changed elements, attributes and names were read without an error.
  EXPECT_GT(read_other, 100);
  EXPECT_GT(refused, 100);
}

// A copy is refused, or reads as its source does (carried.2).
TEST_F(ArrayDamage, CopiesOfChangesWithCorrectChecksumsReadAsTheirSources) {
  const fuzz::checksums sums(sound_);
  const std::vector<std::uint64_t> pages = fuzz::covered_pages(sums);
  const std::set<std::uint64_t> covered(pages.begin(), pages.end());
  container other = container::create(directory_ / "copies.shale");
  transaction change = other.begin();
  const auto elements_of = [](const array& stored) -> std::pair<errc, std::string> {
    try {
      return {errc{}, bytes_of(stored.read())};
    } catch (const error& failure) {
      return {failure.code(), {}};
    }
  };
  int copied = 0;
  int refused = 0;
  for (std::uint64_t offset = 0; offset < sound_.size(); offset += run_long() ? 1 : 2) {
    if (sound_[offset] == std::byte{0} || !covered.contains(offset / 4096 * 4096)) continue;
    std::vector<std::byte> changed = sound_;
    changed[offset] ^= std::byte{255};
    sums.correct(changed);
    replace_file(changed);
    try {
      const auto stored = container::open(path_).latest().find("höhe/packed");
      if (!stored || stored->kind() == array_kind::dense || stored->shape() != dims{40, 9})
        continue;
      change.create_copy("c", *stored);
      EXPECT_EQ(elements_of(*change.find("c")), elements_of(*stored)) << "byte " << offset;
      change.remove("c");
      ++copied;
    } catch (const error& failure) {
      ++refused;
      // Some hostile arrays have a form that no new array gets.
      ASSERT_TRUE(failure.code() == errc::corrupt || failure.code() == errc::unsupported ||
                  failure.code() == errc::invalid_argument)
          << "byte " << offset << "\n"
          << failure.what();
      ASSERT_FALSE(change.find("c")) << "byte " << offset;
    }
  }
  EXPECT_GT(copied, 50);
  EXPECT_GT(refused, 50);
}

TEST_F(ArrayDamage, AnyTruncationIsFound) {
  const std::uint64_t step = run_long() ? 1 : 5;
  std::uint64_t bytes = sound_.size();
  while (bytes > 0) {
    // All lengths near the beginning or end of an extent, and some others.
    const std::uint64_t near = bytes % 512;
    bytes -= near <= 2 || near >= 510 ? 1 : std::min(step, near - 1);
    ASSERT_EQ(::ftruncate(file_, static_cast<off_t>(bytes)), 0);
    const outcome seen = read();
    ASSERT_EQ(seen.code, errc::corrupt) << bytes << " bytes\n" << seen.text;
    ASSERT_NE(seen.text.find(path_), std::string::npos) << seen.text;
  }
}

TEST_F(ArrayDamage, LaterVersionsAndFeaturesAreUnsupportedOtherMagicIsCorrupt) {
  const fuzz::checksums sums(sound_);
  const auto code_with = [&](std::vector<std::uint64_t> places, int value) {
    std::vector<std::byte> changed = sound_;
    for (const std::uint64_t place : places) changed[place] = static_cast<std::byte>(value);
    sums.correct(changed);
    replace_file(changed);
    return read().code;
  };
  const auto [first, second] = format::superblock_offsets;
  EXPECT_EQ(code_with({8}, 2), errc::unsupported);                          // header version
  EXPECT_EQ(code_with({first + 8, second + 8}, 2), errc::unsupported);      // version
  EXPECT_EQ(code_with({first + 80, second + 80}, 1), errc::unsupported);    // incompatible
  EXPECT_EQ(code_with({first + 87, second + 87}, 128), errc::unsupported);  // incompatible
  EXPECT_EQ(code_with({first + 88, second + 88}, 1), errc{});               // reading is fine
  EXPECT_EQ(code_of([&] { container::open(path_, open_mode::write); }), errc::unsupported);
  EXPECT_EQ(code_with({first + 96, second + 96}, 1), errc{});  // compatible
  EXPECT_EQ(code_of([&] { container::open(path_, open_mode::write); }), errc{});
  EXPECT_EQ(code_with({0}, 0), errc::corrupt);
  EXPECT_EQ(code_with({first, second}, 0), errc::corrupt);
  // A newest superblock of a later version is not ignored in favour of an older one.
  const std::uint64_t slot = format::superblock_offsets[(newest() - 1) % 2];
  EXPECT_EQ(code_with({slot + 8}, 9), errc::unsupported);
}

TEST_F(ArrayDamage, ShapesBeyondAnyFileAreRefusedBeforeAnythingIsAllocated) {
  const test::little_memory limit;
  container file = container::open(path_, open_mode::write);
  transaction change = file.begin();
  for (const dims& shape :
       {dims{-1}, dims{3, -4}, dims{INT64_MAX}, dims{INT64_MAX, 2}, dims{index_t{1} << 32, 1 << 31},
        dims{index_t{1} << 32, index_t{1} << 32}, dims{index_t{1} << 62, 4}, dims{1, INT64_MIN},
        dims::filled(32, 4), dims::filled(32, INT64_MAX)}) {
    SCOPED_TRACE(to_string(shape));
    for (const array_kind kind : {array_kind::dense, array_kind::chunked})
      EXPECT_EQ(code_of([&] {
                  change.create("huge", {.dtype = dtype::float64, .shape = shape, .kind = kind});
                }),
                errc::invalid_argument);
  }
  EXPECT_EQ(code_of([] { dims::filled(33, 1); }), errc::invalid_argument);
  // Larger than most disks, but a size that a file could have: 2^57 bytes to some systems.
  const errc full = code_of([&] { change.create("huge", {.shape = {index_t{1} << 55}}); });
  EXPECT_TRUE(full == errc::out_of_space || full == errc::io) << name(full);
  EXPECT_FALSE(change.find("huge"));
  // An array for which there was no space leaves no trace in the file.
  change.commit();
  struct stat status {};
  ASSERT_EQ(::fstat(file_, &status), 0);
  EXPECT_LT(status.st_size, 2 * static_cast<off_t>(sound_.size()));
  EXPECT_EQ(test::findings_of(file), "");
  EXPECT_EQ(read().state, states_.back());
}

TEST_F(ArrayDamage, PathsThatAreNoRegularFilesAreErrors) {
  const auto error_of = [&](const std::string& path) {
    const std::string text = text_of([&] { container::open(path); });
    EXPECT_NE(text.find(path), std::string::npos) << text;
    return code_of([&] { container::open(path); });
  };
  ASSERT_EQ(::mkfifo((directory_ / "pipe.shale").c_str(), 0600), 0);
  ASSERT_EQ(::symlink("loop.shale", (directory_ / "loop.shale").c_str()), 0);
  ASSERT_EQ(::symlink("nowhere", (directory_ / "dangling.shale").c_str()), 0);
  EXPECT_EQ(error_of(directory_ / "pipe.shale"), errc::invalid_argument);
  EXPECT_EQ(error_of(directory_.path()), errc::invalid_argument);
  EXPECT_EQ(error_of("/dev/null"), errc::invalid_argument);
  EXPECT_EQ(error_of("/dev/zero"), errc::invalid_argument);
  EXPECT_EQ(error_of(directory_ / "loop.shale"), errc::io);
  EXPECT_EQ(error_of(directory_ / "dangling.shale"), errc::not_found);
  EXPECT_EQ(error_of(path_ + "/below"), errc::io);
  ASSERT_EQ(::ftruncate(file_, 0), 0);
  EXPECT_EQ(error_of(path_), errc::corrupt);
}

TEST_F(ArrayDamage, ALinkIsReadLikeItsFile) {
  ASSERT_EQ(::symlink("hostile.shale", (directory_ / "link.shale").c_str()), 0);
  const container file = container::open(directory_ / "link.shale");
  EXPECT_EQ(bytes_of(file.latest().at("dense").read()), states_.back()["dense"].elements);
}

TEST_F(ArrayDamage, UnreadableAndUnwritableFilesAreAccessDenied) {
  ASSERT_EQ(::chmod(directory_.path().c_str(), 0755), 0);
  ASSERT_EQ(::chmod(path_.c_str(), 0444), 0);
  {
    const test::ordinary_user rights;
    EXPECT_EQ(read().state, states_.back());
    EXPECT_EQ(code_of([&] { container::open(path_, open_mode::write); }), errc::access_denied);
  }
  ASSERT_EQ(::chmod(path_.c_str(), 0), 0);
  const test::ordinary_user rights;
  EXPECT_EQ(code_of([&] { container::open(path_); }), errc::access_denied);
}

TEST_F(ArrayDamage, AFileThatDisappearsKeepsItsSnapshotsAndOpensNoMore) {
  const container file = container::open(path_);
  const snapshot now = file.latest();
  const std::vector<std::string> names = now.names();
  ASSERT_EQ(::unlink(path_.c_str()), 0);
  for (const std::string& name : names)
    EXPECT_EQ(bytes_of(now.at(name).read()), states_.back()[name].elements);
  EXPECT_EQ(code_of([&] { file.latest(); }), errc::not_found);
  EXPECT_EQ(code_of([&] { container::open(path_); }), errc::not_found);
}

// A container on a disk that has no space for the next write.
class FullDisk : public testing::Test {
 protected:
  // Fills the disk in a transaction, in each way that takes space, and checks the container
  // afterwards.
  static void expect_intact_after(errc wanted, const std::string& path) {
    const tensor values = test::seeded({3, 40}, 1);
    container file = container::create(path);
    {
      transaction change = file.begin();
      change.create("a", {.shape = values.shape()}).write(values);
      change.commit();
    }
    const tensor noise = tensor::empty({1 << 19}, dtype::float32);
    std::uint32_t state = 1;
    for (float& value : noise.elements<float>())
      value = static_cast<float>(state = state * 1664525u + 1013904223u);
    for (const array_kind kind : {array_kind::dense, array_kind::chunked}) {
      transaction change = file.begin();
      const std::string text = text_of([&] {
        change.create("large", {.shape = noise.shape(), .kind = kind}).write(noise);
        change.commit();
      });
      EXPECT_NE(text.find("[" + std::string(name(wanted)) + "]"), std::string::npos) << text;
      EXPECT_NE(text.find(path), std::string::npos) << text;
    }
    // The container is opened again, because the failure may have poisoned the first object.
    container again = container::open(path, open_mode::write);
    EXPECT_EQ(again.latest().generation(), 2u);
    EXPECT_EQ(again.latest().names(), std::vector<std::string>{"a"});
    EXPECT_TRUE(equal_bits(again.latest().at("a").read(), values));
    EXPECT_EQ(test::findings_of(again), "");
    transaction change = again.begin();
    change.create("small", {.shape = {10}});
    EXPECT_EQ(change.commit(), 3u);
  }
};

TEST_F(FullDisk, LeavesTheOldGenerationAndRoomForTheNext) {
  const test::small_disk disk;
  if (!disk.is_mounted()) GTEST_SKIP() << "no right to mount a small file system";
  expect_intact_after(errc::out_of_space, disk.files() / "a.shale");
  // A new container either fits in the last bytes of the disk, or leaves no file.
  std::ofstream(disk.files() / "filler") << std::string(4u << 20, 'x');
  EXPECT_EQ(code_of([&] { container::create(disk.files() / "b.shale"); }), errc::out_of_space);
  EXPECT_EQ(disk.files().names().size(), 2u);
}

TEST_F(FullDisk, IsAnErrorToALimitOnFileSizesToo) {
  const test::scratch_directory files;
  const test::short_files limit(1u << 20);
  expect_intact_after(errc::out_of_space, files / "a.shale");
}

}  // namespace
}  // namespace shale
