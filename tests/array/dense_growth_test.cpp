// Tests dense arrays that get another shape, against tensors that are copied as a whole.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <thread>

#include "array/elements/copied_units.hpp"
#include "array/test_support.hpp"
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
constexpr index_t row = floats_in_unit / 8;  // a unit has 8 rows

// The tensor with another shape; what is new is 0.
tensor reshaped(const tensor& values, const dims& shape) {
  tensor made = tensor::zeros(shape, values.dtype());
  tensor there = made, here = values;
  for (index_t axis = 0; axis < shape.size(); ++axis) {
    const index_t both = std::min(shape[axis], values.shape()[axis]);
    there = there.narrow(axis, 0, both);
    here = here.narrow(axis, 0, both);
  }
  copy(there, here);
  return made;
}

class DenseGrowth : public test::fresh_container {
 protected:
  tensor make(const std::string& name, const dims& shape) {
    const tensor values = test::seeded(shape, 1);
    write_new(name, {.shape = shape}, values);
    return values;
  }

  template <class Body>
  void change(Body&& body) {
    transaction next = file_.begin();
    body(next);
    next.commit();
  }

  format::dense_layout layout_of(const std::string& name) const {
    return format::container_file::open(format::posix_files(), path_, format::open_access::read)
        .latest()
        .find(name)
        ->dense();
  }

  std::vector<format::extent> extents_of(const std::string& name) const {
    return layout_of(name).extents;
  }
};

TEST_F(DenseGrowth, AppendsKeepWhatIsThere) {
  const tensor before = make("a", {20, row});
  const snapshot held = file_.latest();
  const auto extents = extents_of("a");
  const tensor added = test::seeded({5, row}, 2);
  change([&](transaction& next) {
    const writable_array longer = next.append("a", added);
    EXPECT_EQ(longer.shape(), (dims{25, row}));
    longer.write({{0, 3}, {1, 1}}, expr(7));
  });
  tensor wanted = reshaped(before, {25, row});
  copy(wanted.narrow(0, 20, 5), added);
  wanted.set({0, 3}, 7);
  EXPECT_TRUE(equal_bits(at("a").map(), wanted));
  EXPECT_TRUE(equal_bits(at("a").read(), wanted));
  EXPECT_TRUE(equal_bits(held.at("a").read(), before));
  // The second unit has not moved.
  EXPECT_EQ(extents_of("a").at(1).offset, extents.at(0).offset + unit_bytes);
  EXPECT_EQ(findings_of(file_), "");
}

// Rows that are short, and of any length.
TEST_F(DenseGrowth, AnAppendCopiesLittle) {
  for (const index_t width : {index_t{1024}, index_t{3001}}) {
    const std::string name = "a" + std::to_string(width);
    const tensor before = make(name, {400, width});
    const auto row_bytes = static_cast<std::uint64_t>(width) * 4;
    std::uint64_t written = 0;
    constexpr index_t appends = 300;
    for (index_t i = 0; i < appends; ++i) {
      const auto extents = extents_of(name);
      change([&](transaction& next) {
        next.append(name, tensor::full({1, width}, i, dtype::float32));
      });
      const auto now = extents_of(name);
      ASSERT_LE(now.size(), 8u) << i;
      for (const format::extent& place : now) {
        const bool was_there = std::any_of(extents.begin(), extents.end(), [&](const auto& old) {
          return old.offset <= place.offset && place.end() <= old.end();
        });
        if (!was_there) written += place.bytes;
      }
    }
    // A unit that becomes full is copied once.
    EXPECT_LE(written, appends * (row_bytes + 2 * arrays::division_bytes) + 3 * unit_bytes);
    tensor wanted = reshaped(before, {400 + appends, width});
    for (index_t i = 0; i < appends; ++i) fill(wanted.narrow(0, 400 + i, 1), i);
    EXPECT_TRUE(equal_bits(at(name).map(), wanted));
    EXPECT_TRUE(equal_bits(at(name).read(), wanted));
  }
  EXPECT_EQ(findings_of(file_), "");
}

