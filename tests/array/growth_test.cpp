// Tests arrays that get another shape, against plain vectors that are copied element by element.

#include <atomic>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "array/plain_array.hpp"
#include "array/test_support.hpp"
#include "shale/container.hpp"
#include "shale/executor.hpp"
#include "shale/tile_source.hpp"

namespace shale {
namespace {

using test::code_of;
using test::findings_of;
using test::plain;
using test::read_plain;
using test::text_of;

class Growth : public test::fresh_container {
 protected:
  static array_spec spec(const dims& shape, const dims& chunk, int fill = 0) {
    return {.dtype = dtype::int32,
            .shape = shape,
            .kind = array_kind::chunked,
            .chunk_shape = chunk,
            .fill_value = fill};
  }

  static plain numbered(const dims& shape, int first) {
    plain made{shape, std::vector<int>(plain::count(shape))};
    for (int& value : made.elements) value = first++;
    return made;
  }

  // Makes an array with the elements `first`, `first` + 1, …
  plain make(const std::string& name, const dims& shape, const dims& chunk, int fill = 0) {
    const plain made = numbered(shape, 1);
    write_new(name, spec(shape, chunk, fill), made.as_tensor());
    return made;
  }

  plain stored(const std::string& name) const { return read_plain(at(name)); }
};

TEST_F(Growth, NewElementsReadAsTheFillValue) {
  plain model = make("a", {3, 5}, {2, 2}, -7);
  const snapshot before = file_.latest();
  for (const dims& shape : {dims{9, 5}, dims{9, 12}, dims{10, 13}, dims{64, 40}}) {
    transaction change = file_.begin();
    EXPECT_EQ(change.resize("a", shape).shape(), shape);
    model.resize(shape, -7);
    EXPECT_EQ(read_plain(*change.find("a")), model);
    change.commit();
    EXPECT_EQ(stored("a"), model);
    EXPECT_EQ(findings_of(file_), "");
  }
  EXPECT_EQ(read_plain(before.at("a")), numbered({3, 5}, 1));
}

TEST_F(Growth, ElementsThatWereCutOffDoNotComeBack) {
  for (const dims& smaller : {dims{5, 7}, dims{3, 11}, dims{1, 1}, dims{4, 8}, dims{0, 5}}) {
    const std::string name = "a" + to_string(smaller);
    plain model = make(name, {9, 11}, {4, 4}, 3);
    for (const bool in_one : {true, false}) {
      transaction change = file_.begin();
      change.resize(name, smaller);
      if (!in_one) {
        change.commit();
        change = file_.begin();
      }
      change.resize(name, {9, 11});
      change.commit();
      model.resize(smaller, 3);
      model.resize({9, 11}, 3);
      EXPECT_EQ(stored(name), model) << name;
    }
  }
  EXPECT_EQ(findings_of(file_), "");
}

TEST_F(Growth, AChunkThatIsCutToTheFillValueIsAbsent) {
  make("a", {8}, {4}, 5);
  transaction change = file_.begin();
  change.update("a").write({{4}, {1}}, tensor::full({1}, 5, dtype::int32));
  change.resize("a", {5});
  change.commit();
  EXPECT_EQ(at("a").tiles()->stored_bytes({1}), 0u);
  EXPECT_EQ(findings_of(file_), "");
}

TEST_F(Growth, OlderGenerationsKeepTheirShapeAndElements) {
  std::vector<std::pair<snapshot, plain>> told;
  plain model = make("a", {4, 3}, {3, 2});
  told.emplace_back(file_.latest(), model);
  std::mt19937 random(5);
  for (int step = 0; step < 30; ++step) {
    transaction change = file_.begin();
    const dims shape{static_cast<index_t>(random() % 12), static_cast<index_t>(random() % 9)};
    change.resize("a", shape);
    model.resize(shape, 0);
    const plain row = numbered({2, shape[1]}, step * 1000);
    change.append("a", row.as_tensor());
    model.resize({shape[0] + 2, shape[1]}, 0);
    model.write({shape[0], 0}, row);
    change.commit();
    told.emplace_back(file_.latest(), model);
    for (const auto& [view, expected] : told) EXPECT_EQ(read_plain(view.at("a")), expected);
  }
}

TEST_F(Growth, AppendsAlongEveryAxis) {
  for (index_t axis = -3; axis < 3; ++axis) {
    const std::string name = "a" + std::to_string(axis);
    const index_t at = axis < 0 ? axis + 3 : axis;
    plain model = make(name, {3, 5, 2}, {2, 3, 2});
    for (const index_t count : {1, 2, 7, 0, 3}) {
      dims added = model.shape;
      added[at] = count;
      const plain values = numbered(added, 500);
      dims start = dims::filled(3, 0);
      start[at] = model.shape[at];
      transaction change = file_.begin();
      const writable_array longer = change.append(name, values.as_tensor(), axis);
      change.commit();
      dims shape = model.shape;
      shape[at] += count;
      EXPECT_EQ(longer.shape(), shape);
      model.resize(shape, 0);
      model.write(start, values);
      EXPECT_EQ(stored(name), model) << name << " after " << count;
    }
  }
  EXPECT_EQ(findings_of(file_), "");
}

TEST_F(Growth, AppendsExpressionsOverTheArrayItself) {
  plain model = make("a", {5}, {4});
  transaction change = file_.begin();
  change.append("a", expr(*change.find("a")) * 2);  // of the generation before
  change.append("a", expr(*change.find("a")) + 1);  // of this transaction
  change.commit();
  for (const int value : {2, 4, 6, 8, 10}) model.elements.push_back(value);
  for (std::size_t i = 0; i < 10; ++i) model.elements.push_back(model.elements[i] + 1);
  model.shape = {20};
  EXPECT_EQ(stored("a"), model);
}

// An array of rank 32 has room for two chunks along its last axis. When it gets a third one, all
// chunks get other numbers.
TEST_F(Growth, ReadsNoChunkByANumberFromBefore) {
  plain model = make("a", dims::filled(32, 1), dims::filled(32, 1));
  transaction change = file_.begin();
  change.append("a", tensor::full(dims::filled(32, 1), 7, dtype::int32), 31);
  const expr twice = expr(*change.find("a"));
  EXPECT_NE(text_of([&] { change.append("a", twice, 31); }).find("was resized"), std::string::npos);
  EXPECT_EQ(change.find("a")->shape()[31], 2);
  change.append("a", expr(*change.find("a")), 31);
  change.commit();
  model.shape[31] = 4;
  model.elements = {1, 7, 1, 7};
  EXPECT_EQ(stored("a"), model);
  EXPECT_EQ(findings_of(file_), "");
}

TEST_F(Growth, AppendsWhatAnExpressionComputesFromReductions) {
  make("a", {5}, {4});
  transaction change = file_.begin();
  const tensor values = numbered({9}, 1).as_tensor();
  change.append("a", expr(values) - mean(expr(values)));
  change.commit();
  const plain seen = stored("a");
  for (std::size_t i = 0; i < 9; ++i) EXPECT_EQ(seen.elements[5 + i], static_cast<int>(i) - 4);
}

TEST_F(Growth, WorksInTheTransactionThatMadeTheArray) {
  transaction change = file_.begin();
  change.create("a", spec({0, 3}, {4, 3}));
  plain model{{0, 3}, {}};
  for (int i = 0; i < 7; ++i) {
    const plain row = numbered({1, 3}, i * 10);
    change.append("a", row.as_tensor());
    model.elements.insert(model.elements.end(), row.elements.begin(), row.elements.end());
    ++model.shape[0];
  }
  change.set_attribute("a", "unit", "K");
  change.rename("a", "b");
  change.resize("b", {8, 4}).write({{7, 0}, {1, 4}}, numbered({1, 4}, 100).as_tensor());
  model.resize({8, 4}, 0);
  model.write({7, 0}, numbered({1, 4}, 100));
  change.commit();
  EXPECT_EQ(stored("b"), model);
  EXPECT_EQ(at("b").attribute("unit"), "K");
  EXPECT_EQ(findings_of(file_), "");
}

TEST_F(Growth, SeveralArraysGrowTogether) {
  make("a", {2}, {4});
  make("b", {2, 2}, {4, 4});
  {
    transaction change = file_.begin();
    change.append("a", numbered({3}, 9).as_tensor());
    change.append("b", numbered({1, 2}, 9).as_tensor());
  }
  EXPECT_EQ(at("a").shape(), (dims{2}));
  transaction change = file_.begin();
  change.append("a", numbered({3}, 9).as_tensor());
  change.append("b", numbered({1, 2}, 9).as_tensor());
  change.commit();
  EXPECT_EQ(at("a").shape(), (dims{5}));
  EXPECT_EQ(at("b").shape(), (dims{3, 2}));
}

TEST_F(Growth, RefusesWhatDoesNotFitBeforeAnythingChanges) {
  const plain model = make("a", {3, 5}, {2, 2});
  write_new("dense", {.dtype = dtype::int32, .shape = {4}}, expr(1));
  write_new("one", {.dtype = dtype::int32, .shape = {}, .kind = array_kind::chunked}, expr(1));
  transaction change = file_.begin();
  const writable_array handle = change.update("a");
  const auto refuses = [&](const std::string& says, auto&& body) {
    EXPECT_EQ(code_of(body), errc::invalid_argument) << says;
    EXPECT_NE(text_of(body).find(says), std::string::npos) << text_of(body);
  };
  const auto values = [](const dims& shape) { return tensor::zeros(shape, dtype::int32); };
  refuses("expand_dims", [&] { change.append("a", values({5})); });
  refuses("axis 1 must be 5", [&] { change.append("a", values({1, 4})); });
  refuses("axis 0 must be 3", [&] { change.append("a", values({2, 5}), 1); });
  refuses("axis", [&] { change.append("a", values({1, 5}), 2); });
  refuses("axis", [&] { change.append("a", values({1, 5}), -3); });
  refuses("rank 0", [&] { change.append("one", values({})); });
  refuses("rank 0", [&] { change.resize("one", {}); });
  refuses("another rank", [&] { change.resize("dense", {9, 1}); });
  refuses("another rank", [&] { change.resize("a", {3}); });
  refuses("another rank", [&] { change.resize("a", dims::filled(32, 1)); });
  refuses("-1", [&] { change.resize("a", {3, -1}); });
  const index_t huge = INT64_MAX;
  refuses("", [&] { change.resize("a", {huge, huge}); });
  refuses("more elements", [&] { change.resize("a", {huge / 16, 1}); });
  refuses("", [&] { change.resize("a", {huge, 0}); });
  EXPECT_EQ(code_of([&] { change.resize("nosuch", {3, 5}); }), errc::not_found);
  EXPECT_EQ(code_of([&] { change.append("nosuch", values({3, 5})); }), errc::not_found);
  handle.write({{0, 0}, {1, 1}}, tensor::full({1, 1}, 1, dtype::int32));  // it has not ended
  change.commit();
  EXPECT_EQ(stored("a"), model);
  EXPECT_EQ(code_of([&] { change.resize("a", {4, 5}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { change.append("a", values({1, 5})); }), errc::invalid_argument);
}

TEST_F(Growth, RefusesASumOfExtentsThatOverflows) {
  transaction change = file_.begin();
  change.create("a", spec({INT64_MAX / 64}, {1 << 20}));
  const expr long_values = full({INT64_MAX - 5}, scalar(0), dtype::int8);
  EXPECT_EQ(code_of([&] { change.append("a", long_values); }), errc::invalid_argument);
  EXPECT_EQ(change.find("a")->shape(), (dims{INT64_MAX / 64}));
}

// change.7
TEST_F(Growth, HandlesToTheOldShapeEnd) {
  make("a", {4}, {4});
  transaction change = file_.begin();
  const writable_array old = change.update("a");
  const auto tiles = old.tiles();
  const array read = *change.find("a");
  change.resize("a", {6});
  const tensor one = tensor::full({1}, 9, dtype::int32);
  for (const auto& text : {text_of([&] {
                             old.write({{0}, {1}}, one);
                           }),
                           text_of([&] { (void)old.tiles(); }),
                           text_of([&] { tiles->store({0}, tensor::zeros({4}, dtype::int32)); }),
                           text_of([&] { (void)read.read(); })})
    EXPECT_NE(text.find("was resized"), std::string::npos) << text;
  EXPECT_EQ(old.shape(), (dims{4}));
  change.update("a").write({{0}, {1}}, one);
  change.commit();
  EXPECT_EQ(stored("a"), (plain{{6}, {9, 2, 3, 4, 0, 0}}));
}

// A source that fails in its last tile.
class failing_source final : public tile_source {
 public:
  explicit failing_source(const dims& shape) : shape_(shape) {}
  shale::dtype dtype() const noexcept override { return dtype::int32; }
  const dims& shape() const noexcept override { return shape_; }
  const dims& tile_shape() const noexcept override { return tile_; }
  void load(const dims& tile, const tensor& values) const override {
    if (tile[0] == shape_[0] - 1) throw std::runtime_error("the source is broken");
    for (int& value : values.elements<int>()) value = 77;
  }
  std::uint64_t stored_bytes(const dims&) const override { return 4; }

 private:
  dims shape_;
  dims tile_{1};
};

TEST_F(Growth, AnAppendThatFailsIsUndone) {
  plain model = make("a", {6}, {4});
  transaction change = file_.begin();
  const expr broken(std::make_shared<failing_source>(dims{9}));
  EXPECT_THROW(change.append("a", broken), std::runtime_error);
  EXPECT_EQ(read_plain(*change.find("a")), model);
  change.append("a", numbered({1}, 50).as_tensor());
  change.resize("a", {20});
  change.commit();
  model.elements.push_back(50);
  model.shape = {7};
  model.resize({20}, 0);
  EXPECT_EQ(stored("a"), model);
  EXPECT_EQ(findings_of(file_), "");
}

// A source that cancels the executor that evaluates it.
class cancelling_source final : public tile_source {
 public:
  shale::dtype dtype() const noexcept override { return dtype::int32; }
  const dims& shape() const noexcept override { return shape_; }
  const dims& tile_shape() const noexcept override { return tile_; }
  void load(const dims&, const tensor& values) const override {
    for (int& value : values.elements<int>()) value = 77;
    executor::current().cancel();
  }
  std::uint64_t stored_bytes(const dims&) const override { return 4; }

 private:
  dims shape_{9};
  dims tile_{1};
};

// The old extent cuts a chunk, which is stored again when the append is undone.
TEST_F(Growth, AnAppendThatIsCancelledIsUndone) {
  for (const bool is_dense : {false, true}) {
    const std::string name = is_dense ? "dense" : "chunked";
    plain model = numbered({6}, 1);
    write_new(name, is_dense ? array_spec{.dtype = dtype::int32, .shape = {6}} : spec({6}, {4}),
              model.as_tensor());
    transaction change = file_.begin();
    {
      executor on({.threads = 2});
      const executor::scope within(on);
      const expr cancelled(std::make_shared<cancelling_source>());
      EXPECT_EQ(code_of([&] { change.append(name, cancelled); }), errc::cancelled);
    }
    EXPECT_EQ(read_plain(*change.find(name)), model);
    change.resize(name, {20});
    change.commit();
    model.resize({20}, 0);
    EXPECT_EQ(stored(name), model);
  }
  EXPECT_EQ(findings_of(file_), "");
}

// A source that calls back.
class calling_source final : public tile_source {
 public:
  explicit calling_source(std::function<void()> call) : call_(std::move(call)) {}
  shale::dtype dtype() const noexcept override { return dtype::int32; }
  const dims& shape() const noexcept override { return shape_; }
  const dims& tile_shape() const noexcept override { return shape_; }
  void load(const dims&, const tensor& values) const override {
    call_();
    for (int& value : values.elements<int>()) value = 5;
  }
  std::uint64_t stored_bytes(const dims&) const override { return 4; }

 private:
  std::function<void()> call_;
  dims shape_{2};
};

// change.7
TEST_F(Growth, OneCallAtATimeChangesAShape) {
  make("a", {6}, {4});
  make("b", {6}, {4});
  transaction change = file_.begin();
  const expr values(std::make_shared<calling_source>([&] {
    EXPECT_EQ(code_of([&] { change.resize("a", {3}); }), errc::busy);
    EXPECT_EQ(code_of([&] { change.append("a", tensor::zeros({1}, dtype::int32)); }), errc::busy);
    EXPECT_EQ(code_of([&] { change.remove("a"); }), errc::busy);
    EXPECT_EQ(code_of([&] { change.rename("a", "c"); }), errc::busy);
    change.resize("b", {3});
    EXPECT_EQ(code_of([&] { change.commit(); }), errc::invalid_argument);
  }));
  change.append("a", values);
  change.commit();
  EXPECT_EQ(stored("a"), (plain{{8}, {1, 2, 3, 4, 5, 6, 5, 5}}));
  EXPECT_EQ(stored("b"), (plain{{3}, {1, 2, 3}}));
}

TEST_F(Growth, AbortInsideAnAppendEndsIt) {
  const plain model = make("a", {6}, {4});
  transaction change = file_.begin();
  const expr values(std::make_shared<calling_source>([&] { change.abort(); }));
  EXPECT_EQ(code_of([&] { change.append("a", values); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { change.update("a"); }), errc::invalid_argument);
  EXPECT_EQ(stored("a"), model);
  EXPECT_EQ(findings_of(file_), "");
}

// A resize is ordered with the writes of other threads: each chunk is stored before it, or refused.
TEST_F(Growth, WritesOfOtherThreadsEndOrCount) {
  for (int round = 0; round < 20; ++round) {
    const std::string name = "a" + std::to_string(round);
    make(name, {64, 8}, {4, 8});
    transaction change = file_.begin();
    std::atomic<bool> resized = false;
    std::thread writer([&] {
      const writable_array array = change.update(name);
      const tensor row = tensor::full({4, 8}, -1, dtype::int32);
      try {
        while (true)
          for (index_t i = 0; i < 64; i += 4) array.write({{i, 0}, {4, 8}}, row);
      } catch (const error& failure) {
        EXPECT_EQ(failure.code(), errc::invalid_argument) << failure.what();
        EXPECT_TRUE(resized);
      }
    });
    std::this_thread::yield();
    // An update that comes later than the resize gets the new shape, and its writes are refused.
    resized = true;
    change.resize(name, {30, 8});
    writer.join();
    change.resize(name, {64, 8});
    change.commit();
    const plain seen = stored(name);
    for (std::size_t i = 0; i < seen.elements.size(); ++i) {
      if (i >= 240) EXPECT_EQ(seen.elements[i], 0) << i;
      else EXPECT_TRUE(seen.elements[i] == -1 || seen.elements[i] == static_cast<int>(i) + 1) << i;
    }
  }
  EXPECT_EQ(findings_of(file_), "");
}

TEST_F(Growth, ChunksThatAreCutOffAreFreed) {
  const dims shape{4000, 64};
  make("a", shape, {10, 64});
  const verification full_size = file_.verify();
  for (int i = 0; i < 3; ++i) {
    transaction change = file_.begin();
    change.resize("a", {5, 64});
    change.commit();
  }
  const verification cut = file_.verify();
  EXPECT_EQ(cut.chunks, 1u);
  EXPECT_LT(cut.data_bytes, full_size.data_bytes / 100);
  const verification empty = container::create(directory_ / "empty.shale").verify();
  EXPECT_LT(cut.live_bytes - empty.live_bytes, (full_size.live_bytes - empty.live_bytes) / 4);
}

// ---- costs ------------------------------------------------------------------------------------

// Bytes that this process has written by calls like pwrite.
std::uint64_t bytes_written() {
  std::ifstream counters("/proc/self/io");
  std::string field;
  std::uint64_t value = 0;
  while (counters >> field >> value)
    if (field == "wchar:") return value;
  return 0;
}

TEST_F(Growth, AnAppendCostsWhatItAddsForAnyLength) {
  if (bytes_written() == 0) GTEST_SKIP() << "/proc/self/io does not say what was written";
  for (const index_t axis : {0, 1, 2}) {
    const std::string name = "a" + std::to_string(axis);
    dims shape{3, 3, 3};
    dims row{3, 3, 3};
    shape[axis] = 0;
    row[axis] = 1;
    std::optional<transaction> change = file_.begin();
    change->create(name, spec(shape, {1, 1, 1}));
    for (int n = 1; n <= 1000; ++n) {
      const bool is_measured = n == 10 || n == 100 || n == 1000;
      if (is_measured) {
        change->commit();
        change = file_.begin();
      }
      const std::uint64_t before = bytes_written();
      change->append(name, numbered(row, n).as_tensor(), axis);
      if (!is_measured) continue;
      change->commit();
      // Each append makes nine chunks of one element, which may lie in nine pages of the index.
      constexpr std::uint64_t page = 4096;
      EXPECT_LE(bytes_written() - before, (9 * 2 + 16) * page)
          << "append " << n << " along axis " << axis;
      change = file_.begin();
    }
  }
  EXPECT_EQ(findings_of(file_), "");
}

TEST_F(Growth, ResizesCostTheChunksThatTheyCut) {
  if (bytes_written() == 0) GTEST_SKIP() << "/proc/self/io does not say what was written";
  make("a", {2000, 4}, {1, 2});  // 4000 chunks
  const auto cost = [&](const dims& shape) {
    transaction change = file_.begin();
    const std::uint64_t before = bytes_written();
    change.resize("a", shape);
    change.commit();
    return bytes_written() - before;
  };
  constexpr std::uint64_t few_pages = std::uint64_t{16} * 4096;
  EXPECT_LE(cost({1'000'000, 4}), few_pages);
  EXPECT_LE(cost({1'000'000, 1000}), few_pages);
  EXPECT_LE(cost({2000, 4}), few_pages);
  EXPECT_LE(cost({1990, 4}), few_pages);
  EXPECT_EQ(findings_of(file_), "");
}

}  // namespace
}  // namespace shale
