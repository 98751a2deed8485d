// Tests changes of parts of dense arrays: which bytes they copy, and what every generation shows.
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <filesystem>
#include <random>
#include <thread>

#include "array/elements/copied_units.hpp"
#include "array/test_support.hpp"
#include "array/transaction/unit_copies.hpp"
#include "format/container/container_file.hpp"
#include "shale/executor.hpp"
#include "shale/ops.hpp"
#include "shale/tile_source.hpp"

namespace shale {
namespace {

using arrays::unit_bytes;
using test::code_of;
using test::findings_of;
using test::text_of;

constexpr index_t floats_in_unit = static_cast<index_t>(unit_bytes / 4);

// Four rows of a unit each, filled with ones.
class ones_by_rows : public tile_source {
 public:
  shale::dtype dtype() const noexcept override { return dtype::float32; }
  const dims& shape() const noexcept override { return shape_; }
  const dims& tile_shape() const noexcept override { return row_; }
  std::uint64_t stored_bytes(const dims&) const override { return unit_bytes; }
  void load(const dims&, const tensor& values) const override { fill(values, 1); }

 private:
  const dims shape_{4, floats_in_unit};
  const dims row_{1, floats_in_unit};
};

class DenseParts : public test::fresh_container {
 protected:
  void write(const std::string& name, const tensor& values) {
    write_new(name, {.dtype = values.dtype(), .shape = values.shape()}, values);
  }

  template <class Body>
  void change(Body&& body) {
    transaction next = file_.begin();
    body(next);
    next.commit();
  }

  std::uint64_t bytes_of_the_file() const { return std::filesystem::file_size(path_); }