// The append divides the unit: its first part is old, its second part new.
TEST_F(DenseGrowth, ADividedUnitCanBeWritten) {
  constexpr index_t width = 1000, rows = 600;  // 2.3 MiB
  const tensor before = make("a", {rows, width});
  const tensor wanted = reshaped(before, {rows + 4, width});
  const auto write = [&](transaction& next, index_t first, index_t count, float value) {
    next.update("a").write({{first, 0}, {count, width}}, expr(value));
    fill(wanted.narrow(0, first, count), value);
  };
  change([&](transaction& next) {
    next.append("a", tensor::full({1, width}, 1, dtype::float32));
    next.append("a", tensor::full({1, width}, 2, dtype::float32));
    fill(wanted.narrow(0, rows, 1), 1);
    fill(wanted.narrow(0, rows + 1, 1), 2);
    write(next, rows - 1, 1, 3);  // shares a piece with the new rows
    write(next, 550, 1, 4);
    write(next, 590, 12, 5);
    next.append("a", tensor::full({2, width}, 6, dtype::float32));
    fill(wanted.narrow(0, rows + 2, 2), 6);
    EXPECT_TRUE(equal_bits(next.find("a")->read(), wanted));
  });
  EXPECT_TRUE(equal_bits(at("a").map(), wanted));
  change([&](transaction& next) {
    next.append("a", tensor::full({3, width}, 7, dtype::float32));
    next.resize("a", {rows + 4, width});
    write(next, 0, 1, 8);
  });
  EXPECT_TRUE(equal_bits(at("a").read(), wanted));
  EXPECT_EQ(findings_of(file_), "");
}

// The old part of a divided unit is copied together with the large extent before it.
TEST_F(DenseGrowth, ALargeArrayWithADividedUnitCanBeUsedWhole) {
  constexpr index_t width = 1000, rows = 4300;  // 16.4 MiB
  const tensor added = tensor::full({1, width}, 5, dtype::float32);
  const std::pair<const char*, std::function<void(transaction&, const std::string&)>> uses[] = {
      {"read", [](transaction& next, const std::string& name) { next.find(name)->read(); }},
      {"map", [](transaction& next, const std::string& name) { next.update(name).map(); }},
      {"written",
       [&](transaction& next, const std::string& name) {
         next.update(name).write({{0, 0}, {rows, 1}},
                                 expr(*next.find(name)).narrow(1, 1, 1).narrow(0, 0, rows));
       }},
      {"appended", [&](transaction& next, const std::string& name) {
         next.append(name, expr(*next.find(name)).narrow(0, rows, 1));
       }}};
  for (const auto& [name, use] : uses) {
    const tensor before = make(name, {rows, width});
    change([&, &name = name, &use = use](transaction& next) {
      next.append(name, added);
      use(next, name);
    });
    tensor wanted = reshaped(before, at(name).shape());
    for (index_t i = rows; i < wanted.shape(0); ++i) copy(wanted.narrow(0, i, 1), added);
    if (name == std::string("written"))
      copy(wanted.narrow(0, 0, rows).narrow(1, 0, 1), before.narrow(1, 1, 1));
    EXPECT_TRUE(equal_bits(at(name).map(), wanted)) << name;
  }
  EXPECT_EQ(findings_of(file_), "");
}

TEST_F(DenseGrowth, AnAppendCostsWhatItAddsAndAUnit) {
  make("a", {256, row});  // 64 MiB
  for (int step = 0; step < 6; ++step) {
    const auto bytes_before = std::filesystem::file_size(path_);
    change([&](transaction& next) {
      next.append("a", tensor::full({1, row}, step, dtype::float32));
    });
    EXPECT_LE(std::filesystem::file_size(path_), bytes_before + unit_bytes + (1u << 20)) << step;
  }
  EXPECT_EQ(at("a").shape(), (dims{262, row}));
  for (int step = 0; step < 6; ++step)
    EXPECT_EQ(at("a").read({{256 + step, 5}, {1, 1}}).item(), scalar(static_cast<float>(step)));
  EXPECT_LE(extents_of("a").size(), 5u);
  EXPECT_EQ(findings_of(file_), "");
}

