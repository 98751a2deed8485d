#include "shale/npz.hpp"

#include <gtest/gtest.h>

#include "interop/numpy_script.hpp"
#include "interop/test_support.hpp"
#include "interop/zip_reader.hpp"
#include "interop/zip_writer.hpp"
#include "shale/executor.hpp"
#include "shale/memory_pool.hpp"
#include "shale/npy.hpp"
#include "shale/raw.hpp"

namespace shale {
namespace {

using test::code_of;
using test::pattern;
using test::scratch_directory;
using members_list = std::vector<std::pair<std::string, tensor>>;

members_list some_members() {
  return {{"first", pattern({3, 5}, dtype::int16, 1)},
          {"second", pattern({4}, dtype::float64, 2)},
          {"flags", pattern({2, 3}, dtype::boolean, 3)}};
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span<const char>(text.data(), text.size()));
}

void put_number(std::string& file, std::size_t offset, std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i)
    file[offset + i] = static_cast<char>(value >> (8 * i) & 0xff);
}

TEST(Npz, StoredMembersOfOursAreMappedAndAligned) {
  const scratch_directory files;
  write_npz(files / "a.npz", some_members());
  const npz_file archive = npz_file::open(files / "a.npz");
  EXPECT_EQ(archive.names(), (std::vector<std::string>{"first", "second", "flags"}));
  for (const auto& [name, values] : some_members()) {
    const tensor read = archive.read(name);
    EXPECT_EQ(read.storage().kind(), storage_kind::file);
    EXPECT_EQ(read.storage().file_offset().value() % 64, 0u);
    EXPECT_FALSE(read.writable());
    EXPECT_TRUE(equal_bits(read, values));
  }
  tensor own = archive.read("second", {.access = access::copy_on_write});
  own.set({0}, 1.5);
  EXPECT_TRUE(equal_bits(archive.read("second"), some_members()[1].second));
}

TEST(Npz, TensorsOutliveTheirArchive) {
  const scratch_directory files;
  write_npz(files / "a.npz", some_members());
  const tensor read = npz_file::open(files / "a.npz").read("first");
  std::filesystem::remove(files / "a.npz");
  EXPECT_TRUE(equal_bits(read, some_members()[0].second));
}

TEST(Npz, WritersCountWhatTheyReadAndWrite) {
  const scratch_directory files;
  executor on;
  const executor::scope within(on);
  const tensor values = pattern({30, 50}, dtype::int16, 1);
  const auto expect_counts = [&](std::uint64_t passes, std::uint64_t read, std::uint64_t written) {
    const executor_statistics counted = on.statistics();
    EXPECT_EQ(counted.passes, passes);
    EXPECT_EQ(counted.bytes_read, read);
    EXPECT_EQ(counted.bytes_written, written);
  };
  write_npy(files / "a.npy", values);
  expect_counts(1, 3000, 3000);
  npz_writer archive(files / "a.npz");
  archive.add("strided", values.permute_dims({1, 0}).narrow(0, 0, 25));
  expect_counts(2, 4500, 4500);
  archive.add("repeated", values.narrow(0, 3, 1).broadcast_to({30, 50}));
  archive.finish();
  expect_counts(3, 4600, 7500);
  write_raw(files / "a.raw", values);
  expect_counts(4, 7600, 10500);
}

TEST(Npz, ChecksumsOfMappedMembersAreComparedWhenAsked) {
  const scratch_directory files;
  write_npz(files / "a.npz", some_members());
  std::string bytes = test::read_file(files / "a.npz");
  const tensor second = npz_file::open(files / "a.npz").read("second");
  bytes[second.storage().file_offset().value()] ^= 1;
  test::write_file(files / "b.npz", bytes);
  const npz_file archive = npz_file::open(files / "b.npz");
  EXPECT_FALSE(equal_bits(archive.read("second"), second));
  EXPECT_EQ(code_of([&] { archive.read("second", {.checksum = npz_checksum::always}); }),
            errc::corrupt);
  EXPECT_TRUE(equal_bits(archive.read("first", {.checksum = npz_checksum::always}),
                         some_members()[0].second));
}

