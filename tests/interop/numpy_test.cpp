// Exchanges files with NumPy in both directions: Shale reads what NumPy writes, and writes the
// bytes that NumPy would write.
#include <gtest/gtest.h>

#include <algorithm>

#include "interop/numpy_script.hpp"
#include "interop/test_support.hpp"
#include "shale/npy.hpp"
#include "shale/npz.hpp"

namespace shale {
namespace {

using test::scratch_directory;

std::vector<std::string> split(const std::string& line, char separator) {
  std::vector<std::string> parts(1);
  for (const char character : line) {
    if (character == separator) parts.emplace_back();
    else parts.back() += character;
  }
  return parts;
}

dims parse_extents(const std::string& text) {
  std::istringstream words(text);
  dims shape;
  for (index_t extent = 0; words >> extent;) shape.push_back(extent);
  return shape;
}

class NumPyFiles : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    files = new scratch_directory;
    test::run_numpy("write " + files->path());
  }
  static void TearDownTestSuite() {
    delete files;
    files = nullptr;
  }
  static scratch_directory* files;
};
scratch_directory* NumPyFiles::files = nullptr;

// npy.3: any spacing, key order and kind of quote, as numpy_files.py writes them.
TEST_F(NumPyFiles, AreReadWithTheElementsThatNumPyHas) {
  std::istringstream manifest(test::read_file(*files / "manifest"));
  int seen = 0;
  for (std::string line; std::getline(manifest, line); ++seen) {
    SCOPED_TRACE(line);
    const auto parts = split(line, '|');
    ASSERT_EQ(parts.size(), 5u);
    const std::string wanted = test::read_file(*files / (std::to_string(seen) + ".expect"));
    const std::string path = *files / parts[0];
    for (const access allowed : {access::read_only, access::copy_on_write}) {
      tensor read = parts[1].empty() ? read_npy(path, {.access = allowed})
                                     : npz_file::open(path).read(parts[1], {.access = allowed});
      EXPECT_EQ(read.dtype(), parse_dtype(parts[2]));
      EXPECT_EQ(read.shape(), parse_extents(parts[3]));
      EXPECT_EQ(test::row_major_bytes(read), wanted);
      EXPECT_EQ(read.writable(), allowed == access::copy_on_write);
      if (parts[4] != "any" && read.size() > 0) {
        EXPECT_EQ(read.storage().kind(),
                  parts[4] == "mapped" ? storage_kind::file : storage_kind::heap);
      }
    }
    if (!parts[1].empty()) {
      const npz_member member = npz_file::open(path).inspect(parts[1]);
      EXPECT_EQ(member.header.shape, parse_extents(parts[3]));
      const tensor checked =
          npz_file::open(path).read(parts[1], {.checksum = npz_checksum::always});
      EXPECT_EQ(test::row_major_bytes(checked), wanted);
    }
  }
  EXPECT_GT(seen, 150);
}

TEST_F(NumPyFiles, KeepFortranOrderAsStrides) {
  const tensor read = read_npy(*files / "float64_fortran.npy");
  EXPECT_EQ(read.shape(), (dims{2, 3, 5}));
  EXPECT_EQ(read.strides(), (dims{1, 2, 6}));
  EXPECT_EQ(inspect_npy(*files / "float64_big_fortran.npy").byte_order, std::endian::big);
  EXPECT_TRUE(inspect_npy(*files / "float64_big_fortran.npy").fortran_order);
  EXPECT_EQ(read_npy(*files / "float64_big_fortran.npy").strides(), (dims{1, 2, 6}));
}

TEST_F(NumPyFiles, TellTheirVersion) {
  for (int version = 1; version <= 3; ++version) {
    const npy_header header = inspect_npy(*files / ("version_" + std::to_string(version) + ".npy"));
    EXPECT_EQ(header.version, version);
    EXPECT_EQ(header.shape, (dims{4, 3}));
    EXPECT_EQ(header.dtype, dtype::int32);
    EXPECT_EQ(header.data_offset % 64, 0u);
    EXPECT_EQ(header.data_bytes(), 48u);
  }
}

TEST_F(NumPyFiles, OfForeignDtypesAreRefusedWithAWayOut) {
  for (const char* name : {"object", "structured", "void", "long_double"}) {
    SCOPED_TRACE(name);
    try {
      read_npy(*files / (std::string(name) + ".npy"));
      FAIL();
    } catch (const error& failure) {
      EXPECT_EQ(failure.code(), errc::unsupported);
      EXPECT_NE(std::string(failure.what()).find("save"), std::string::npos) << failure.what();
    }
  }
}

