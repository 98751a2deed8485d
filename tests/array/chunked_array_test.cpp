#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <unistd.h>

#include <fstream>

#include "array/test_support.hpp"
#include "shale/container.hpp"
#include "shale/executor.hpp"
#include "shale/map_tiles.hpp"
#include "shale/mapped_file.hpp"
#include "shale/tile_source.hpp"

namespace shale {
namespace {

using test::code_of;
using test::counting;
using test::findings_of;
using test::text_of;

tensor box_of(const tensor& values, const region& part) {
  tensor view = values;
  for (index_t axis = 0; axis < part.shape.size(); ++axis)
    view = view.narrow(axis, part.start[axis], part.shape[axis]);
  return view;
}

// The position of `needle` in the file.
std::uint64_t position_of(const std::string& path, std::span<const std::byte> needle) {
  const auto bytes = test::bytes_of_file(path);
  const auto found = std::search(bytes.begin(), bytes.end(), needle.begin(), needle.end());
  EXPECT_NE(found, bytes.end());
  return static_cast<std::uint64_t>(found - bytes.begin());
}

class ChunkedArray : public test::fresh_container {
 protected:
  static array_spec spec(dtype type, const dims& shape, const dims& chunk,
                         const codec_spec& codec = {}, const scalar& fill = 0) {
    return {.dtype = type,
            .shape = shape,
            .kind = array_kind::chunked,
            .chunk_shape = chunk,
            .codec = codec,
            .fill_value = fill};
  }

  // Makes an array "dem" of the returned elements, and changes a stored byte of its chunk (1, 3).
  tensor write_damaged() {
    // No element is there twice, so that the bytes of a chunk are found in the file nowhere else,
    // whatever order the threads store the chunks in.
    const tensor values = eval(arange(0, 64 * 64, 1, dtype::int64)).view({64, 64});
    write_new("dem", spec(dtype::int64, {64, 64}, {16, 16}, {.compression = std::nullopt}), values);
    const tensor chunk = box_of(values, {{16, 48}, {16, 16}}).clone();
    test::flip_byte(path_, position_of(path_, {chunk.data(), chunk.size_bytes()}) + 777);
    return values;
  }
};

TEST_F(ChunkedArray, NeverStoresZerosForLostBytes) {
  const std::string source = path_ + ".source";
  for (const bool whole : {true, false}) {
    { create_file(source, 64 * 4096); }
    const tensor values(map_file(source), dtype::uint8, layout({64, 4096}));
    ASSERT_EQ(::truncate(source.c_str(), 4096), 0);
    transaction change = file_.begin();
    const writable_array written =
        change.create("a", spec(dtype::uint8, {64, 4096}, {16, 4096}, {}, 1));
    const region part{{0, 0}, {whole ? 64 : 48, 4096}};
    EXPECT_EQ(code_of([&] { written.write(part, values.narrow(0, 0, part.shape[0])); }), errc::io);
    EXPECT_EQ(code_of([&] { written.write(part, values.narrow(0, 0, part.shape[0])); }), errc::io);
    ASSERT_EQ(::unlink(source.c_str()), 0);
  }
}

TEST_F(ChunkedArray, HoldsEveryDtypeWithEdgeChunks) {
  const dims shape{23, 17};
  transaction change = file_.begin();
  for (const dtype type : test::all_dtypes())
    change.create(std::string(name(type)), spec(type, shape, {8, 5}))
        .write(region::all(shape), counting(shape, type));
  change.commit();
  for (const dtype type : test::all_dtypes()) {
    const array stored = at(std::string(name(type)));
    EXPECT_EQ(stored.kind(), array_kind::chunked);
    EXPECT_EQ(stored.chunk_shape(), (dims{8, 5}));
    EXPECT_TRUE(equal_bits(stored.read(), counting(shape, type))) << name(type);
    EXPECT_TRUE(equal_bits(stored.read(), counting(shape, type))) << name(type);
  }
  EXPECT_EQ(findings_of(file_), "");
}

// chunks.1
TEST_F(ChunkedArray, EdgeChunksAreWholeWithTheFillValueBeyond) {
  write_new("a",
            spec(dtype::int32, {3}, {8},
                 {.shuffle = shuffle_mode::none, .compression = std::nullopt}, -7654321),
            counting({3}, dtype::int32));
  std::int32_t whole[8];
  for (int i = 0; i < 8; ++i) whole[i] = i < 3 ? test::number_at(i) : -7654321;
  EXPECT_EQ(at("a").stored_bytes(), sizeof whole);
  position_of(path_, std::as_bytes(std::span(whole)));  // fails if the bytes are not in the file
}

TEST_F(ChunkedArray, HoldsEveryLosslessCodec) {
  const tensor values = counting({50, 60}, dtype::int32);
  const std::vector<codec_spec> codecs = {
      {},
      {.compression = std::nullopt},
      {.shuffle = shuffle_mode::none},
      {.shuffle = shuffle_mode::bit, .compression = zstd(5)},
      {.delta = true},
      {.delta = true, .shuffle = shuffle_mode::byte, .compression = std::nullopt}};
  transaction change = file_.begin();
  for (std::size_t i = 0; i < codecs.size(); ++i)
    change.create(std::to_string(i), spec(dtype::int32, {50, 60}, {16, 60}, codecs[i]))
        .write(values);
  change.commit();
  for (std::size_t i = 0; i < codecs.size(); ++i) {
    const array stored = at(std::to_string(i));
    EXPECT_TRUE(equal_bits(stored.read(), values)) << i;
    EXPECT_EQ(stored.codec().delta, codecs[i].delta);
    EXPECT_EQ(stored.codec().compression, codecs[i].compression);
  }
  EXPECT_LT(at("0").stored_bytes(), at("0").size_bytes());
  EXPECT_EQ(findings_of(file_), "");
}

TEST_F(ChunkedArray, RoundedMantissasStayClose) {
  const tensor values = test::seeded({64, 64}, 7);
  write_new("a", spec(dtype::float32, {64, 64}, {64, 64}, {.bitround = 6}), values);
  const tensor stored = at("a").read();
  const auto got = stored.elements<const float>();
  const auto wanted = values.elements<const float>();
  bool differs = false;
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], wanted[i], std::abs(wanted[i]) / 64);
    differs = differs || got[i] != wanted[i];
  }
  EXPECT_TRUE(differs);
}