TEST_F(DenseGrowth, ElementsThatWereCutOffDoNotComeBack) {
  const tensor before = make("a", {20, row});
  change([](transaction& next) { next.resize("a", {11, row}); });
  EXPECT_TRUE(equal_bits(at("a").map(), before.narrow(0, 0, 11)));
  EXPECT_EQ(findings_of(file_), "");
  change([](transaction& next) {
    next.resize("a", {3, row});
    next.resize("a", {20, row});
  });
  EXPECT_TRUE(equal_bits(at("a").map(), reshaped(before.narrow(0, 0, 3), {20, row})));
  EXPECT_EQ(findings_of(file_), "");
}

TEST_F(DenseGrowth, AnyAxisMayGrowAndShrink) {
  const tensor before = make("a", {9, 31, 5003});
  change([](transaction& next) { next.resize("a", {9, 40, 5003}); });
  EXPECT_TRUE(equal_bits(at("a").map(), reshaped(before, {9, 40, 5003})));
  change([](transaction& next) { next.resize("a", {4, 31, 6000}); });
  tensor wanted = reshaped(reshaped(before, {9, 40, 5003}), {4, 31, 6000});
  EXPECT_TRUE(equal_bits(at("a").map(), wanted));
  const tensor added = test::seeded({4, 31, 7}, 2);
  change([&](transaction& next) { next.append("a", added, -1); });
  wanted = reshaped(wanted, {4, 31, 6007});
  copy(wanted.narrow(2, 6000, 7), added);
  EXPECT_TRUE(equal_bits(at("a").map(), wanted));
  EXPECT_EQ(findings_of(file_), "");
}

TEST_F(DenseGrowth, BeginsAndEndsWithNothing) {
  make("a", {0, row});
  const tensor added = test::seeded({3, row}, 2);
  change([&](transaction& next) { next.append("a", added); });
  EXPECT_TRUE(equal_bits(at("a").map(), added));
  change([](transaction& next) { next.resize("a", {0, row}); });
  EXPECT_EQ(at("a").map().shape(), (dims{0, row}));
  EXPECT_EQ(at("a").stored_bytes(), 0u);
  change([](transaction& next) { next.resize("a", {2, 5}); });
  EXPECT_TRUE(equal_bits(at("a").map(), tensor::zeros({2, 5}, dtype::float32)));
  EXPECT_EQ(findings_of(file_), "");
}

// Bytes that a new shape carries on into a segment with a new checksum are compared first.
TEST_F(DenseGrowth, DoesNotCarryDamageOn) {
  const tensor before = make("a", {18, row});
  const std::uint64_t tail = extents_of("a").at(0).offset + 2 * unit_bytes;
  test::flip_byte(path_, tail + 100);
  {
    transaction next = file_.begin();
    const std::string text = text_of([&] {
      next.append("a", tensor::zeros({1, row}, dtype::float32));
    });
    EXPECT_NE(text.find("[corrupt]"), std::string::npos) << text;
    EXPECT_NE(text.find("segment 4 of 'a'"), std::string::npos) << text;
    EXPECT_EQ(code_of([&] { next.resize("a", {17, row}); }), errc::corrupt);
    EXPECT_EQ(code_of([&] { next.resize("a", {18, row + 1}); }), errc::corrupt);
    EXPECT_EQ(next.find("a")->shape(), (dims{18, row}));
    next.resize("a", {16, row});  // leaves the damaged unit out
    next.commit();
  }
  EXPECT_TRUE(equal_bits(at("a").map(), before.narrow(0, 0, 16)));
  EXPECT_EQ(findings_of(file_), "");
}

// The checksum of a segment that stays as it is stays too.
TEST_F(DenseGrowth, LeavesTheChecksumsOfWholeSegments) {
  make("a", {20, row});
  test::flip_byte(path_, extents_of("a").at(0).offset + 2 * unit_bytes + 100);
  change([](transaction& next) { next.append("a", tensor::zeros({1, row}, dtype::float32)); });
  EXPECT_NE(findings_of(file_).find("segment 4"), std::string::npos);
}