TEST_F(NumPyFiles, TellWhatTheirIntegersStandFor) {
  const npz_file archive = npz_file::open(*files / "times.npz");
  for (const auto& [name, type] :
       {std::pair("date_ns", "datetime64[ns]"), std::pair("date_25s", "datetime64[25s]"),
        std::pair("date_D", "datetime64[D]"), std::pair("span_us", "timedelta64[us]"),
        std::pair("span", "timedelta64"), std::pair("text", "U4"), std::pair("bytes", "S7")}) {
    SCOPED_TRACE(name);
    for (const char* form : {"_little_C.npy", "_little_F.npy", "_big_C.npy", "_big_F.npy"}) {
      const npy_header header = inspect_npy(*files / (std::string(name) + form));
      ASSERT_TRUE(header.logical);
      EXPECT_EQ(shale::name(*header.logical, header.shape), type);
    }
    const npy_header member = archive.inspect(name).header;
    ASSERT_TRUE(member.logical);
    EXPECT_EQ(shale::name(*member.logical, member.shape), type);
  }
  EXPECT_EQ(inspect_npy(*files / "float64_fortran.npy").logical, std::nullopt);
  // The characters of a text are neighbours in either order of the other axes.
  EXPECT_EQ(read_npy(*files / "text_little_F.npy").strides(), (dims{4, 8, 1}));
}

TEST_F(NumPyFiles, WithSeveralArraysAreReadOneByOne) {
  const std::string path = *files / "several.npy";
  EXPECT_EQ(test::code_of([&] { read_npy(path); }), errc::corrupt);
  const tensor first = read_npy(path, {.trailing = trailing_bytes::ignore});
  EXPECT_TRUE(equal_bits(first, test::pattern({3}, dtype::int16, 1)));
  const npy_header header = inspect_npy(path);
  const tensor second = read_npy(path, {.offset = header.data_offset + header.data_bytes()});
  EXPECT_TRUE(equal_bits(second, test::pattern({2, 2}, dtype::float64, 2)));
}

TEST_F(NumPyFiles, ArchivesShowNumPysNames) {
  const npz_file archive = npz_file::open(*files / "names.npz");
  EXPECT_EQ(archive.names(),
            (std::vector<std::string>{"plain", "both", "both.npy", "a/b", "readme.txt"}));
  EXPECT_TRUE(archive.contains("a/b.npy"));
  EXPECT_FALSE(archive.contains("b"));
  EXPECT_EQ(test::code_of([&] { archive.read("readme.txt"); }), errc::unsupported);
  EXPECT_EQ(test::code_of([&] { archive.read("b"); }), errc::not_found);
  EXPECT_TRUE(npz_file::open(*files / "no_members.npz").names().empty());
  EXPECT_EQ(archive.inspect("a/b.npy").name, "a/b");
}

TEST_F(NumPyFiles, ArchivesAreInflatedOrCopiedAsTheyWereWritten) {
  const npz_file deflated = npz_file::open(*files / "deflate.npz");
  const npz_member member = deflated.inspect("elevation");
  EXPECT_EQ(member.compression, npz_compression::deflate);
  EXPECT_EQ(member.header.dtype, dtype::int16);
  EXPECT_EQ(npz_file::open(*files / "stored.npz").inspect("elevation").compression,
            npz_compression::stored);
  EXPECT_EQ(test::code_of([&] { deflated.read("elevation", {.access = access::read_write}); }),
            errc::invalid_argument);
}

TEST(NumPy, ReadsTheElevationModelAsShaleDoes) {
  // Debian's python3-matplotlib contains the file; the demonstration starts from it.
  const std::string path = "/usr/share/matplotlib/mpl-data/sample_data/jacksboro_fault_dem.npz";
  ASSERT_TRUE(std::filesystem::exists(path)) << "package python-matplotlib-data is missing";
  const npz_file archive = npz_file::open(path);
  std::vector<std::string> names = archive.names();
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names,
            (std::vector<std::string>{"dx", "dy", "elevation", "xmax", "xmin", "ymax", "ymin"}));
  const tensor elevation = archive.read("elevation");
  EXPECT_EQ(elevation.dtype(), dtype::int16);
  EXPECT_EQ(elevation.shape(), (dims{344, 403}));
  const auto heights = elevation.as<const std::int16_t, 2>();
  EXPECT_EQ(heights(0, 0), 483);
  EXPECT_EQ(heights(0, 1), 487);
  EXPECT_EQ(heights(0, 2), 491);
  EXPECT_NEAR(archive.read("xmin").item().as<double>(), -84.41375, 1e-9);
}