TEST(Npz, ListsAMemberWithBytesAlsoIfItsNameIsThatOfADirectory) {
  const scratch_directory files;
  write_npz(files / "a.npz", some_members());
  std::string archive = test::read_file(files / "a.npz");
  const std::string member = "first.npy", directory = "first.np/";
  for (std::size_t at = archive.find(member); at != std::string::npos; at = archive.find(member))
    archive.replace(at, member.size(), directory);
  test::write_file(files / "b.npz", archive);
  const npz_file read = npz_file::open(files / "b.npz");
  EXPECT_EQ(read.names(), (std::vector<std::string>{directory, "second", "flags"}));
  EXPECT_TRUE(equal_bits(read.read(directory), some_members()[0].second));
}

TEST(Npz, CutAnywhereOrLongerIsCorrupt) {
  const scratch_directory files;
  for (const auto compression : {npz_compression::stored, npz_compression::deflate}) {
    write_npz(files / "a.npz", some_members(), {.compression = compression});
    const std::string whole = test::read_file(files / "a.npz");
    for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
      test::write_file(files / "b.npz", whole.substr(0, bytes));
      EXPECT_EQ(code_of([&] { npz_file::open(files / "b.npz"); }), errc::corrupt) << bytes;
    }
    test::write_file(files / "b.npz", whole + "x");
    EXPECT_EQ(code_of([&] { npz_file::open(files / "b.npz"); }), errc::corrupt);
    test::write_file(files / "b.npz", "x" + whole);
    EXPECT_EQ(code_of([&] { npz_file::open(files / "b.npz"); }), errc::corrupt);
  }
}

// With checksums on, every result that can still be read is right, whichever bit was flipped.
void expect_no_flip_to_be_believed(const scratch_directory& files, const std::string& whole,
                                   const members_list& members) {
  std::size_t refused = 0;
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string changed = whole;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ 1 << bit % 8);
    test::write_file(files / "b.npz", changed);
    const auto expected_code = [](errc code) {
      return code == errc::corrupt || code == errc::unsupported;
    };
    try {
      const npz_file archive = npz_file::open(files / "b.npz");
      ASSERT_EQ(archive.names().size(), members.size()) << bit;
      for (std::size_t i = 0; i < members.size(); ++i) {
        try {
          const tensor read = archive.read(archive.names()[i], {.checksum = npz_checksum::always});
          EXPECT_TRUE(equal_bits(read, members[i].second)) << "bit " << bit;
        } catch (const error& failure) {
          ++refused;
          EXPECT_TRUE(expected_code(failure.code())) << "bit " << bit << ": " << failure.what();
        }
      }
    } catch (const error& failure) {
      ++refused;
      EXPECT_TRUE(expected_code(failure.code())) << "bit " << bit << ": " << failure.what();
    }
  }
  EXPECT_GT(refused, whole.size());
}

// zip.1, zip.4
TEST(Npz, FlippedBitsNeverChangeElements) {
  const scratch_directory files;
  const members_list members{{"a", pattern({3, 5}, dtype::int16, 1)},
                             {"b", pattern({5}, dtype::boolean, 3)}};
  for (const auto compression : {npz_compression::stored, npz_compression::deflate}) {
    write_npz(files / "a.npz", members, {.compression = compression});
    expect_no_flip_to_be_believed(files, test::read_file(files / "a.npz"), members);
  }
}

TEST(Npz, FlippedBitsOfZip64RecordsNeverChangeElements) {
  const scratch_directory files;
  const tensor values = pattern({7}, dtype::int32, 9);
  const std::string npy =
      format_npy_header({.dtype = dtype::int32, .shape = {7}}) + test::row_major_bytes(values);
  interop::zip_writer archive(files / "a.npz", existing_file::replace, interop::zip64_form::always);
  for (const int level : {0, 6}) {
    archive.begin("m" + std::to_string(level) + ".npy",
                  {.deflate_level = level, .bytes = npy.size()});
    archive.append(bytes_of(npy));
    archive.end();
  }
  archive.publish();
  expect_no_flip_to_be_believed(files, test::read_file(files / "a.npz"),
                                {{"m0", values}, {"m6", values}});
}