// Damaged checksums stop only a change that carries bytes on.
TEST_F(DenseGrowth, NeedsNoChecksumsOfAnArrayThatLosesAllBytes) {
  make("a", {20, row});
  test::flip_byte(path_, layout_of("a").checksums.offset);
  change([](transaction& next) {
    EXPECT_EQ(code_of([&] { next.resize("a", {21, row}); }), errc::corrupt);
    next.resize("a", {0, row});
    next.resize("a", {2, row});
  });
  EXPECT_TRUE(equal_bits(at("a").map(), tensor::zeros({2, row}, dtype::float32)));
  EXPECT_EQ(findings_of(file_), "");
}

TEST_F(DenseGrowth, WorksOnUnitsThatTheTransactionHasWritten) {
  const tensor before = make("a", {20, row});
  tensor wanted = reshaped(before, {30, row});
  change([&](transaction& next) {
    next.update("a").write({{17, 0}, {2, row}}, expr(5));
    fill(wanted.narrow(0, 17, 2), 5);
    const writable_array longer = next.resize("a", {30, row});
    longer.write({{28, 0}, {1, row}}, expr(6));
    fill(wanted.narrow(0, 28, 1), 6);
    next.resize("a", {29, row});
    wanted = reshaped(wanted, {29, row});
    next.append("a", tensor::full({1, row}, 7, dtype::float32));
    wanted = reshaped(wanted, {30, row});
    fill(wanted.narrow(0, 29, 1), 7);
    EXPECT_TRUE(equal_bits(next.find("a")->map(), wanted));
  });
  EXPECT_TRUE(equal_bits(at("a").map(), wanted));
  EXPECT_EQ(findings_of(file_), "");
}

TEST_F(DenseGrowth, WorksInTheTransactionThatMadeTheArray) {
  const tensor values = test::seeded({5, row}, 1);
  change([&](transaction& next) {
    next.create("a", {.shape = {5, row}}).write(values);
    next.append("a", values);
    next.append("a", tensor::zeros({10, 3}, dtype::float32), -1);
  });
  tensor wanted = tensor::zeros({10, row + 3}, dtype::float32);
  copy(wanted.narrow(0, 0, 5).narrow(1, 0, row), values);
  copy(wanted.narrow(0, 5, 5).narrow(1, 0, row), values);
  EXPECT_TRUE(equal_bits(at("a").map(), wanted));
  EXPECT_EQ(findings_of(file_), "");
}

TEST_F(DenseGrowth, AppendsWhatReadsTheArrayItself) {
  const tensor before = make("a", {12, row});
  change([&](transaction& next) {
    next.append("a", expr(*next.find("a")).narrow(0, 2, 5) * 2);
    next.append("a", expr(file_.latest().at("a")).narrow(0, 0, 1) + 1);
  });
  tensor wanted = reshaped(before, {18, row});
  copy(wanted.narrow(0, 12, 5), eval(expr(before).narrow(0, 2, 5) * 2));
  copy(wanted.narrow(0, 17, 1), eval(expr(before).narrow(0, 0, 1) + 1));
  EXPECT_TRUE(equal_bits(at("a").map(), wanted));
  EXPECT_EQ(findings_of(file_), "");
}

TEST_F(DenseGrowth, HandlesAndTensorsOfTheOldShapeEnd) {
  make("a", {12, row});
  change([&](transaction& next) {
    const writable_array old = next.update("a");
    const tensor mapped = old.map();
    const writable_array longer = next.resize("a", {13, row});
    EXPECT_NE(text_of([&] { old.write(expr(1)); }).find("was resized"), std::string::npos);
    EXPECT_NE(text_of([&] { old.map(); }).find("was resized"), std::string::npos);
    EXPECT_TRUE(mapped.storage().failed());
    EXPECT_EQ(old.shape(), (dims{12, row}));
    longer.map();
  });
  EXPECT_EQ(at("a").shape(), (dims{13, row}));
  EXPECT_EQ(findings_of(file_), "");
}