// NumPy reads files that Shale wrote.
class WrittenFiles {
 public:
  explicit WrittenFiles(const scratch_directory& files) : files_(files) {}

  void expect(const std::string& file, const std::string& member, const tensor& base,
              std::uint64_t seed, const std::string& expression) {
    std::string extents;
    for (const index_t extent : base.shape()) extents += std::to_string(extent) + " ";
    lines_ += file + "|" + member + "|" + std::string(name(base.dtype())) + "|" + extents + "|" +
              std::to_string(seed) + "|" + expression + "\n";
  }

  void npy(const tensor& base, std::uint64_t seed, const tensor& values,
           const std::string& expression,
           const std::optional<logical_dtype>& logical = std::nullopt) {
    const std::string file = "w" + std::to_string(count_++) + ".npy";
    write_npy(files_ / file, values, {.logical = logical});
    expect(file, "", base, seed, expression);
  }

  void check() {
    test::write_file(files_ / "manifest", lines_);
    test::run_numpy("check " + files_.path());
  }

 private:
  const scratch_directory& files_;
  std::string lines_;
  int count_ = 0;
};

TEST(NumPy, ReadsWhatShaleWroteOfEveryDtypeAndLayout) {
  const scratch_directory files;
  WrittenFiles written(files);
  std::uint64_t seed = 0;
  for (const dtype type : test::numpy_dtypes()) {
    for (const dims& shape : {dims{}, dims{6}, dims{0, 3}, dims{4, 5, 6}})
      written.npy(test::pattern(shape, type, seed), seed, test::pattern(shape, type, seed), "a"),
          ++seed;
    const tensor base = test::pattern({4, 5, 6}, type, ++seed);
    written.npy(base, seed, base.permute_dims({2, 1, 0}), "a.transpose(2, 1, 0)");
    written.npy(base, seed, base.permute_dims({1, 2, 0}), "a.transpose(1, 2, 0)");
    written.npy(base, seed, base.index({slice{.step = -2}, slice{1, 4}, slice{.step = 3}}),
                "a[::-2, 1:4, ::3]");
    written.npy(base, seed, base.select(1, 2).expand_dims(0).broadcast_to({3, 4, 6}),
                "np.broadcast_to(a[:, 2], (3, 4, 6))");
    written.npy(base, seed, base.narrow(0, 1, 2), "a[1:3]");
  }
  const tensor ones = test::pattern({1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                                     1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 3},
                                    dtype::int8, 3);
  written.npy(ones, 3, ones, "a");
  written.check();
}

TEST(NumPy, ReadsTimesAndTextsThatShaleWrote) {
  const scratch_directory files;
  WrittenFiles written(files);
  const tensor counts = test::pattern({4, 5}, dtype::int64, 1);
  for (const char* type : {"datetime64[ns]", "datetime64[25s]", "timedelta64[Y]", "timedelta64"}) {
    const auto logical = parse_logical_dtype(type);
    const std::string view = "a.view('" + std::string(type) + "')";
    written.npy(counts, 1, counts, view, logical);
    written.npy(counts, 1, counts.permute_dims({1, 0}), view + ".T", logical);
    written.npy(counts, 1, counts.narrow(1, 1, 3), view + "[:, 1:4]", logical);
  }
  const auto bytes = parse_logical_dtype("S");
  const tensor letters = test::pattern({4, 5, 7}, dtype::uint8, 2);
  written.npy(letters, 2, letters, "a.view('S7').reshape(4, 5)", bytes);
  // Texts are row-major, whatever the order of the axes.
  written.npy(letters, 2, letters.permute_dims({1, 0, 2}),
              "np.ascontiguousarray(a.view('S7').reshape(4, 5).T)", bytes);
  written.npy(letters, 2, letters.narrow(2, 0, 3),
              "np.ascontiguousarray(a[:, :, :3]).view('S3').reshape(4, 5)", bytes);
  const tensor characters = test::pattern({6, 3}, dtype::uint32, 3);
  written.npy(characters, 3, characters, "a.view('U3').reshape(6)", parse_logical_dtype("U"));

  npz_writer archive(files / "times.npz");
  archive.add("dates", counts, parse_logical_dtype("datetime64[D]"));
  archive.add("texts", letters, bytes);
  archive.finish();
  written.expect("times.npz", "dates", counts, 1, "a.view('datetime64[D]')");
  written.expect("times.npz", "texts", letters, 2, "a.view('S7').reshape(4, 5)");

  npy_writer mapped(files / "mapped.npy", dtype::uint8, {4, 5, 7}, {.logical = bytes});
  tensor elements = mapped.elements();
  std::memcpy(elements.data(), letters.data(), letters.size_bytes());
  mapped.finish();
  written.expect("mapped.npy", "", letters, 2, "a.view('S7').reshape(4, 5)");
  written.check();
}