TEST_F(ChunkedArray, EmptyAndRankZeroOnesWork) {
  transaction change = file_.begin();
  change.create("single", spec(dtype::int64, {}, {}, {}, 5));
  change.create("written", spec(dtype::int64, {}, {})).write(expr(9));
  change.create("empty", spec(dtype::int64, {0, 3}, {2, 2})).write(expr(1));
  change.commit();
  EXPECT_EQ(at("single").read().item(), scalar(5));
  EXPECT_EQ(at("written").read().item(), scalar(9));
  EXPECT_EQ(at("empty").read().shape(), (dims{0, 3}));
  EXPECT_EQ(findings_of(file_), "");
}

// chunks.2
TEST_F(ChunkedArray, ChunksOfTheFillValueTakeNoSpace) {
  const dims shape{100, 100};
  {
    transaction change = file_.begin();
    const writable_array a = change.create("a", spec(dtype::int16, shape, {10, 10}, {}, -7));
    a.write({{15, 15}, {3, 3}}, counting({3, 3}, dtype::int16));
    a.write({{50, 50}, {10, 10}}, tensor::of(std::initializer_list<std::int16_t>{-7}));
    change.commit();
  }
  EXPECT_EQ(file_.verify().chunks, 1u);
  EXPECT_EQ(at("a").read({{0, 0}, {1, 1}}).item(), scalar(-7));
  EXPECT_EQ(at("a").read({{16, 16}, {1, 1}}).item(), scalar(test::number_at(4)));
  EXPECT_EQ(at("a").fill_value(), scalar(-7));
  const std::uint64_t one = at("a").stored_bytes();
  EXPECT_GT(one, 0u);
  EXPECT_LE(one, 200u);
  {
    transaction change = file_.begin();
    change.update("a").write(expr(-7));
    change.commit();
  }
  EXPECT_EQ(at("a").stored_bytes(), 0u);
  EXPECT_EQ(file_.verify().chunks, 0u);
  EXPECT_EQ(at("a").read({{16, 16}, {1, 1}}).item(), scalar(-7));
}