TEST(Npz, Zip64RecordsOfOursAreReadByNumPy) {
  const scratch_directory files;
  const std::string npy = format_npy_header({.dtype = dtype::int32, .shape = {7}}) +
                          test::row_major_bytes(pattern({7}, dtype::int32, 9));
  interop::zip_writer archive(files / "a.npz", existing_file::replace, interop::zip64_form::always);
  for (const int level : {0, 1, 9}) {
    archive.begin("m" + std::to_string(level) + ".npy",
                  {.deflate_level = level, .bytes = npy.size()});
    archive.append(bytes_of(npy));
    archive.end();
  }
  archive.publish();
  test::write_file(files / "manifest",
                   "a.npz|m0|int32|7|9|a\na.npz|m1|int32|7|9|a\na.npz|m9|int32|7|9|a\n");
  test::run_numpy("check " + files.path());
}

TEST(Npz, MoreMembersThanSixteenBitsCountAreRead) {
  const scratch_directory files;
  const std::string npy = format_npy_header({.dtype = dtype::int8, .shape = {1}}) + "A";
  interop::zip_writer archive(files / "a.npz", existing_file::replace);
  constexpr int count = 66'000;
  for (int i = 0; i < count; ++i) {
    archive.begin(std::to_string(i), {.bytes = npy.size()});
    archive.append(bytes_of(npy));
    archive.end();
  }
  archive.publish();
  const npz_file opened = npz_file::open(files / "a.npz");
  EXPECT_EQ(opened.names().size(), static_cast<std::size_t>(count));
  EXPECT_EQ(opened.read("65999").at({0}), scalar(65));
}

// An archive with one stored and one deflated member, written by hand, for content that no writer
// produces.
class hand_made {
 public:
  explicit hand_made(int level = 0) {
    const std::string npy =
        format_npy_header({.dtype = dtype::uint8, .shape = {100}}) + std::string(100, 'z');
    interop::zip_writer archive(files_ / "a.npz", existing_file::replace);
    for (const char* name : {"a", "b"}) {
      archive.begin(name, {.deflate_level = level, .bytes = npy.size()});
      archive.append(bytes_of(npy));
      archive.end();
    }
    archive.publish();
    bytes = test::read_file(files_ / "a.npz");
    central[0] = bytes.find("PK\x01\x02");
    central[1] = bytes.find("PK\x01\x02", central[0] + 1);
    local[0] = 0;
    local[1] = bytes.find("PK\x03\x04", 1);
    end = bytes.find("PK\x05\x06");
  }

  /// Sets a field of member `member` in both places that hold it.
  void set(int member, std::size_t in_central, std::size_t in_local, std::uint64_t value,
           std::size_t width) {
    put_number(bytes, central[member] + in_central, value, width);
    put_number(bytes, local[member] + in_local, value, width);
  }

  errc open() const {
    test::write_file(files_ / "b.npz", bytes);
    return code_of([&] { npz_file::open(files_ / "b.npz"); });
  }
  errc read(const std::string& name) const {
    test::write_file(files_ / "b.npz", bytes);
    const npz_file archive = npz_file::open(files_ / "b.npz");
    return code_of([&] { archive.read(name, {.checksum = npz_checksum::always}); });
  }
  std::string path() const { return files_ / "b.npz"; }

  std::string bytes;
  std::size_t central[2], local[2], end;

 private:
  scratch_directory files_;
};