TEST(NumPy, ReadsStridedTensorsOfManyPieces) {
  const scratch_directory files;
  WrittenFiles written(files);
  const tensor rows = test::pattern({300, 3, 2000}, dtype::float64, 1);
  written.npy(rows, 1, rows, "a");
  written.npy(rows, 1, rows.permute_dims({1, 0, 2}), "a.transpose(1, 0, 2)");
  written.npy(rows, 1, rows.permute_dims({2, 0, 1}), "a.transpose(2, 0, 1)");
  written.npy(rows, 1, rows.permute_dims({2, 1, 0}), "a.transpose(2, 1, 0)");
  written.npy(rows, 1, rows.sliced(2, {.step = -1}), "a[:, :, ::-1]");
  // A row has 4 MiB and 8 bytes, so every row is more than one piece.
  const tensor wide = test::pattern({2, 1 << 20 | 2}, dtype::float32, 2);
  written.npy(wide, 2, wide.flip({0}), "a[::-1]");
  written.npy(wide, 2, wide.flip(), "a[::-1, ::-1]");
  written.check();
}

TEST(NumPy, ReadsTheArchivesThatShaleWrote) {
  const scratch_directory files;
  WrittenFiles written(files);
  std::vector<std::pair<std::string, tensor>> members;
  std::uint64_t seed = 50;
  const std::string unicode = "h\u00f6he \u9ad8\u3055";
  for (const dtype type : test::numpy_dtypes())
    members.emplace_back("of_" + std::string(name(type)), test::pattern({31, 7}, type, ++seed));
  members.emplace_back(unicode, test::pattern({5}, dtype::int32, ++seed));
  members.emplace_back("a/b.npy", test::pattern({}, dtype::float32, ++seed));
  members.emplace_back("empty", test::pattern({0}, dtype::float32, ++seed));
  members.emplace_back("large", test::pattern({3, 1000, 1000}, dtype::float32, ++seed));
  members.emplace_back("larger", test::pattern({1 << 21}, dtype::uint32, ++seed));

  write_npz(files / "stored.npz", members);
  write_npz(files / "deflate.npz", members, {.compression = npz_compression::deflate, .level = 1});
  std::vector<std::pair<std::string, tensor>> turned;
  for (const auto& [name, values] : members)
    turned.emplace_back(name, values.rank() > 1 ? values.flip({0}).swapaxes(0, 1) : values);
  write_npz(files / "turned.npz", turned, {.compression = npz_compression::deflate});

  seed = 50;
  for (const auto& [name, values] : members) {
    ++seed;
    written.expect("stored.npz", name, values, seed, "a");
    written.expect("deflate.npz", name, values, seed, "a");
    written.expect("turned.npz", name, values, seed,
                   values.rank() > 1 ? "np.swapaxes(a[::-1], 0, 1)" : "a");
  }
  write_npz(files / "none.npz", {});
  written.check();

  const npz_file stored = npz_file::open(files / "stored.npz");
  const npz_file deflated = npz_file::open(files / "deflate.npz");
  for (const auto& [name, values] : members) {
    SCOPED_TRACE(name);
    const tensor mapped = stored.read(name);
    if (mapped.size() > 0) {
      EXPECT_EQ(mapped.storage().kind(), storage_kind::file);
    }
    EXPECT_TRUE(equal_bits(mapped, values));
    EXPECT_TRUE(equal_bits(deflated.read(name), values));
  }
  EXPECT_TRUE(npz_file::open(files / "none.npz").names().empty());
}

}  // namespace
}  // namespace shale