// chunks.2
TEST_F(ChunkedArray, FillIsComparedBitByBit) {
  transaction change = file_.begin();
  change.create("a", spec(dtype::float32, {4}, {4}, {}, 0)).write(expr(-0.0f));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  change.create("b", spec(dtype::float32, {4}, {4}, {}, nan)).write(expr(nan));
  change.commit();
  EXPECT_TRUE(std::signbit(at("a").read().elements<const float>()[0]));
  EXPECT_GT(at("a").stored_bytes(), 0u);
  EXPECT_EQ(at("b").stored_bytes(), 0u);
  EXPECT_TRUE(std::isnan(at("b").read().elements<const float>()[3]));
}

TEST_F(ChunkedArray, UpdateSharesUnchangedChunks) {
  const tensor values = test::seeded({512, 512}, 1);
  write_new("a", spec(dtype::float32, {512, 512}, {64, 64}), values);
  const snapshot before = file_.latest();
  const std::uint64_t space = file_.verify().live_bytes;
  {
    transaction change = file_.begin();
    change.update("a").write({{100, 100}, {1, 1}}, counting({1, 1}, dtype::float32));
    change.commit();
  }
  const verification now = file_.verify();
  EXPECT_TRUE(now.findings.empty());
  EXPECT_EQ(now.chunks, 64u);
  EXPECT_LT(now.live_bytes + now.freed_bytes, space + 100'000);
  EXPECT_TRUE(equal_bits(before.at("a").read(), values));
  EXPECT_EQ(at("a").read({{100, 100}, {1, 1}}).item(), scalar(1.0));
  EXPECT_TRUE(equal_bits(at("a").read({{64, 200}, {64, 312}}),
                         box_of(values, {{64, 200}, {64, 312}}).clone()));
}

TEST_F(ChunkedArray, ExpressionsReadAndWriteChunkByChunk) {
  const tensor values = test::seeded({300, 200}, 4);
  write_new("a", spec(dtype::float32, {300, 200}, {64, 48}), values);
  transaction next = file_.begin();
  const expr a = at("a");
  next.create("b", spec(dtype::float32, {300, 200}, {100, 30})).write(a * 2 + 1);
  next.create("shifted", spec(dtype::float32, {299, 199}, {64, 48}))
      .write(a.narrow(0, 1, 299).narrow(1, 1, 199) - a.narrow(0, 0, 299).narrow(1, 0, 199));
  next.commit();
  const tensor b = at("b").read();
  const tensor shifted = at("shifted").read();
  const auto elements = values.as<const float, 2>();
  const auto got_b = b.as<const float, 2>();
  const auto got_shifted = shifted.as<const float, 2>();
  for (index_t i = 0; i < 300; ++i)
    for (index_t j = 0; j < 200; ++j) ASSERT_EQ(got_b(i, j), elements(i, j) * 2 + 1);
  for (index_t i = 0; i < 299; ++i)
    for (index_t j = 0; j < 199; ++j)
      ASSERT_EQ(got_shifted(i, j), elements(i + 1, j + 1) - elements(i, j));
  EXPECT_EQ(findings_of(file_), "");
}

// From chunks to other chunks, and in place of the array that is read, whose old generation stays.
TEST_F(ChunkedArray, GoesThroughAFunctionOverTilesWithHalos) {
  const dims shape{67, 41};
  write_new("a", spec(dtype::int32, shape, {16, 9}), counting(shape, dtype::int32));
  const auto old = counting(shape, dtype::int32).as<const std::int32_t, 2>();
  const auto source = at("a").tiles();
  transaction change = file_.begin();
  const writable_array made = change.create("b", spec(dtype::int64, shape, {20, 20}));
  const auto ends = [](tile_view<const std::int32_t> from, index_t i, index_t j) {
    return std::int64_t{from(i - 3, j)} - from(i + 2, j + 11);
  };
  const tile_operand around =
      with_halo(source, {.widths = {{3, 2}, {0, 11}}, .mode = halo_mode::symmetric});
  map_tiles(
      [&](tile_view<std::int64_t> to, tile_view<const std::int32_t> from) {
        for (index_t i = 0; i < to.shape[0]; ++i)
          for (index_t j = 0; j < to.shape[1]; ++j) to(i, j) = ends(from, i, j);
      },
      made.tiles(), around);
  map_tiles(
      [&](tile_view<std::int32_t> to, tile_view<const std::int32_t> from) {
        for (index_t i = 0; i < to.shape[0]; ++i)
          for (index_t j = 0; j < to.shape[1]; ++j)
            to(i, j) = static_cast<std::int32_t>(ends(from, i, j));
      },
      change.update("a").tiles(), around);
  change.commit();
  const auto b = at("b").read().as<const std::int64_t, 2>();
  const auto a = at("a").read().as<const std::int32_t, 2>();
  const auto beyond = [](index_t place, index_t extent) {
    return place < 0 ? -1 - place : place < extent ? place : 2 * extent - 1 - place;
  };
  for (index_t i = 0; i < 67; ++i)
    for (index_t j = 0; j < 41; ++j) {
      const std::int64_t expected =
          std::int64_t{old(beyond(i - 3, 67), j)} - old(beyond(i + 2, 67), beyond(j + 11, 41));
      ASSERT_EQ(b(i, j), expected);
      ASSERT_EQ(a(i, j), static_cast<std::int32_t>(expected));
    }
  EXPECT_EQ(findings_of(file_), "");
}

TEST_F(ChunkedArray, TilesAreCheckedAgainstTheirGrid) {
  transaction change = file_.begin();
  const writable_array made = change.create("a", spec(dtype::float32, {10, 10}, {4, 4}));
  const auto tiles = made.tiles();
  EXPECT_EQ(code_of([&] {
              tiles->store({3, 0}, counting({4, 4}, dtype::float32));
            }),
            errc::invalid_argument);
  EXPECT_EQ(code_of([&] {
              tiles->store({2, 0}, counting({4, 4}, dtype::float32));
            }),
            errc::invalid_argument);
  EXPECT_EQ(code_of([&] {
              tiles->store({0, 0}, counting({4, 4}, dtype::float64));
            }),
            errc::invalid_argument);
  tiles->store({2, 2}, counting({2, 2}, dtype::float32));
  EXPECT_EQ(code_of([&] { made.map(); }), errc::invalid_argument);
  change.commit();
  EXPECT_EQ(code_of([&] {
              tiles->store({0, 0}, counting({4, 4}, dtype::float32));
            }),
            errc::invalid_argument);
  const auto read = at("a").tiles();
  EXPECT_FALSE(read->writable());
  EXPECT_GT(read->stored_bytes({2, 2}), 0u);
  EXPECT_EQ(read->stored_bytes({0, 0}), 0u);
  EXPECT_EQ(code_of([&] { read->stored_bytes({0, 3}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { read->stored_bytes({0}); }), errc::invalid_argument);
  read->prefetch({2, 2});
  read->prefetch({99, -1});
  EXPECT_EQ(
      code_of([&] {
        std::const_pointer_cast<tile_source>(read)->store({2, 2}, counting({2, 2}, dtype::float32));
      }),
      errc::access_denied);
}

TEST_F(ChunkedArray, TilesAreNotLoadedIntoWhatCannotHoldThem) {
  transaction change = file_.begin();
  change.create("a", spec(dtype::float32, {4, 4}, {4, 4})).write(counting({4, 4}, dtype::float32));
  change.create("dense", {.dtype = dtype::float32, .shape = {4, 4}});
  change.commit();
  const auto tiles = at("a").tiles();
  const auto code_into = [&](const tensor& into) {
    return code_of([&] { tiles->load({0, 0}, into); });
  };
  EXPECT_EQ(code_into(at("dense").map()), errc::access_denied);
  const tensor zeros = tensor::zeros({4, 4}, dtype::float32);
  EXPECT_EQ(code_into(zeros.as_read_only()), errc::access_denied);
  EXPECT_EQ(zeros.elements<const float>()[5], 0);
  EXPECT_EQ(code_into(tensor::zeros({1, 4}, dtype::float32).broadcast_to({4, 4})),
            errc::invalid_argument);
}

TEST_F(ChunkedArray, DamageIsNamedByChunk) {
  const tensor values = write_damaged();
  const auto findings = file_.verify().findings;
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].code, errc::corrupt);
  EXPECT_NE(findings[0].text.find("dem"), std::string::npos) << findings[0].text;

  const array stored = at("dem");
  const std::string text = text_of([&] { stored.read(); });
  EXPECT_NE(text.find("read chunk (1, 3) of 'dem' in " + path_), std::string::npos) << text;
  EXPECT_NE(text.find("[corrupt]"), std::string::npos) << text;
  EXPECT_EQ(code_of([&] { eval(sum(expr(stored))); }), errc::corrupt);
  EXPECT_TRUE(equal_bits(stored.read({{32, 0}, {32, 64}}), values.narrow(0, 32, 32)));
}

TEST_F(ChunkedArray, DamageIsFoundByTransactionsToo) {
  write_damaged();
  transaction change = file_.begin();
  const writable_array dem = change.update("dem");
  EXPECT_EQ(code_of([&] { change.find("dem")->read(); }), errc::corrupt);
  // A part of the chunk cannot be changed without reading the rest.
  EXPECT_EQ(code_of([&] {
              dem.write({{16, 48}, {1, 1}}, counting({1, 1}, dtype::int64));
            }),
            errc::corrupt);
}

TEST_F(ChunkedArray, SpecsThatMakeNoSenseAreRefused) {
  transaction change = file_.begin();
  const auto refuses = [&](const array_spec& spec) {
    return code_of([&] { change.create("x", spec); }) == errc::invalid_argument;
  };
  EXPECT_TRUE(refuses(spec(dtype::float32, {4, 4}, {4})));
  EXPECT_TRUE(refuses(spec(dtype::float32, {4, 4}, {4, 0})));
  EXPECT_TRUE(refuses(spec(dtype::float32, {4, -4}, {4, 4})));
  EXPECT_TRUE(refuses(spec(dtype::int32, {4}, {4}, {.bitround = 3})));
  EXPECT_TRUE(refuses(spec(dtype::float32, {4}, {4}, {.delta = true})));
  EXPECT_TRUE(refuses(spec(dtype::float32, {4}, {4}, {.compression = zstd(1000)})));
  EXPECT_TRUE(refuses(spec(dtype::uint8, {4}, {4}, {}, -1)));
  EXPECT_TRUE(refuses({.shape = {4}, .chunk_shape = dims{4}}));
  change.create("x", spec(dtype::float32, {4}, {4}));
  change.commit();
}

// Writes and reads random regions of random dtypes over a random grid, and compares with an array
// in memory.
TEST_F(ChunkedArray, WritesOfAnyRegionsAgreeWithAnArrayInMemory) {
  int runs = 0;
  const bool held = rc::check([&] {
    const auto extent = [](index_t most) { return *rc::gen::inRange<index_t>(1, most + 1); };
    const index_t rank = *rc::gen::inRange<index_t>(1, 4);
    dims shape, chunk;
    for (index_t axis = 0; axis < rank; ++axis) {
      shape.push_back(extent(17));
      chunk.push_back(extent(9));
    }
    const int fill = *rc::gen::inRange(-2, 3);
    std::vector<int> oracle(static_cast<std::size_t>(element_count(shape)), fill);
    const std::string name = "random" + std::to_string(runs++);

    const auto in_box = [&](const region& part, auto visit) {  // (position in shape, in the box)
      index_t inside = 0;
      for (index_t i = 0; i < static_cast<index_t>(oracle.size()); ++i) {
        index_t left = i;
        bool hit = true;
        for (index_t axis = rank - 1; axis >= 0; --axis) {
          const index_t position = left % shape[axis] - part.start[axis];
          left /= shape[axis];
          hit = hit && position >= 0 && position < part.shape[axis];
        }
        if (hit) visit(static_cast<std::size_t>(i), inside++);
      }
    };
    const auto random_box = [&] {
      region part;
      for (index_t axis = 0; axis < rank; ++axis) {
        part.start.push_back(*rc::gen::inRange<index_t>(0, shape[axis]));
        part.shape.push_back(*rc::gen::inRange<index_t>(0, shape[axis] - part.start[axis] + 1));
      }
      return part;
    };

    const int transactions = *rc::gen::inRange(1, 4);
    for (int t = 0; t < transactions; ++t) {
      transaction change = file_.begin();
      const writable_array to =
          t == 0 ? change.create(name, spec(dtype::int32, shape, chunk, {}, fill))
                 : change.update(name);
      const int writes = *rc::gen::inRange(0, 5);
      for (int w = 0; w < writes; ++w) {
        const region part = random_box();
        const bool of_fill = *rc::gen::inRange(0, 4) == 0;
        const dtype type = *rc::gen::element(dtype::int32, dtype::float64, dtype::uint8);
        tensor values = counting(part.shape, type);
        if (of_fill) values = tensor::of(std::initializer_list<std::int32_t>{fill});
        to.write(part, values);
        in_box(part, [&](std::size_t i, index_t inside) {
          oracle[i] = of_fill ? fill : test::number_at(inside);
        });
      }
      const bool commits = t == 0 || *rc::gen::inRange(0, 4) > 0;
      // The elements as the transaction itself reads them.
      const tensor so_far = change.find(name)->read();
      RC_ASSERT(std::equal(oracle.begin(), oracle.end(), so_far.elements<const int>().begin()));
      if (!commits) {
        change.abort();
        const tensor kept = at(name).read();
        std::copy_n(kept.elements<const int>().begin(), oracle.size(), oracle.begin());
      } else {
        change.commit();
      }
    }
    const array stored = at(name);
    const tensor all = stored.read();
    RC_ASSERT(std::equal(oracle.begin(), oracle.end(), all.elements<const int>().begin()));
    const region part = random_box();
    const tensor some = stored.read(part);
    in_box(part, [&](std::size_t i, index_t inside) {
      RC_ASSERT(some.elements<const int>()[static_cast<std::size_t>(inside)] == oracle[i]);
    });
  });
  EXPECT_TRUE(held);
  EXPECT_EQ(findings_of(file_), "");
}

// The number of bytes that this process has requested by read calls.
std::uint64_t bytes_asked_for() {
  std::ifstream counters("/proc/self/io");
  std::string field;
  std::uint64_t bytes = 0;
  while (counters >> field >> bytes)
    if (field == "rchar:") return bytes;
  return 0;
}

TEST_F(ChunkedArray, StepsAreCountedAsTheChunksThatTheyDecode) {
  if (bytes_asked_for() == 0) GTEST_SKIP() << "/proc/self/io does not say what was read";
  // Chunks without compression: 12 x 4 chunks of 100 x 100 x 8 bytes; at the right edge, 50 columns
  // are used.
  const codec_spec raw{.shuffle = shuffle_mode::none, .compression = std::nullopt};
  const tensor values = counting({1200, 350}, dtype::int64);
  write_new("dem", spec(dtype::int64, values.shape(), {100, 100}, raw), values);
  const expr every = expr(at("dem").tiles()).sliced(0, {.step = 300}).sliced(1, {.step = 110});
  const expr expected = expr(values).sliced(0, {.step = 300}).sliced(1, {.step = 110});

  executor on({.threads = 2});
  const executor::scope within(on);
  const auto planned = explain(every);
  EXPECT_EQ(planned.tiles_decoded, 4u * 4);
  EXPECT_EQ(planned.bytes_read, 4u * 100 * 350 * 8);
  const std::uint64_t before = bytes_asked_for();
  const tensor steps = eval(every);
  const std::uint64_t asked_for = bytes_asked_for() - before;
  const auto did = on.statistics();
  EXPECT_TRUE(equal_bits(steps, eval(expected)));
  EXPECT_EQ(did.tiles_decoded, planned.tiles_decoded);
  EXPECT_EQ(did.bytes_read, planned.bytes_read);
  EXPECT_EQ(did.stored_bytes_read, 16u * 100 * 100 * 8);
  EXPECT_GE(asked_for, did.stored_bytes_read);
  EXPECT_LE(asked_for, did.stored_bytes_read + (256u << 10)) << "beside chunks, pages of the index";
}

TEST_F(ChunkedArray, ReadsAreCountedAsTheChunksThatTheyDecode) {
  write_new("dem", spec(dtype::int16, {100, 90}, {32, 32}), counting({100, 90}, dtype::int16));
  executor on({.threads = 2});
  const executor::scope within(on);
  at("dem").read({{30, 60}, {40, 30}});  // rows 30 to 69, columns 60 to 89
  EXPECT_EQ(on.statistics().tiles_decoded, 3u * 2);
  EXPECT_EQ(on.statistics().bytes_read, 96u * (32 + 26) * 2);
}

}  // namespace
}  // namespace shale