// Whoever truncates the file, and makes it long again, leaves a mark in the mapping alone.
TEST_F(DenseGrowth, RemembersLostBytes) {
  make("a", {12, row});
  const auto bytes_before = std::filesystem::file_size(path_);
  transaction next = file_.begin();
  const tensor mapped = next.update("a").map();
  const auto elements = mapped.as<float, 2>();
  const auto bytes = std::filesystem::file_size(path_);
  std::filesystem::resize_file(path_, bytes_before);
  elements(11, 0) = 3;  // survives, and leaves a mark
  std::filesystem::resize_file(path_, bytes);
  EXPECT_EQ(code_of([&] { next.resize("a", {8, row}); }), errc::io);
  EXPECT_EQ(code_of([&] { next.resize("a", {12, row + 1}); }), errc::io);
  EXPECT_EQ(std::filesystem::file_size(path_), bytes);  // nothing was copied for it
  EXPECT_EQ(code_of([&] { next.commit(); }), errc::io);
  EXPECT_EQ(at("a").shape(), (dims{12, row}));
  EXPECT_EQ(findings_of(file_), "");
}

// Rows of ones, one tile each. `on_load` sees the number of the row.
class rows_of_ones : public tile_source {
 public:
  explicit rows_of_ones(index_t rows) : shape_{rows, row} {}
  shale::dtype dtype() const noexcept override { return dtype::float32; }
  const dims& shape() const noexcept override { return shape_; }
  const dims& tile_shape() const noexcept override { return tile_; }
  std::uint64_t stored_bytes(const dims&) const override { return unit_bytes / 8; }
  void load(const dims& tile, const tensor& values) const override {
    on_load(tile[0]);
    fill(values, 1);
  }
  virtual void on_load(index_t number) const = 0;

 private:
  const dims shape_;
  const dims tile_{1, row};
};

TEST_F(DenseGrowth, AnAppendThatFailsIsUndone) {
  const tensor before = make("a", {12, row});
  class failing final : public rows_of_ones {
   public:
    using rows_of_ones::rows_of_ones;
    void on_load(index_t number) const override {
      if (number == 3) throw std::runtime_error("no such row");
    }
  };
  change([&](transaction& next) {
    EXPECT_THROW(next.append("a", expr(std::make_shared<failing>(5))), std::runtime_error);
    EXPECT_EQ(next.find("a")->shape(), (dims{12, row}));
    EXPECT_EQ(code_of([&] {
                next.append("a", tensor::zeros({1, 5}, dtype::float32));
              }),
              errc::invalid_argument);
  });
  EXPECT_TRUE(equal_bits(at("a").map(), before));
  EXPECT_EQ(findings_of(file_), "");
}

// Runs `first` before any row, and fails at all rows but the first.
class fails_later final : public rows_of_ones {
 public:
  fails_later(index_t rows, std::function<void()> first)
      : rows_of_ones(rows), first_(std::move(first)) {}
  void on_load(index_t number) const override {
    std::call_once(begun_, first_);
    if (number != 0) throw std::runtime_error("no such row");
  }

 private:
  const std::function<void()> first_;
  mutable std::once_flag begun_;
};

// Whatever the axis: the generations share all bytes afterwards.
TEST_F(DenseGrowth, AnAppendThatFailsLeavesNoTrace) {
  const tensor before = make("a", {12, row});
  const std::uint64_t modified = at("a").modified();
  const auto extents = extents_of("a");
  const auto bytes_before = std::filesystem::file_size(path_);
  change([&](transaction& next) {
    for (const index_t axis : {0, 1}) {
      dims longer{12, row};
      longer[axis] *= 2;
      dims seen;
      const auto look = [&] { seen = next.find("a")->shape(); };
      const auto values = std::make_shared<fails_later>(12, look);
      EXPECT_THROW(next.append("a", expr(values), axis), std::runtime_error) << axis;
      EXPECT_EQ(seen, longer) << axis;
      EXPECT_EQ(next.find("a")->shape(), (dims{12, row})) << axis;
      EXPECT_TRUE(equal_bits(next.find("a")->map(), before)) << axis;
    }
  });
  EXPECT_EQ(at("a").modified(), modified);
  EXPECT_EQ(extents_of("a"), extents);
  // The longest array of these appends has twice the 3 MiB; a second copy would need more.
  EXPECT_LT(std::filesystem::file_size(path_), bytes_before + 4 * unit_bytes);
  EXPECT_TRUE(equal_bits(at("a").map(), before));
  EXPECT_EQ(findings_of(file_), "");
}