  std::vector<format::extent> extents_of(const std::string& name) const {
    return format::container_file::open(format::posix_files(), path_, format::open_access::read)
        .latest()
        .find(name)
        ->dense()
        .extents;
  }
};

TEST_F(DenseParts, CostTheUnitsThatTheyTouch) {
  const tensor values = test::seeded({32, floats_in_unit}, 1);
  write("a", values);
  const snapshot before = file_.latest();
  const std::uint64_t bytes_before = bytes_of_the_file();
  change([&](transaction& next) {
    const writable_array a = next.update("a");
    a.write({{17, 5}, {1, 1}}, tensor::of<float>({-1}).view({1, 1}));
    a.write({{17, 9}, {1, 1}}, tensor::of<float>({-2}).view({1, 1}));
  });
  EXPECT_LT(bytes_of_the_file(), bytes_before + unit_bytes + (1u << 20));
  tensor wanted = values.clone();
  wanted.set({17, 5}, -1);
  wanted.set({17, 9}, -2);
  EXPECT_TRUE(equal_bits(at("a").map(), wanted));
  EXPECT_TRUE(equal_bits(at("a").read(), wanted));
  EXPECT_TRUE(equal_bits(before.at("a").map(), values));
  EXPECT_EQ(findings_of(file_), "");
}

// Changes nothing, so that the array keeps its generation.
TEST_F(DenseParts, OfNothingCostNothing) {
  write("a", test::seeded({8, floats_in_unit}, 1));
  const std::uint64_t modified = at("a").modified();
  const std::uint64_t bytes_before = bytes_of_the_file();
  change([&](transaction& next) {
    next.update("a").write({{3, 5}, {0, 7}}, tensor::zeros({0, 7}, dtype::float32));
  });
  EXPECT_EQ(at("a").modified(), modified);
  EXPECT_LT(bytes_of_the_file(), bytes_before + (1u << 20));
  EXPECT_TRUE(equal_bits(at("a").map(), test::seeded({8, floats_in_unit}, 1)));
}

// update.1: several generations with readers, against plain vectors.
TEST_F(DenseParts, OfAnyShapeShowInTheirGenerationOnly) {
  std::mt19937 random(7);
  const auto below = [&](index_t n) { return static_cast<index_t>(random() % n); };
  const dims shape{37, 211, 499};
  tensor wanted = test::seeded(shape, 1);
  write("a", wanted);
  std::vector<std::pair<snapshot, tensor>> readers;
  for (int generation = 0; generation < 12; ++generation) {
    if (below(2) == 0) readers.emplace_back(file_.latest(), wanted.clone());
    if (readers.size() > 3) readers.erase(readers.begin() + below(3));
    change([&](transaction& next) {
      const writable_array a = next.update("a");
      for (index_t writes = 1 + below(4); writes > 0; --writes) {
        std::vector<index_entry> entries;
        for (index_t axis = 0; axis < 3; ++axis) {
          const index_t start = below(shape[axis]);
          const index_t stop = start + 1 + below(shape[axis] - start);
          const index_t step = below(3) == 0 ? 1 + below(shape[axis]) : 1;
          entries.emplace_back(below(3) == 0 ? slice{.start = stop - 1, .step = -step}
                                             : slice{.start = start, .stop = stop, .step = step});
        }
        const auto value = static_cast<float>(below(1'000'000));
        if (below(4) == 0) {
          const index_t plane = below(shape[0]);
          a.write({{plane, 0, 0}, {1, shape[1], shape[2]}}, expr(value));
          fill(wanted.narrow(0, plane, 1), value);
        } else if (below(6) == 0) {
          fill(a.map().index(entries), value);
          fill(wanted.index(entries), value);
        } else {
          a.write_at(entries, expr(value));
          fill(wanted.index(entries), value);
        }
      }
    });
    ASSERT_TRUE(equal_bits(at("a").map(), wanted)) << generation;
    ASSERT_TRUE(equal_bits(at("a").read(), wanted)) << generation;
    for (const auto& [reader, seen] : readers)
      ASSERT_TRUE(equal_bits(reader.at("a").read(), seen)) << generation;
    ASSERT_EQ(findings_of(file_), "") << generation;
  }
}

TEST_F(DenseParts, AreGoneAfterAnAbort) {
  const tensor values = test::seeded({8, floats_in_unit}, 1);
  write("a", values);
  {
    transaction next = file_.begin();
    next.update("a").write({{3, 0}, {2, floats_in_unit}}, expr(5));
  }
  EXPECT_TRUE(equal_bits(at("a").map(), values));
  EXPECT_EQ(findings_of(file_), "");
}

TEST_F(DenseParts, MayBeOfARenamedOrRemovedArray) {
  const tensor values = test::seeded({8, floats_in_unit}, 1);
  write("a", values);
  write("b", values);
  change([&](transaction& next) {
    const writable_array a = next.update("a");
    a.write({{3, 0}, {1, 1}}, expr(5));
    next.rename("a", "c");
    next.set_attribute("c", "note", "moved");
    a.write({{6, 0}, {1, 1}}, expr(6));
    const writable_array b = next.update("b");
    b.write({{3, 0}, {1, 1}}, expr(5));
    next.remove("b");
    EXPECT_EQ(code_of([&] { b.write({{3, 0}, {1, 1}}, expr(5)); }), errc::not_found);
  });
  tensor wanted = values.clone();
  wanted.set({3, 0}, 5);
  wanted.set({6, 0}, 6);
  EXPECT_TRUE(equal_bits(at("c").map(), wanted));
  EXPECT_EQ(at("c").attribute("note"), "moved");
  EXPECT_EQ(file_.latest().names(), (std::vector<std::string>{"c"}));
  EXPECT_EQ(findings_of(file_), "");
}

// The space of an array that is removed may be another's before a write of it ends.
TEST_F(DenseParts, OfAnArrayThatIsRemovedMeanwhileReachNothing) {
  write("a", test::seeded({4, floats_in_unit}, 1));
  class removing final : public ones_by_rows {
   public:
    explicit removing(transaction& in) : in_(in) {}
    void load(const dims& tile, const tensor& row) const override {
      if (tile[0] == 0) {
        in_.remove("a");
        in_.create("b", {.shape = {8, floats_in_unit}});
      }
      ones_by_rows::load(tile, row);
    }

   private:
    transaction& in_;
  };
  change([&](transaction& next) {
    next.resize("a", {5, floats_in_unit});
    const writable_array a = next.resize("a", {4, floats_in_unit});
    // The engine may notice the loss of the bytes before the array does.
    const errc code = code_of([&] { a.write(expr(std::make_shared<removing>(next))); });
    EXPECT_TRUE(code == errc::not_found || code == errc::io) << name(code);
  });
  EXPECT_TRUE(equal_bits(at("b").map(), tensor::zeros({8, floats_in_unit}, dtype::float32)));
  EXPECT_EQ(findings_of(file_), "");
}

// update.3: a unit that nobody writes keeps its checksums, right or wrong.
TEST_F(DenseParts, DoNotCarryDamageOn) {
  write("a", test::seeded({3, floats_in_unit}, 1));
  const std::uint64_t damaged = *at("a").map().storage().file_offset() + unit_bytes + 4711;
  test::flip_byte(path_, damaged);
  change([&](transaction& next) {
    const writable_array a = next.update("a");
    a.write({{0, 0}, {1, 1}}, expr(5));
    const std::string text = text_of([&] { a.write({{1, 77}, {1, 1}}, expr(5)); });
    EXPECT_NE(text.find("[corrupt]"), std::string::npos) << text;
    EXPECT_NE(text.find("segment 2 of 'a'"), std::string::npos) << text;
    EXPECT_EQ(code_of([&] { a.map(); }), errc::corrupt);
    a.write({{2, 0}, {1, 1}}, expr(6));  // the transaction goes on
  });
  const auto findings = file_.verify().findings;
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_NE(findings[0].text.find("segment 2"), std::string::npos) << findings[0].text;
  EXPECT_EQ(at("a").read({{0, 0}, {1, 1}}).item(), scalar(5.0f));
  EXPECT_EQ(at("a").read({{2, 0}, {1, 1}}).item(), scalar(6.0f));
}

// Segments that were compared in one generation are compared again in the next, whose unit lies
// elsewhere and may be damaged there, although all checksums are the same.
TEST_F(DenseParts, AreComparedAtTheirNewPlace) {
  const tensor values = test::seeded({3, floats_in_unit}, 1);
  write("a", values);
  at("a").map().storage().compare_checksums();
  change([&](transaction& next) {
    next.update("a").write({{1, 0}, {1, floats_in_unit}}, values.narrow(0, 1, 1));
  });
  const auto extents = extents_of("a");
  ASSERT_EQ(extents.size(), 3u);
  test::flip_byte(path_, extents[1].offset + 5);
  EXPECT_EQ(code_of([&] { at("a").map().storage().compare_checksums(); }), errc::corrupt);
}

// update.2
TEST_F(DenseParts, OfOneUnitMayBeWrittenByManyThreads) {
  constexpr int threads = 8;
  write("a", test::seeded({4, floats_in_unit}, 1));
  tensor wanted = test::seeded({4, floats_in_unit}, 1);
  const index_t part = floats_in_unit / threads;
  for (int round = 0; round < 4; ++round) {
    change([&](transaction& next) {
      const writable_array a = next.update("a");
      std::barrier together(threads);
      std::vector<std::jthread> all;
      for (int t = 0; t < threads; ++t)
        all.emplace_back([&, t] {
          together.arrive_and_wait();
          a.write({{1, t * part}, {2, part}}, expr(static_cast<float>(round * threads + t)));
        });
    });
    for (int t = 0; t < threads; ++t)
      fill(wanted.narrow(0, 1, 2).narrow(1, t * part, part),
           static_cast<float>(round * threads + t));
    ASSERT_TRUE(equal_bits(at("a").map(), wanted)) << round;
    ASSERT_EQ(findings_of(file_), "") << round;
  }
}

TEST_F(DenseParts, AreSeenByArraysThatAreFoundLater) {
  const tensor values = test::seeded({4, floats_in_unit}, 1);
  write("a", values);
  change([&](transaction& next) {
    const writable_array a = next.update("a");
    EXPECT_TRUE(equal_bits(next.find("a")->map(), values));
    a.write({{2, 0}, {1, floats_in_unit}}, expr(*next.find("a")).narrow(0, 1, 1) * 2);
    const tensor twice = eval(expr(values).narrow(0, 1, 1) * 2);
    EXPECT_TRUE(equal_bits(next.find("a")->read({{2, 0}, {1, floats_in_unit}}), twice));
    a.write({{3, 0}, {1, floats_in_unit}}, expr(*next.find("a")).narrow(0, 2, 1) * 2);
    EXPECT_TRUE(equal_bits(next.find("a")->map().narrow(0, 3, 1), eval(expr(twice) * 2)));
    EXPECT_TRUE(equal_bits(next.find("a")->map().narrow(0, 0, 2), values.narrow(0, 0, 2)));
  });
  EXPECT_EQ(findings_of(file_), "");
}

TEST_F(DenseParts, StayAfterAWriteThatFails) {
  const tensor values = test::seeded({4, floats_in_unit}, 1);
  write("a", values);
  class failing final : public ones_by_rows {
   public:
    void load(const dims& tile, const tensor& row) const override {
      if (tile[0] == 2) throw std::runtime_error("no such tile");
      ones_by_rows::load(tile, row);
    }
  };
  change([&](transaction& next) {
    const writable_array a = next.update("a");
    EXPECT_THROW(a.write(expr(std::make_shared<failing>())), std::runtime_error);
    a.write({{0, 0}, {1, floats_in_unit}}, expr(3));
  });
  // Of the rows that failed, each element is old or new.
  const tensor seen = at("a").map();
  EXPECT_TRUE(
      equal_bits(seen.narrow(0, 0, 1), tensor::full({1, floats_in_unit}, 3, dtype::float32)));
  EXPECT_TRUE(equal_bits(seen.narrow(0, 2, 1), values.narrow(0, 2, 1)));
  EXPECT_EQ(findings_of(file_), "");
}

// Another process truncates the file while a part is written, and makes it long again.
TEST_F(DenseParts, LostDuringAWriteAreNotCommitted) {
  const tensor values = test::seeded({4, floats_in_unit}, 1);
  write("a", values);
  class truncating final : public ones_by_rows {
   public:
    truncating(std::string path, std::uintmax_t bytes) : path_(std::move(path)), short_(bytes) {}
    void load(const dims& tile, const tensor& row) const override {
      if (tile[0] == 0) {
        long_ = std::filesystem::file_size(path_);
        std::filesystem::resize_file(path_, short_);
      }
      ones_by_rows::load(tile, row);
      if (tile[0] == 3) std::filesystem::resize_file(path_, long_);
    }

   private:
    const std::string path_;
    const std::uintmax_t short_;
    mutable std::uintmax_t long_ = 0;
  };
  executor one({.threads = 1});
  const executor::scope bound(one);
  const auto bytes_before = bytes_of_the_file();
  transaction next = file_.begin();
  const writable_array a = next.update("a");
  EXPECT_EQ(code_of([&] { a.write(expr(std::make_shared<truncating>(path_, bytes_before))); }),
            errc::io);
  EXPECT_EQ(code_of([&] { next.commit(); }), errc::io);
  EXPECT_TRUE(equal_bits(at("a").map(), values));
  EXPECT_EQ(findings_of(file_), "");
}

// Lowers the number of extents from which on a commit joins some.
class few_extents {
 public:
  explicit few_extents(std::size_t most)
      : before_(std::exchange(arrays::dense_extents_max, most)) {}
  ~few_extents() { arrays::dense_extents_max = before_; }
  few_extents(const few_extents&) = delete;
  few_extents& operator=(const few_extents&) = delete;