// zip.2
TEST(HostileZip, OverlappingMembersAreCorrupt) {
  hand_made same;
  put_number(same.bytes, same.central[1] + 42, 0, 4);  // b begins where a begins
  EXPECT_EQ(same.open(), errc::corrupt);
  hand_made inside;
  inside.set(0, 20, 18, inside.local[1] + 10, 4);  // a reaches into b
  inside.set(0, 24, 22, inside.local[1] + 10, 4);
  EXPECT_EQ(inside.open(), errc::corrupt);
  hand_made long_header;  // they overlap only because of the length of the local header
  put_number(long_header.bytes, long_header.local[0] + 28, 0xffff, 2);
  EXPECT_EQ(long_header.read("a"), errc::corrupt);
  hand_made outside;
  put_number(outside.bytes, outside.central[1] + 42, 0xfffffff0, 4);
  EXPECT_EQ(outside.open(), errc::corrupt);
}

TEST(HostileZip, EncryptedMembersAndOtherMethodsAreUnsupportedOthersStayReadable) {
  for (const auto& [central, local, value] : {std::tuple(8, 6, 1),
                                              {8, 6, 1 << 6},
                                              {8, 6, 1 << 13},
                                              {8, 6, 1 << 5},
                                              {10, 8, 1},
                                              {10, 8, 9},
                                              {10, 8, 12},
                                              {10, 8, 14},
                                              {10, 8, 93},
                                              {10, 8, 99}}) {
    hand_made file;
    file.set(0, static_cast<std::size_t>(central), static_cast<std::size_t>(local),
             static_cast<std::uint64_t>(value), 2);
    EXPECT_EQ(file.read("a"), errc::unsupported) << value;
    EXPECT_EQ(npz_file::open(file.path()).read("b").size(), 100);
  }
}

// zip.1
TEST(HostileZip, DirectoryThatContradictsItselfIsCorrupt) {
  for (const auto& [offset, value, width] :
       {std::tuple(10, 1, 2), {10, 3, 2}, {12, 5, 4}, {16, 0, 4}, {16, 0x7fffffff, 4}}) {
    hand_made file;
    put_number(file.bytes, file.end + static_cast<std::size_t>(offset),
               static_cast<std::uint64_t>(value), static_cast<std::size_t>(width));
    if (offset == 10) put_number(file.bytes, file.end + 8, static_cast<std::uint64_t>(value), 2);
    EXPECT_EQ(file.open(), errc::corrupt) << offset;
  }
  hand_made disks;
  put_number(disks.bytes, disks.end + 4, 1, 2);
  EXPECT_EQ(disks.open(), errc::unsupported);
  hand_made twice;
  twice.bytes[twice.central[1] + 46] = 'a';
  EXPECT_EQ(twice.open(), errc::corrupt);
  hand_made nul;
  nul.bytes[nul.central[1] + 46] = '\0';
  EXPECT_EQ(nul.open(), errc::corrupt);
  hand_made no_text;
  no_text.set(1, 8, 6, 1 << 11, 2);
  no_text.bytes[no_text.central[1] + 46] = '\xff';
  EXPECT_EQ(no_text.open(), errc::corrupt);
  hand_made other_name;
  other_name.bytes[other_name.local[0] + 30] = 'x';
  EXPECT_EQ(other_name.read("a"), errc::corrupt);
}

// zip.3, zip.4
TEST(HostileZip, DeclaredSizesAllocateNothing) {
  memory_pool& pool = memory_pool::default_pool();
  pool.reset_peak();
  const std::size_t before = pool.statistics().peak_live_bytes;
  // The sizes agree, but a stream of this length cannot reach them.
  hand_made bomb(6);
  bomb.set(0, 24, 22, 0xfffffff0, 4);
  EXPECT_EQ(bomb.read("a"), errc::corrupt);
  hand_made longer(6);
  longer.set(0, 24, 22, 1000, 4);
  EXPECT_EQ(longer.read("a"), errc::corrupt);
  hand_made shorter(6);
  shorter.set(0, 24, 22, 200, 4);
  EXPECT_EQ(shorter.read("a"), errc::corrupt);
  hand_made two_sizes;
  two_sizes.set(0, 24, 22, 0xfffffff0, 4);
  EXPECT_EQ(two_sizes.read("a"), errc::corrupt);
  EXPECT_LT(pool.statistics().peak_live_bytes, before + (4u << 20));
}