TEST_F(DenseGrowth, AnAppendThatFailsLeavesHandlesAndTensors) {
  const tensor before = make("a", {12, row});
  change([&](transaction& next) {
    const writable_array a = next.update("a");
    a.write({{0, 0}, {1, row}}, expr(5));
    const tensor mapped = a.map();
    for (const index_t axis : {0, 1})
      EXPECT_THROW(next.append("a", expr(std::make_shared<fails_later>(12, [] {})), axis),
                   std::runtime_error);
    EXPECT_FALSE(mapped.storage().failed());
    fill(mapped.narrow(0, 1, 1), 6);
    a.write({{2, 0}, {1, row}}, expr(7));
    next.append("a", expr(8).broadcast_to({1, row}));
  });
  tensor wanted = reshaped(before, {13, row});
  fill(wanted.narrow(0, 0, 1), 5);
  fill(wanted.narrow(0, 1, 1), 6);
  fill(wanted.narrow(0, 2, 1), 7);
  fill(wanted.narrow(0, 12, 1), 8);
  EXPECT_TRUE(equal_bits(at("a").map(), wanted));
  EXPECT_EQ(findings_of(file_), "");
}

TEST_F(DenseGrowth, AnAppendThatFailsKeepsWhatOthersWrote) {
  const tensor before = make("a", {12, row});
  change([&](transaction& next) {
    const auto write_beside = [&] {
      std::thread([&] { next.update("a").write({{9, 3}, {1, 1}}, expr(9)); }).join();
    };
    EXPECT_THROW(next.append("a", expr(std::make_shared<fails_later>(5, write_beside))),
                 std::runtime_error);
    EXPECT_EQ(next.find("a")->shape(), (dims{12, row}));
  });
  tensor wanted = before.clone();
  wanted.set({9, 3}, 9);
  EXPECT_TRUE(equal_bits(at("a").map(), wanted));
  EXPECT_EQ(findings_of(file_), "");
}

// The values of an append may read what the transaction has written of the array.
TEST_F(DenseGrowth, AppendsReadTensorsOfTheArray) {
  const tensor before = make("a", {12, row});
  change([&](transaction& next) {
    const writable_array a = next.update("a");
    a.write({{3, 0}, {1, row}}, expr(5));
    next.append("a", expr(*next.find("a")).narrow(0, 3, 2) * 2);
  });
  tensor wanted = reshaped(before, {14, row});
  fill(wanted.narrow(0, 3, 1), 5);
  fill(wanted.narrow(0, 12, 1), 10);
  copy(wanted.narrow(0, 13, 1), eval(expr(before).narrow(0, 4, 1) * 2));
  EXPECT_TRUE(equal_bits(at("a").map(), wanted));
  EXPECT_EQ(findings_of(file_), "");
}

TEST_F(DenseGrowth, AnAbortDuringAnAppendCutsTensorsOff) {
  const tensor before = make("a", {12, row});
  transaction next = file_.begin();
  const tensor mapped = next.update("a").map();
  const auto aborts = std::make_shared<fails_later>(1, [&] { next.abort(); });
  EXPECT_EQ(code_of([&] { next.append("a", expr(aborts)); }), errc::invalid_argument);
  EXPECT_TRUE(mapped.storage().failed());
  EXPECT_TRUE(equal_bits(at("a").map(), before));
  EXPECT_EQ(findings_of(file_), "");
}

