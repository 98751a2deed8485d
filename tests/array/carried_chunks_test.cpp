// Tests copies of arrays: stored bytes are carried on without decoding, or elements are written as
// by any expression. The oracles are the bytes of both files, and elements that the tests computed.
#include "array/elements/carried_chunks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "array/test_support.hpp"
#include "shale/dimension_names.hpp"
#include "shale/executor.hpp"

namespace shale {
namespace {

using test::code_of;
using test::counting;
using test::findings_of;
using test::text_of;

class CarriedChunks : public test::fresh_container {
 protected:
  static array_spec spec(const dims& shape, const dims& chunk) {
    return {.dtype = dtype::int32,
            .shape = shape,
            .kind = array_kind::chunked,
            .chunk_shape = chunk,
            .fill_value = -1};
  }

  array copied(const std::string& name) const { return other_.latest().at(name); }

  // The bytes of an array's chunks in its file, in the order of the grid.
  static std::vector<std::vector<std::byte>> bytes_of_chunks(const array& stored,
                                                             const std::string& path) {
    const std::vector<std::byte> file = test::bytes_of_file(path);
    std::vector<std::vector<std::byte>> bytes;
    for (const stored_chunk& chunk : stored.stored_chunks()) {
      const auto first = file.begin() + static_cast<std::ptrdiff_t>(chunk.offset);
      bytes.emplace_back(first, first + static_cast<std::ptrdiff_t>(chunk.stored_bytes));
    }
    return bytes;
  }

  // Copies an array to the other container and compares everything. Nothing is decoded.
  void expect_carried(const std::string& name) {
    const array from = at(name);
    executor on({.threads = 2, .memory_bytes = std::size_t{1} << 20});
    transaction change = other_.begin();
    {
      const executor::scope within(on);
      change.create_copy(name, from);
    }
    change.commit();
    EXPECT_EQ(on.statistics().tiles_decoded, 0U);
    EXPECT_EQ(on.statistics().tiles_found, 0U);
    EXPECT_EQ(on.statistics().bytes_read, from.stored_bytes());
    EXPECT_EQ(on.statistics().bytes_written, from.stored_bytes());
    const array to = copied(name);
    EXPECT_EQ(to.dtype(), from.dtype());
    EXPECT_EQ(to.shape(), from.shape());
    EXPECT_EQ(to.chunk_shape(), from.chunk_shape());
    EXPECT_EQ(to.codec(), from.codec());
    EXPECT_EQ(to.fill_value(), from.fill_value());
    EXPECT_EQ(to.attributes(), from.attributes());
    EXPECT_EQ(to.stored_bytes(), from.stored_bytes());
    const auto sources = from.stored_chunks(), copies = to.stored_chunks();
    ASSERT_EQ(copies.size(), sources.size());
    for (std::size_t k = 0; k < sources.size(); ++k) {
      EXPECT_EQ(copies[k].index, sources[k].index);
      EXPECT_EQ(copies[k].raw, sources[k].raw);
      EXPECT_EQ(copies[k].checksum, sources[k].checksum);
    }
    EXPECT_EQ(bytes_of_chunks(to, other_path_), bytes_of_chunks(from, path_));
  }