TEST(HostileZip, NpyHeaderThatPromisesMoreThanTheMemberIsCorrupt) {
  const scratch_directory files;
  for (const int level : {0, 6}) {
    for (const dims& shape : {dims{101}, dims{99}, dims{index_t{1} << 50}, dims{0}}) {
      const std::string npy =
          format_npy_header({.dtype = dtype::uint8, .shape = shape}) + std::string(100, 'z');
      interop::zip_writer archive(files / "a.npz", existing_file::replace);
      archive.begin("a.npy", {.deflate_level = level, .bytes = npy.size()});
      archive.append(bytes_of(npy));
      archive.end();
      archive.publish();
      EXPECT_EQ(code_of([&] { npz_file::open(files / "a.npz").read("a"); }), errc::corrupt);
    }
  }
}

TEST(HostileZip, RandomBytesAreRefused) {
  const scratch_directory files;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const tensor noise = pattern({static_cast<index_t>(22 + seed)}, dtype::uint8, seed);
    std::string bytes = test::row_major_bytes(noise);
    // Adds an end record whose numbers are random or point inside.
    std::string record("PK\x05\x06", 4);
    record.append(bytes, 0, 18);
    put_number(record, 4, 0, 4);
    put_number(record, 8, 1, 2);
    put_number(record, 10, 1, 2);
    put_number(record, 12, seed % 60, 4);
    put_number(record, 16, bytes.size() - seed % 60, 4);
    put_number(record, 20, 0, 2);
    test::write_file(files / "a.npz", bytes + record);
    EXPECT_EQ(code_of([&] { npz_file::open(files / "a.npz"); }), errc::corrupt);
  }
}