TEST_F(DenseGrowth, WaitsForNobodyWhoWrites) {
  make("a", {12, row});
  transaction next = file_.begin();
  class resizing final : public rows_of_ones {
   public:
    resizing(transaction& in, std::atomic<int>& refused)
        : rows_of_ones(12), in_(in), refused_(refused) {}
    void on_load(index_t) const override {
      if (code_of([&] { in_.resize("a", {13, row}); }) == errc::busy) ++refused_;
      std::thread([&] {
        if (code_of([&] {
              in_.append("a", tensor::zeros({1, row}, dtype::float32));
            }) == errc::busy)
          ++refused_;
      }).join();
    }

   private:
    transaction& in_;
    std::atomic<int>& refused_;
  };
  std::atomic<int> refused = 0;
  next.update("a").write(expr(std::make_shared<resizing>(next, refused)));
  EXPECT_EQ(refused, 24);
  next.resize("a", {13, row});
  next.commit();
  EXPECT_EQ(at("a").shape(), (dims{13, row}));
  EXPECT_EQ(findings_of(file_), "");
}

// Random changes of one array over many generations.
class dense_history {
 public:
  dense_history(container& file, unsigned seed, const dims& shape)
      : file_(file), random_(seed), told_(test::seeded(shape, 1)) {}

  void run(int commits) {
    transaction first = file_.begin();
    first.create("a", told_);
    first.commit();
    for (int i = 0; i < commits; ++i) {
      tensor changed = told_.clone();
      transaction next = file_.begin();
      for (index_t left = 1 + pick(4); left > 0; --left) changed = step(next, changed);
      if (pick(5) == 0) {
        next.abort();
      } else {
        next.commit();
        told_ = changed;
      }
      held_.emplace_back(file_.latest(), told_.clone());
      if (held_.size() > 4) held_.erase(held_.begin() + pick(4));
      for (const auto& [view, values] : held_) {
        ASSERT_TRUE(equal_bits(view.at("a").map(), values)) << i;
        ASSERT_TRUE(equal_bits(view.at("a").read(), values)) << i;
      }
      ASSERT_EQ(findings_of(file_), "") << i;
    }
  }

 private:
  index_t pick(index_t below) { return static_cast<index_t>(random_() % below); }

  tensor step(transaction& next, tensor values) {
    const auto number = static_cast<float>(pick(1'000'000));
    switch (pick(5)) {
      case 0: {
        const dims& now = values.shape();
        const dims shape{pick(3) == 0 ? pick(30) : pick(now[0] + 2),
                         pick(4) == 0 ? 1 + pick(row) : now[1]};
        next.resize("a", shape);
        return reshaped(values, shape);
      }
      case 1:
      case 2: {
        const index_t axis = pick(6) == 0 ? 1 : 0;
        const index_t before = values.shape()[axis];
        dims added = values.shape();
        added[axis] = pick(axis == 0 ? 12 : 300);
        next.append("a", expr(number).broadcast_to(added), axis);
        dims shape = values.shape();
        shape[axis] += added[axis];
        const tensor made = reshaped(values, shape);
        fill(made.narrow(axis, before, added[axis]), number);
        return made;
      }
      case 3:
        if (pick(3) != 0) return values;
        next.update("a").map();
        return values;
      default: {
        if (values.size() == 0) return values;
        region part = region::all(values.shape());
        for (index_t axis = 0; axis < 2; ++axis) {
          part.start[axis] = pick(values.shape()[axis]);
          part.shape[axis] = 1 + pick(values.shape()[axis] - part.start[axis]);
        }
        next.update("a").write(part, expr(number));
        fill(values.narrow(0, part.start[0], part.shape[0]).narrow(1, part.start[1], part.shape[1]),
             number);
        return values;
      }
    }
  }

  container& file_;
  std::mt19937 random_;
  tensor told_;
  std::vector<std::pair<snapshot, tensor>> held_;
};

TEST_F(DenseGrowth, RandomHistoriesAreThoseOfTensors) {
  for (unsigned seed = 1; seed <= 4 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    container file = container::create(directory_ / ("history" + std::to_string(seed)));
    dense_history(file, seed, {20, row}).run(12);
    container short_rows = container::create(directory_ / ("short" + std::to_string(seed)));
    dense_history(short_rows, seed, {900, 1000}).run(12);
    container large = container::create(directory_ / ("large" + std::to_string(seed)));
    dense_history(large, seed, {4300, 1000}).run(6);
  }
}

}  // namespace
}  // namespace shale