  std::string other_path_ = directory_ / "other.shale";
  container other_ = container::create(other_path_);
};

TEST_F(CarriedChunks, AreTheBytesOfTheSource) {
  const std::vector<codec_spec> codecs{
      {},
      {.shuffle = shuffle_mode::none, .compression = std::nullopt},
      {.delta = true, .shuffle = shuffle_mode::bit, .compression = zstd(5)},
      {.compression = lz4(3)}};
  std::mt19937 random(11);
  const auto up_to = [&](index_t n) { return static_cast<index_t>(random()) % n + 1; };
  for (std::size_t turn = 0; turn < 12; ++turn) {
    const dims shape{up_to(40), up_to(40)};
    const dims chunk{up_to(9), up_to(9)};
    SCOPED_TRACE(to_string(shape) + " in " + to_string(chunk));
    const std::string name = "a" + std::to_string(turn);
    array_spec made = spec(shape, chunk);
    made.codec = codecs[turn % codecs.size()];
    const tensor values = counting(shape, dtype::int32);
    std::vector<std::int32_t> wanted(static_cast<std::size_t>(shape[0] * shape[1]), -1);
    transaction change = file_.begin();
    const writable_array target = change.create(name, made);
    for (index_t row = 0; row < shape[0]; row += 7) {  // some rows of chunks stay absent
      target.write({{row, 0}, {1, shape[1]}}, values.narrow(0, row, 1));
      std::memcpy(&wanted[static_cast<std::size_t>(row * shape[1])],
                  values.elements<std::int32_t>().data() + row * shape[1],
                  static_cast<std::size_t>(shape[1]) * sizeof(std::int32_t));
    }
    change.set_attribute(name, "unit", "m");
    set_dimension_names(change, name, {"y", "x"});
    change.commit();
    expect_carried(name);
    const tensor read = copied(name).read();
    EXPECT_EQ(std::memcmp(read.data(), wanted.data(), read.size_bytes()), 0);
    EXPECT_EQ(dimension_names(copied(name)), (std::vector<std::string>{"y", "x"}));
  }
  EXPECT_EQ(findings_of(other_), "");
}

TEST_F(CarriedChunks, AreThoseOfAllDtypesAndRanks) {
  transaction change = file_.begin();
  for (const dtype type : test::all_dtypes()) {
    const dims shape{5, 3, 7};
    change
        .create(std::string(name(type)), {.dtype = type,
                                          .shape = shape,
                                          .kind = array_kind::chunked,
                                          .chunk_shape = dims{2, 2, 4}})
        .write(expr(counting(shape, type)));
  }
  for (const dims& shape : {dims{}, dims{0, 4}})
    change.create("rank" + std::to_string(shape.size()), spec(shape, dims::filled(shape.size(), 2)))
        .write(expr(counting(shape, dtype::int32)));
  change.commit();
  for (const std::string& name : file_.latest().names()) {
    SCOPED_TRACE(name);
    expect_carried(name);
    EXPECT_TRUE(equal_bits(copied(name).read(), at(name).read()));
  }
}

// Elements that bitround has rounded are rounded once.
TEST_F(CarriedChunks, KeepRoundedElements) {
  array_spec rounded = spec({40}, {8});
  rounded.dtype = dtype::float32;
  rounded.codec.bitround = 3;
  write_new("a", rounded, expr(test::seeded({40}, 1)));
  expect_carried("a");
  EXPECT_TRUE(equal_bits(copied("a").read(), at("a").read()));
}

// The grid of an array that has grown has another capacity than that of its copy.
TEST_F(CarriedChunks, HavePlacesInTheGridAndNoNumbers) {
  transaction change = file_.begin();
  change.create("a", spec({4, 4}, {2, 2})).write(expr(counting({4, 4}, dtype::int32)));
  change.commit();
  transaction next = file_.begin();
  next.resize("a", {9, 300}).write({{7, 0}, {2, 300}}, expr(5));
  next.commit();
  expect_carried("a");
  const tensor read = copied("a").read();
  for (index_t row = 0; row < 9; ++row)
    for (index_t column = 0; column < 300; ++column) {
      const int wanted = row >= 7                ? 5
                         : row < 4 && column < 4 ? test::number_at(row * 4 + column)
                                                 : -1;
      ASSERT_EQ(read.at({row, column}), scalar(wanted)) << row << ", " << column;
    }
}

TEST_F(CarriedChunks, AreDecodedWhereTheFormsDiffer) {
  write_new("a", spec({12, 10}, {4, 5}), expr(counting({12, 10}, dtype::int32)));
  transaction hole = file_.begin();
  hole.update("a").write({{4, 0}, {4, 10}}, expr(-1));
  hole.commit();
  const array from = at("a");
  ASSERT_EQ(from.stored_chunks().size(), 4U);
  struct other_form {
    const char* name;
    array_spec made;
    std::size_t chunks;
  };
  std::vector<other_form> forms;
  const auto add = [&](const char* name, std::size_t chunks) -> array_spec& {
    forms.push_back({name, spec({12, 10}, {4, 5}), chunks});
    return forms.back().made;
  };
  add("level", 4).codec.compression = zstd(3);
  add("chunk", 2).chunk_shape = dims{4, 10};
  add("dtype", 4).dtype = dtype::int64;
  add("fill", 6).fill_value = 0;  // what was absent is stored
  transaction change = other_.begin();
  for (const other_form& form : forms) {
    SCOPED_TRACE(form.name);
    EXPECT_EQ(change.create(form.name, form.made).copy_from(from), 0U);
  }
  EXPECT_EQ(change.create("alike", spec({12, 10}, {4, 5})).copy_from(from), 4U);
  EXPECT_EQ(change.create("dense", {.dtype = dtype::int32, .shape = {12, 10}}).copy_from(from), 0U);
  change.commit();
  const tensor wanted = from.read();
  for (const other_form& form : forms) {
    EXPECT_EQ(copied(form.name).stored_chunks().size(), form.chunks) << form.name;
    EXPECT_TRUE(
        equal_bits(copied(form.name).read(), eval(astype(expr(wanted), copied(form.name).dtype()))))
        << form.name;
  }
  EXPECT_TRUE(equal_bits(copied("alike").read(), wanted));
  EXPECT_TRUE(equal_bits(copied("dense").read(), wanted));
}

// A chunk that is absent from the source replaces one that the target stores.
TEST_F(CarriedChunks, ReplaceWhatTheTargetHolds) {
  transaction change = file_.begin();
  change.create("a", spec({8}, {4})).write({{0}, {4}}, expr(7));
  change.commit();
  transaction there = other_.begin();
  const writable_array target = there.create("a", spec({8}, {4}));
  target.write(expr(3));
  EXPECT_EQ(target.copy_from(at("a")), 0U);
  there.commit();
  EXPECT_EQ(copied("a").stored_chunks().size(), 1U);
  EXPECT_TRUE(equal_bits(copied("a").read(), at("a").read()));
}

// Chunks that the source's transaction has changed have no place yet.
TEST_F(CarriedChunks, OfARunningTransactionAreDecoded) {
  write_new("a", spec({8}, {4}), expr(counting({8}, dtype::int32)));
  transaction change = file_.begin();
  EXPECT_EQ(change.create("before", spec({8}, {4})).copy_from(*change.find("a")), 2U);
  change.update("a").write({{1}, {1}}, expr(99));
  EXPECT_EQ(change.create("after", spec({8}, {4})).copy_from(*change.find("a")), 0U);
  change.commit();
  EXPECT_EQ(at("before").read().at({1}), scalar(test::number_at(1)));
  EXPECT_EQ(at("after").read().at({1}), scalar(99));
  EXPECT_EQ(findings_of(file_), "");
}

// A list of chunks takes at most a sixteenth of the budget.
TEST_F(CarriedChunks, AreListedPartByPart) {
  write_new("a", spec({1000}, {1}), expr(counting({1000}, dtype::int32)));
  constexpr std::size_t budget = std::size_t{64} << 10;
  executor on({.threads = 2, .memory_bytes = budget});
  const executor::scope within(on);
  transaction change = other_.begin();
  const array from = at("a");
  const std::uint64_t before = on.statistics().passes;
  EXPECT_EQ(change.create("a", spec({1000}, {1})).copy_from(from), 1000U);
  EXPECT_GE(on.statistics().passes - before, 1000 * 40 / (budget / 16));
  EXPECT_LE(on.statistics().scratch_bytes_peak, budget / 16);
  change.commit();
  EXPECT_TRUE(equal_bits(copied("a").read(), counting({1000}, dtype::int32)));
}

// carried.1
TEST_F(CarriedChunks, ThatAreDamagedAreNotCarriedOn) {
  write_new("a", spec({40, 40}, {8, 8}), expr(counting({40, 40}, dtype::int32)));
  const array from = at("a");
  const stored_chunk damaged = from.stored_chunks().at(13);
  test::flip_byte(path_, damaged.offset + damaged.stored_bytes - 1);
  transaction change = other_.begin();
  const std::string text = text_of([&] { change.create_copy("a", from); });
  for (const std::string& part :
       {std::string("[corrupt]"), "chunk " + to_string(damaged.index) + " of 'a' in " + path_,
        "byte " + std::to_string(damaged.offset)})
    EXPECT_NE(text.find(part), std::string::npos) << text;
  EXPECT_FALSE(change.find("a"));
  change.create("b", spec({8}, {4})).write(expr(1));
  change.commit();
  EXPECT_EQ(other_.latest().names(), std::vector<std::string>{"b"});
  EXPECT_EQ(findings_of(other_), "");
}

// The executor trusts dense arrays, but a copy would give damaged bytes sums that are right.
TEST_F(CarriedChunks, OfDenseArraysAreComparedBytes) {
  const dims shape{600, 1000};
  const tensor values = counting(shape, dtype::int32);
  write_new("a", {.dtype = dtype::int32, .shape = shape}, expr(values));
  const std::vector<std::byte> file = test::bytes_of_file(path_);
  const auto found = std::search(file.begin(), file.end(), values.data(), values.data() + 4000);
  ASSERT_NE(found, file.end());
  write_new("b", {.dtype = dtype::int32, .shape = shape}, expr(values));
  test::flip_byte(path_, static_cast<std::uint64_t>(found - file.begin()) + 100);
  executor on({.threads = 2});
  const executor::scope within(on);
  ASSERT_EQ(on.checksums(), checksum_use::trusted);
  transaction change = other_.begin();
  change.create_copy("sound", at("b"));
  EXPECT_EQ(code_of([&] { change.create_copy("damaged", at("a")); }), errc::corrupt);
  EXPECT_FALSE(change.find("damaged"));
  change.commit();
  EXPECT_TRUE(equal_bits(copied("sound").read(), values));
}

// Cancels the executor at its first report.
class cancelling_sink final : public progress_sink {
 public:
  void advance(std::uint64_t done_bytes, std::uint64_t total_bytes) override {
    EXPECT_LE(done_bytes, total_bytes);
    ++reports;
    if (to_cancel != nullptr) to_cancel->cancel();
  }
  executor* to_cancel = nullptr;
  int reports = 0;
};

TEST_F(CarriedChunks, AreReportedAndCanBeCancelled) {
  write_new("a", spec({300}, {1}), expr(counting({300}, dtype::int32)));
  cancelling_sink sink;
  executor on({.threads = 1, .memory_bytes = std::size_t{1} << 20, .progress = &sink});
  const executor::scope within(on);
  transaction change = other_.begin();
  sink.to_cancel = &on;
  EXPECT_EQ(code_of([&] { change.create_copy("a", at("a")); }), errc::cancelled);
  EXPECT_EQ(sink.reports, 1);
  EXPECT_FALSE(change.find("a"));
  on.resume();
  sink.to_cancel = nullptr;
  change.create_copy("a", at("a"));
  EXPECT_GT(sink.reports, 50);
  change.commit();
  EXPECT_TRUE(equal_bits(copied("a").read(), counting({300}, dtype::int32)));
}

TEST_F(CarriedChunks, NeedATargetOfTheirShape) {
  write_new("a", spec({8}, {4}), expr(counting({8}, dtype::int32)));
  transaction change = other_.begin();
  const writable_array longer = change.create("longer", spec({9}, {4}));
  EXPECT_EQ(code_of([&] { longer.copy_from(at("a")); }), errc::invalid_argument);
  change.create_copy("a", at("a"));
  EXPECT_EQ(code_of([&] { change.create_copy("a", at("a")); }), errc::already_exists);
  change.abort();
  EXPECT_EQ(code_of([&] { longer.copy_from(at("a")); }), errc::invalid_argument) << "it has ended";
  EXPECT_EQ(code_of([&] { change.create_copy("b", at("a")); }), errc::invalid_argument);
}

// A compaction copies to a new file what another process goes on to write.
TEST_F(CarriedChunks, AreThoseOfTheGenerationThatIsRead) {
  write_new("a", spec({16}, {4}), expr(counting({16}, dtype::int32)));
  const array from = at("a");
  for (int turn = 0; turn < 3; ++turn) {
    transaction change = file_.begin();
    change.update("a").write(expr(turn));
    change.commit();
  }
  transaction there = other_.begin();
  there.create_copy("a", from);
  there.commit();
  EXPECT_TRUE(equal_bits(copied("a").read(), counting({16}, dtype::int32)));
}

}  // namespace
}  // namespace shale