TEST(NpzNames, ThatArchivesCannotHoldAreRefused) {
  const scratch_directory files;
  const tensor one = pattern({1}, dtype::int8, 1);
  for (const members_list& members :
       {members_list{{"", one}}, members_list{{"a", one}, {"a", one}},
        members_list{{std::string("a\0b", 3), one}}, members_list{{"\xff", one}},
        members_list{{"\xc0\x80", one}}, members_list{{"\xed\xa0\x80", one}},
        members_list{{std::string(70'000, 'a'), one}}})
    EXPECT_EQ(code_of([&] { write_npz(files / "a.npz", members); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { write_npz(files / "a.npz", {}, {.level = 10}); }),
            errc::invalid_argument);
  EXPECT_TRUE(files.names().empty());
  EXPECT_EQ(code_of([&] {
              write_npz(files / "a.npz",
                        members_list{{"a", one}, {"b", pattern({1}, dtype::bfloat16, 1)}});
            }),
            errc::unsupported);
  EXPECT_TRUE(files.names().empty());
  const members_list longest{{std::string(65'000, 'n'), one}};
  write_npz(files / "a.npz", longest);
  EXPECT_TRUE(equal_bits(npz_file::open(files / "a.npz").read(longest[0].first), one));
}

// NumPy stores "a" as "a.npy", and looks for "a.npy" under this name first.
TEST(NpzNames, ThatDifferByTheSuffixAloneAreRefused) {
  const scratch_directory files;
  const tensor one = pattern({1}, dtype::int8, 1);
  const tensor two = pattern({2}, dtype::int8, 2);
  using names = std::pair<std::string, std::string>;
  for (const auto& [first, second] : {names("a", "a.npy"), names("a.npy.npy", "a.npy")}) {
    for (const members_list& members :
         {members_list{{first, one}, {second, two}}, members_list{{second, two}, {first, one}}}) {
      EXPECT_EQ(code_of([&] { write_npz(files / "a.npz", members); }), errc::invalid_argument);
      npz_writer writer(files / "a.npz");
      writer.add(members[0].first, members[0].second);
      EXPECT_EQ(code_of([&] { writer.add(members[1].first, members[1].second); }),
                errc::invalid_argument);
    }
  }
  EXPECT_TRUE(files.names().empty());
  // Names that two suffixes, or another letter, set apart find their own members.
  const members_list apart{{"a", one}, {"a.npy.npy", two}, {"b.npy", two}, {"a.npx", one}};
  write_npz(files / "a.npz", apart);
  const npz_file archive = npz_file::open(files / "a.npz");
  for (const auto& [name, values] : apart) EXPECT_TRUE(equal_bits(archive.read(name), values));
  EXPECT_EQ(archive.names(), (std::vector<std::string>{"a", "a.npy.npy", "b.npy", "a.npx"}));
}

TEST(Npz, SameMembersGiveTheSameBytes) {
  const scratch_directory files;
  for (const auto compression : {npz_compression::stored, npz_compression::deflate}) {
    write_npz(files / "a.npz", some_members(), {.compression = compression});
    write_npz(files / "b.npz", some_members(), {.compression = compression});
    EXPECT_EQ(test::read_file(files / "a.npz"), test::read_file(files / "b.npz"));
  }
}

TEST(NpzWriter, WritesTheBytesOfWriteNpz) {
  const scratch_directory files;
  for (const auto compression : {npz_compression::stored, npz_compression::deflate}) {
    write_npz(files / "a.npz", some_members(), {.compression = compression});
    npz_writer writer(files / "b.npz", {.compression = compression});
    for (const auto& [name, values] : some_members()) writer.add(name, values);
    EXPECT_FALSE(std::filesystem::exists(files / "b.npz"));
    npz_writer moved = std::move(writer);
    moved.finish();
    EXPECT_EQ(test::read_file(files / "a.npz"), test::read_file(files / "b.npz"));
    std::filesystem::remove(files / "b.npz");
  }
}

TEST(NpzWriter, LeavesNoFileWithoutItsEnd) {
  const scratch_directory files;
  npz_writer(files / "a.npz").add("a", pattern({3}, dtype::int8, 1));
  EXPECT_TRUE(files.names().empty());
}

TEST(NpzWriter, GoesOnAfterANameThatIsRefused) {
  const scratch_directory files;
  const tensor one = pattern({1}, dtype::int8, 1);
  npz_writer writer(files / "a.npz");
  writer.add("a", one);
  for (const auto* name : {"", "a", "\xff"})
    EXPECT_EQ(code_of([&] { writer.add(name, one); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { writer.add("b", pattern({1}, dtype::bfloat16, 1)); }), errc::unsupported);
  writer.add("b", one);
  writer.finish();
  EXPECT_EQ(npz_file::open(files / "a.npz").names(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(code_of([&] { writer.add("c", one); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { writer.finish(); }), errc::invalid_argument);
}

// What the cancelled call has written of its member would be taken for the member.
TEST(NpzWriter, DoesNotFinishAfterAMemberThatFailed) {
  const scratch_directory files;
  const tensor one = pattern({1}, dtype::int8, 1);
  executor on({.threads = 1});
  const executor::scope within(on);
  std::optional<npz_writer> writer(std::in_place, files / "a.npz");
  on.cancel();
  EXPECT_EQ(code_of([&] { writer->add("a", one); }), errc::cancelled);
  on.resume();
  EXPECT_EQ(code_of([&] { writer->add("b", one); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { writer->finish(); }), errc::invalid_argument);
  writer.reset();
  EXPECT_TRUE(files.names().empty());
}

TEST(Npz, ReadingIsCancelled) {
  const scratch_directory files;
  write_npz(files / "a.npz", some_members(), {.compression = npz_compression::deflate});
  const npz_file archive = npz_file::open(files / "a.npz");
  executor on({.threads = 1});
  const executor::scope within(on);
  on.cancel();
  EXPECT_EQ(code_of([&] { archive.read("first"); }), errc::cancelled);
  on.resume();
  EXPECT_TRUE(equal_bits(archive.read("first"), some_members()[0].second));
}

}  // namespace
}  // namespace shale