 private:
  std::size_t before_;
};

TEST_F(DenseParts, AreJoinedWhenAnArrayHasTooManyExtents) {
  const few_extents limit(4);
  const tensor values = test::seeded({24, floats_in_unit / 2}, 1);  // two rows in a unit
  tensor wanted = values.clone();
  write("a", values);
  for (index_t round = 0; round < 4; ++round) {
    change([&](transaction& next) {
      const writable_array a = next.update("a");
      for (index_t row = round % 2 * 2; row < 24; row += 4) {  // every other unit
        a.write({{row, 0}, {1, 1}}, expr(static_cast<float>(round + row)));
        wanted.set({row, 0}, static_cast<float>(round + row));
      }
    });
    ASSERT_TRUE(equal_bits(at("a").map(), wanted)) << round;
    ASSERT_EQ(findings_of(file_), "") << round;
    ASSERT_LE(extents_of("a").size(), 4u) << round;
  }
}

// The tensor shows the bytes where they were before, and keeps them.
TEST_F(DenseParts, AreNotJoinedUnderATensor) {
  const few_extents limit(4);
  write("a", test::seeded({12, floats_in_unit}, 1));
  tensor held;
  change([&](transaction& next) {
    const writable_array a = next.update("a");
    for (const index_t row : {0, 2, 4, 6, 8}) a.write({{row, 0}, {1, 1}}, expr(row));
    held = a.map();
  });
  const tensor wanted = held.clone();
  for (int round = 0; round < 4; ++round)
    change([&](transaction& next) {
      const std::string name = "b" + std::to_string(round);
      next.create(name, {.shape = {4, floats_in_unit}}).write(expr(round));
    });
  EXPECT_FALSE(held.storage().failed());
  EXPECT_TRUE(equal_bits(held, wanted));
  EXPECT_TRUE(equal_bits(at("a").map(), wanted));
  EXPECT_EQ(findings_of(file_), "");
}

// A call that streams makes the pages of its output ready before it stores.
TEST_F(DenseParts, MayBeLargerThanMemory) {
  const tensor values = test::seeded({4, 4, floats_in_unit / 2}, 1);
  tensor wanted = values.clone();
  write("a", values);
  executor small({.threads = 2, .memory_bytes = 1 << 20});
  const executor::scope within(small);
  change([&](transaction& next) {
    const writable_array a = next.update("a");
    a.write({{0, 1, 0}, {3, 3, floats_in_unit / 2}}, expr(1));
    a.write({{1, 0, 0}, {3, 1, floats_in_unit / 4}}, expr(2));
  });
  fill(wanted.narrow(0, 0, 3).narrow(1, 1, 3), 1);
  fill(wanted.narrow(0, 1, 3).narrow(1, 0, 1).narrow(2, 0, floats_in_unit / 4), 2);
  EXPECT_TRUE(equal_bits(at("a").map(), wanted));
  EXPECT_EQ(findings_of(file_), "");
}

}  // namespace
}  // namespace shale
