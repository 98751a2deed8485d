#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "array/test_support.hpp"
#include "shale/container.hpp"
#include "shale/executor.hpp"
#include "shale/tile_source.hpp"
#include "shale/transaction.hpp"
#include "support/bounded.hpp"
#include "support/random_layouts.hpp"

namespace shale {
namespace {

using test::code_of;
using test::counting;
using test::findings_of;
using test::text_of;

class Transaction : public test::fresh_container {
 protected:
  static array_spec small(array_kind kind = array_kind::dense) {
    return {.dtype = dtype::int32, .shape = {6, 4}, .kind = kind};
  }
};

TEST_F(Transaction, PublishesTheGenerationThatItSaid) {
  transaction change = file_.begin();
  EXPECT_EQ(change.generation(), 2u);
  change.create("a", small());
  EXPECT_EQ(file_.latest().generation(), 1u);
  EXPECT_EQ(change.commit(), 2u);
  EXPECT_EQ(change.generation(), 2u);
  EXPECT_EQ(file_.latest().at("a").modified(), 2u);
}

TEST_F(Transaction, SaysWhatItsArraysAre) {
  transaction change = file_.begin();
  const writable_array dense = change.create("d", small());
  EXPECT_EQ(dense.name(), "d");
  EXPECT_EQ(dense.dtype(), dtype::int32);
  EXPECT_EQ(dense.shape(), (dims{6, 4}));
  EXPECT_EQ(dense.rank(), 2);
  EXPECT_EQ(dense.size(), 24);
  EXPECT_EQ(dense.kind(), array_kind::dense);
  EXPECT_EQ(dense.chunk_shape(), (dims{6, 4}));
  array_spec spec = small(array_kind::chunked);
  spec.chunk_shape = dims{2, 3};
  const writable_array chunked = change.create("c", spec);
  EXPECT_EQ(chunked.kind(), array_kind::chunked);
  EXPECT_EQ(chunked.chunk_shape(), (dims{2, 3}));
  EXPECT_EQ(chunked.rank(), 2);
  EXPECT_EQ(chunked.size(), 24);
  for (const dims& shape : {dims{}, dims{0, 7}, dims{3, 0}, dims{2, 1, 5}}) {
    spec.shape = shape;
    spec.chunk_shape.reset();
    const std::string name = "x" + to_string(shape);
    const writable_array made = change.create(name, spec);
    EXPECT_EQ(made.rank(), shape.size()) << name;
    EXPECT_EQ(made.size(), tensor::zeros(shape, dtype::int8).size()) << name;
    EXPECT_EQ(made.size(), change.find(name)->size()) << name;
  }
}

TEST_F(Transaction, LeavesNothingWithoutCommit) {
  const auto before = test::bytes_of_file(path_);
  {
    transaction change = file_.begin();
    change.create("a", small()).write(expr(3));
    change.create("b", small(array_kind::chunked)).write(expr(4));
  }
  EXPECT_TRUE(file_.latest().names().empty());
  EXPECT_EQ(findings_of(file_), "");
  EXPECT_EQ(test::bytes_of_file(path_), before);
}

// Values that call a function of the test when they are asked for, and then fail.
class failing_values final : public tile_source {
 public:
  explicit failing_values(std::function<void()> first) : first_(std::move(first)) {}

  shale::dtype dtype() const noexcept override { return shale::dtype::int32; }
  const dims& shape() const noexcept override { return shape_; }
  const dims& tile_shape() const noexcept override { return shape_; }
  std::uint64_t stored_bytes(const dims&) const override { return 0; }
  void load(const dims&, const tensor&) const override {
    first_();
    throw error(errc::io, "no values today");
  }

 private:
  const dims shape_{6, 4};
  const std::function<void()> first_;
};

// The name of an array that cannot be filled may be another array's when that is found out.
TEST_F(Transaction, RemovesOnlyItsOwnArrayIfItCannotBeFilled) {
  const tensor values = counting({6, 4}, dtype::int32);
  for (const array_kind kind : {array_kind::dense, array_kind::chunked}) {
    transaction change = file_.begin();
    const auto make = [&](std::function<void()> first) {
      const expr failing(std::make_shared<failing_values>(std::move(first)));
      EXPECT_EQ(code_of([&] { change.create("a", failing, {.kind = kind}); }), errc::io);
    };
    make([] {});
    EXPECT_FALSE(change.find("a"));
    make([&] {
      change.remove("a");
      change.create("a", values);
    });
    ASSERT_TRUE(change.find("a"));
    EXPECT_TRUE(equal_bits(change.find("a")->read(), values));
    change.rename("a", "other");
    make([&] {
      change.remove("a");
      change.rename("other", "a");
    });
    ASSERT_TRUE(change.find("a"));
    EXPECT_TRUE(equal_bits(change.find("a")->read(), values));
    change.commit();
    EXPECT_TRUE(equal_bits(at("a").read(), values));
    transaction last = file_.begin();
    last.remove("a");
    last.commit();
  }
  EXPECT_EQ(findings_of(file_), "");
}

TEST_F(Transaction, EndsOnce) {
  transaction change = file_.begin();
  const writable_array a = change.create("a", small(array_kind::chunked));
  change.commit();
  EXPECT_EQ(code_of([&] { change.commit(); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { change.create("b", small()); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { change.find("a"); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { change.names(); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { a.write(expr(1)); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { a.tiles(); }), errc::invalid_argument);
  change.abort();  // a second abort does nothing
  EXPECT_TRUE(file_.latest().find("a"));
}

TEST_F(Transaction, CanBeMovedAndReplaced) {
  transaction change = file_.begin();
  change.create("lost", small());
  transaction kept = std::move(change);
  kept.abort();
  kept = file_.begin();
  kept.create("a", small());
  kept.commit();
  EXPECT_EQ(file_.latest().names(), std::vector<std::string>{"a"});
}

TEST_F(Transaction, SeesItsOwnChanges) {
  {
    transaction change = file_.begin();
    for (const array_kind kind : {array_kind::dense, array_kind::chunked})
      change.create(kind == array_kind::dense ? "d" : "c", small(kind))
          .write(counting({6, 4}, dtype::int32));
    change.commit();
  }
  transaction change = file_.begin();
  for (const char* name : {"d", "c"}) {
    const auto untouched = change.find(name);
    ASSERT_TRUE(untouched);
    change.update(name).write({{0, 0}, {1, 4}}, tensor::of(std::initializer_list<int>{-1}));
    EXPECT_TRUE(equal_bits(untouched->read(), counting({6, 4}, dtype::int32))) << name;
    const tensor changed = change.find(name)->read();
    EXPECT_EQ(changed.at({0, 3}), scalar(-1)) << name;
    EXPECT_EQ(changed.at({1, 0}), scalar(test::number_at(4))) << name;
    EXPECT_EQ(eval(sum(expr(*change.find(name)).narrow(0, 0, 1))).item(), scalar(-4)) << name;
    EXPECT_EQ(code_of([&] {
                change.find(name)->map().set({0, 0}, 1);
              }),
              name[0] == 'd' ? errc::access_denied : errc::invalid_argument);
  }
  EXPECT_FALSE(change.find("e"));
  change.create("e", small());
  EXPECT_TRUE(change.find("e"));
}

// The oracle is a map from the names to the value of each array. Enough names for several pages of
// the catalog, so that pages of the base generation and changed ones are mixed.
TEST_F(Transaction, ListsTheNamesOfItsArraysWithAllChangesSoFar) {
  test::random_choices choose(7);
  const auto random_name = [&] {
    static const char* const folders[] = {"", "a/", "b/long/", "\xc3\xa9/"};
    return folders[choose(0, 3)] + std::to_string(choose(0, 120)) +
           std::string(static_cast<std::size_t>(choose(0, 1)) * 200, 'x');
  };
  std::map<std::string, int> held;
  for (int round = 0; round < 4; ++round) {
    const std::map<std::string, int> before = held;
    const snapshot base = file_.latest();
    transaction change = file_.begin();
    for (int step = 0; step < 300; ++step) {
      const std::string name = random_name(), other = random_name();
      const bool exists = held.contains(name);
      switch (choose(0, 3)) {
        case 0:
        case 1: {
          const bool is_chunked = choose(0, 1) == 1;
          const errc made = code_of([&] {
            change.create(name, small(is_chunked ? array_kind::chunked : array_kind::dense))
                .write(expr(step));
          });
          ASSERT_EQ(made, exists ? errc::already_exists : errc{});
          held.emplace(name, step);
          break;
        }
        case 2:
          ASSERT_EQ(code_of([&] { change.remove(name); }), exists ? errc{} : errc::not_found);
          held.erase(name);
          break;
        default:
          ASSERT_EQ(code_of([&] { change.rename(name, other); }), !exists ? errc::not_found
                                                                  : held.contains(other)
                                                                      ? errc::already_exists
                                                                      : errc{});
          if (exists && !held.contains(other)) {
            held.emplace(other, held.at(name));
            held.erase(name);
          }
      }
      const std::string prefix = choose(0, 1) == 0 ? "" : name.substr(0, name.find('/') + 1);
      const std::string after = choose(0, 2) == 0 ? "" : other;
      const auto limit = choose(0, 1) == 0 ? SIZE_MAX : static_cast<std::size_t>(choose(0, 9));
      std::vector<std::string> expected;
      for (const auto& entry : held)
        if (entry.first.starts_with(prefix) && entry.first > after && expected.size() < limit)
          expected.push_back(entry.first);
      ASSERT_EQ(change.names(prefix, after, limit), expected) << prefix << ", " << after;
    }
    const std::vector<std::string> all = change.names();
    ASSERT_EQ(all.size(), held.size());
    for (const std::string& name : all)
      ASSERT_EQ(change.find(name)->read().at({5, 3}), scalar(held.at(name))) << name;
    std::vector<std::string> old;
    for (const auto& entry : before) old.push_back(entry.first);
    EXPECT_EQ(file_.latest().names(), old) << "others see them after the commit";
    EXPECT_EQ(base.names(), old);
    if (round == 2) {
      change.abort();
      held = before;
    } else {
      change.commit();
      EXPECT_EQ(file_.latest().names(), all);
    }
  }
}

TEST_F(Transaction, RefusesNamesThatAreTakenOrMissing) {
  transaction change = file_.begin();
  change.create("a", small());
  EXPECT_EQ(code_of([&] { change.create("a", small()); }), errc::already_exists);
  EXPECT_EQ(code_of([&] { change.update("b"); }), errc::not_found);
  EXPECT_EQ(code_of([&] { change.remove("b"); }), errc::not_found);
  EXPECT_EQ(code_of([&] { change.rename("b", "c"); }), errc::not_found);
  change.create("c", small());
  EXPECT_EQ(code_of([&] { change.rename("a", "c"); }), errc::already_exists);
  EXPECT_EQ(code_of([&] { change.create("", small()); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { change.create("a\nb", small()); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { change.set_attribute("b", "unit", "m"); }), errc::not_found);
  const std::string text = text_of([&] { change.update("b"); });
  EXPECT_NE(text.find("update 'b' in " + path_), std::string::npos) << text;
  const auto suggests_a = [](const std::string& message) {
    return message.find("did you mean 'a'") != std::string::npos;
  };
  EXPECT_TRUE(suggests_a(text_of([&] { change.remove("A"); })));
  EXPECT_TRUE(suggests_a(text_of([&] { change.rename("A", "b"); })));
  EXPECT_TRUE(suggests_a(text_of([&] { change.set_attribute("A", "unit", "m"); })));
  change.commit();
  EXPECT_EQ(file_.latest().names(), (std::vector<std::string>{"a", "c"}));
}

// change.4
TEST_F(Transaction, RemovesAndMakesAnew) {
  {
    transaction change = file_.begin();
    change.create("a", small()).write(expr(1));
    change.create("b", small(array_kind::chunked)).write(expr(2));
    change.commit();
  }
  const snapshot before = file_.latest();
  {
    transaction change = file_.begin();
    const writable_array old = change.update("a");
    const tensor cut = old.map();
    change.remove("a");
    EXPECT_TRUE(cut.storage().failed());
    EXPECT_EQ(code_of([&] { old.write(expr(3)); }), errc::not_found);
    const writable_array chunks = change.update("b");
    change.remove("b");
    EXPECT_EQ(code_of([&] { chunks.write(expr(3)); }), errc::not_found);
    EXPECT_FALSE(change.find("b"));
    change.create("a", {.dtype = dtype::float64, .shape = {3}}).write(expr(0.5));
    change.commit();
  }
  const snapshot now = file_.latest();
  EXPECT_EQ(now.names(), std::vector<std::string>{"a"});
  EXPECT_EQ(now.at("a").read().at({2}), scalar(0.5));
  EXPECT_EQ(before.at("a").read().at({5, 3}), scalar(1));
  EXPECT_EQ(before.at("b").read().at({5, 3}), scalar(2));
  EXPECT_EQ(findings_of(file_), "");
}

TEST_F(Transaction, RenamesWhatItIsWriting) {
  transaction change = file_.begin();
  const writable_array dense = change.create("d", small());
  const writable_array chunked = change.create("c", small(array_kind::chunked));
  chunked.write({{0, 0}, {3, 4}}, tensor::of(std::initializer_list<int>{1}));
  change.rename("d", "x/d");
  change.rename("c", "x/c");
  EXPECT_EQ(dense.name(), "x/d");
  dense.write(expr(5));
  chunked.write({{3, 0}, {3, 4}}, tensor::of(std::initializer_list<int>{2}));
  change.create("d", small()).write(expr(9));
  change.commit();
  const snapshot now = file_.latest();
  EXPECT_EQ(now.names(), (std::vector<std::string>{"d", "x/c", "x/d"}));
  EXPECT_EQ(now.at("x/d").read().at({5, 3}), scalar(5));
  EXPECT_EQ(now.at("d").read().at({5, 3}), scalar(9));
  EXPECT_EQ(now.at("x/c").read().at({2, 3}), scalar(1));
  EXPECT_EQ(now.at("x/c").read().at({3, 0}), scalar(2));
  EXPECT_EQ(findings_of(file_), "");
}

TEST_F(Transaction, RemovesAttributes) {
  using attribute_list = std::vector<std::pair<std::string, std::string>>;
  transaction change = file_.begin();
  change.create("a", small());
  for (const char* key : {"unit", "author", "note"}) change.set_attribute("a", key, key);
  change.commit();
  const snapshot before = file_.latest();
  transaction next = file_.begin();
  next.remove_attribute("a", "note");
  next.remove_attribute("a", "author");
  EXPECT_EQ(code_of([&] { next.remove_attribute("a", "note"); }), errc::not_found);
  EXPECT_EQ(code_of([&] { next.remove_attribute("b", "unit"); }), errc::not_found);
  const std::string text = text_of([&] { next.remove_attribute("a", "units"); });
  EXPECT_NE(text.find("did you mean 'unit'"), std::string::npos) << text;
  next.commit();
  EXPECT_EQ(file_.latest().at("a").attributes(), (attribute_list{{"unit", "unit"}}));
  EXPECT_EQ(before.at("a").attributes().size(), 3u);
  EXPECT_EQ(findings_of(file_), "");
}

TEST_F(Transaction, KeepsAttributesThroughUpdates) {
  using attribute_list = std::vector<std::pair<std::string, std::string>>;
  for (const array_kind kind : {array_kind::dense, array_kind::chunked}) {
    const std::string name = kind == array_kind::dense ? "d" : "c";
    transaction change = file_.begin();
    change.create(name, small(kind)).write(counting({6, 4}, dtype::int32));
    change.set_attribute(name, "unit", "m");
    change.set_attribute(name, "author", "nobody");
    change.commit();
    transaction next = file_.begin();
    next.update(name).write({{0, 0}, {1, 1}}, tensor::of(std::initializer_list<int>{-5}));
    next.set_attribute(name, "unit", "km");
    next.commit();
    transaction last = file_.begin();
    last.set_attribute(name, "note", "");
    last.commit();
    const array stored = file_.latest().at(name);
    EXPECT_EQ(stored.attributes(),
              (attribute_list{{"author", "nobody"}, {"note", ""}, {"unit", "km"}}));
    EXPECT_EQ(stored.read().at({0, 0}), scalar(-5));
    EXPECT_EQ(stored.read().at({5, 3}), scalar(test::number_at(23)));
  }
  EXPECT_EQ(findings_of(file_), "");
}

TEST_F(Transaction, UpdatesOfOneArrayAreOneUpdate) {
  transaction change = file_.begin();
  change.create("a", small()).write(expr(1));
  change.update("a").write({{0, 0}, {1, 4}}, tensor::of(std::initializer_list<int>{7}));
  change.update("a").write({{1, 0}, {1, 4}}, tensor::of(std::initializer_list<int>{8}));
  change.commit();
  const tensor stored = file_.latest().at("a").read();
  EXPECT_EQ(stored.at({0, 0}), scalar(7));
  EXPECT_EQ(stored.at({1, 0}), scalar(8));
  EXPECT_EQ(stored.at({2, 0}), scalar(1));
}

TEST_F(Transaction, ReadsTheArrayThatItReplaces) {
  // Computes an array from itself: dense and chunked, from the old generation and from the new one.
  for (const array_kind kind : {array_kind::dense, array_kind::chunked}) {
    const std::string name = kind == array_kind::dense ? "d" : "c";
    const dims shape{70, 90};
    const array_spec spec{
        .dtype = dtype::int32,
        .shape = shape,
        .kind = kind,
        .chunk_shape = kind == array_kind::chunked ? std::optional(dims{16, 32}) : std::nullopt};
    transaction change = file_.begin();
    change.create(name, spec).write(counting(shape, dtype::int32));
    change.commit();
    transaction next = file_.begin();
    next.update(name).write(astype(expr(*next.find(name)) + 100, dtype::int32));
    next.update(name).write(astype(expr(*next.find(name)) * 2, dtype::int32));
    next.commit();
    const tensor stored = file_.latest().at(name).read();
    index_t i = 0;
    for (const int value : stored.elements<const int>())
      ASSERT_EQ(value, (test::number_at(i++) + 100) * 2) << name;
  }
}

// Untouched bytes, longer than any file can be.
class untouched_text {
 public:
  explicit untouched_text(std::size_t bytes)
      : bytes_(bytes),
        address_(::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                        0)) {}
  ~untouched_text() { ::munmap(address_, bytes_); }
  untouched_text(const untouched_text&) = delete;
  untouched_text& operator=(const untouched_text&) = delete;
  std::string_view view() const { return {static_cast<const char*>(address_), bytes_}; }

 private:
  std::size_t bytes_;
  void* address_;
};

// A call that refuses its arguments does not change the rest of the transaction.
TEST_F(Transaction, KeepsItsWorkWhenACallRefusesItsArguments) {
  const untouched_text huge((std::size_t{4} << 30) + 7);
  const std::string large(std::size_t{64} << 20, 'x');
  const std::string long_name(1025, 'n');
  const std::vector<std::function<void(transaction&)>> refused{
      [&](auto& change) { change.set_attribute("dense", "note", large); },
      [&](auto& change) { change.set_attribute("chunked", large, "value"); },
      [&](auto& change) { change.set_attribute("dense", "note", huge.view()); },
      [&](auto& change) { change.set_attribute("dense", huge.view(), "value"); },
      [&](auto& change) {
        change.set_attribute("dense", "half", std::string_view(large).substr(1 << 20));
        change.set_attribute("dense", "other half", std::string_view(large).substr(1 << 20));
      },
      [&](auto& change) { change.remove_attribute("dense", huge.view()); },
      [&](auto& change) { change.rename("dense", huge.view()); },
      [&](auto& change) { change.rename("dense", long_name); },
      [&](auto& change) { change.rename("dense", "chunked"); },
      [&](auto& change) { change.rename(huge.view(), "new"); },
      [&](auto& change) { change.remove(huge.view()); },
      [&](auto& change) { change.update(huge.view()); },
      [&](auto& change) { change.create(huge.view(), small()); },
      [&](auto& change) { change.create("a", {.shape = {index_t{1} << 60}}); },
      [&](auto& change) { change.create("a", {.shape = {index_t{1} << 52}}); },
      [&](auto& change) { change.create("a", {.shape = {-1}}); },
      [&](auto& change) {
        change.create("a", {.shape = {index_t{1} << 62, 8}, .kind = array_kind::chunked});
      },
      [&](auto& change) {
        change.create("a", {.shape = {4}, .kind = array_kind::chunked, .chunk_shape = dims{0}});
      },
      [&](auto& change) {
        change.create("a", {.shape = {4}, .kind = array_kind::chunked, .chunk_shape = dims{2, 2}});
      },
      [&](auto& change) {
        change.create(
            "a", {.shape = {4}, .kind = array_kind::chunked, .codec = {.compression = zstd(1000)}});
      },
      [&](auto& change) {
        change.update("dense").write({{0, 0}, {7, 4}}, counting({7, 4}, dtype::int32));
      },
      [&](auto& change) {
        change.update("chunked").write({{0, 0}, {6, 4}}, counting({5}, dtype::int32));
      },
      [&](auto& change) {
        change.update("chunked").write({{0}, {6}}, counting({6}, dtype::int32));
      },
      [&](auto& change) { change.update("chunked").write(expr(counting({5}, dtype::int32))); },
      [&](auto& change) { change.update("dense").write(expr(counting({5}, dtype::int32))); },
      [&](auto& change) { change.update("chunked").map(); },
  };
  for (std::size_t i = 0; i < refused.size(); ++i) {
    SCOPED_TRACE(i);
    {
      transaction change = file_.begin();
      change.create("dense", small()).write(counting({6, 4}, dtype::int32));
      change.create("chunked", small(array_kind::chunked)).write(counting({6, 4}, dtype::int32));
      const errc code = code_of([&] { refused[i](change); });
      EXPECT_TRUE(code == errc::invalid_argument || code == errc::not_found ||
                  code == errc::already_exists || code == errc::out_of_space)
          << text_of([&] { refused[i](change); });
      change.create("after", small()).write(counting({6, 4}, dtype::int32));
      EXPECT_EQ(text_of([&] { change.commit(); }), "");
    }
    const snapshot now = file_.latest();
    for (const char* name : {"dense", "chunked", "after"})
      EXPECT_TRUE(equal_bits(now.at(name).read(), counting({6, 4}, dtype::int32))) << name;
    EXPECT_EQ(findings_of(file_), "");
    transaction change = file_.begin();
    for (const auto& name : now.names()) change.remove(name);
    change.commit();
  }
}

array_spec large(array_kind kind) {
  return {.dtype = dtype::float32, .shape = {1 << 20}, .kind = kind};
}

// change.6
TEST_F(Transaction, IsNotCommittedFromInsideItsOwnWrite) {
  const test::hang_alarm limit;
  for (const auto kind : {array_kind::dense, array_kind::chunked})
    for (const int threads : {1, 3}) {
      transaction change = file_.begin();
      const writable_array into = change.create("a", large(kind));
      std::string refused;
      test::calling_sink sink([&] { refused = text_of([&] { change.commit(); }); });
      executor on({.threads = threads, .progress = &sink});
      const executor::scope within(on);
      into.write(expr(2.0));
      EXPECT_TRUE(sink.called());
      EXPECT_NE(refused.find("[invalid_argument]"), std::string::npos) << refused;
      change.commit();  // after the write, commit works as usual
      EXPECT_EQ(at("a").read().at({(1 << 20) - 1}), scalar(2.0));
      transaction next = file_.begin();
      next.remove("a");
      next.commit();
    }
}

TEST_F(Transaction, IsAbortedFromInsideItsOwnWrite) {
  const test::hang_alarm limit;
  for (const auto kind : {array_kind::dense, array_kind::chunked})
    for (const int threads : {1, 3})
      for (const bool destroyed : {false, true}) {
        std::optional<transaction> change = file_.begin();
        const writable_array into = change->create("a", large(kind));
        test::calling_sink sink([&] { destroyed ? change.reset() : change->abort(); });
        executor on({.threads = threads, .progress = &sink});
        const executor::scope within(on);
        EXPECT_EQ(code_of([&] { into.write(expr(2.0)); }), errc::invalid_argument);
        EXPECT_TRUE(sink.called());
        // The writer lock is free, because the end of the write completed the abort.
        transaction next = file_.begin(no_wait);
        EXPECT_FALSE(next.find("a"));
        if (change) {
          EXPECT_EQ(code_of([&] { change->commit(); }), errc::invalid_argument);
        }
        EXPECT_NE(code_of([&] { into.write(expr(2.0)); }), errc{});
      }
  EXPECT_EQ(findings_of(file_), "");
}

TEST_F(Transaction, IsAbortedFromInsideItsOwnAppend) {
  const test::hang_alarm limit;
  for (const auto kind : {array_kind::dense, array_kind::chunked})
    for (const int threads : {1, 3})
      for (const bool destroyed : {false, true}) {
        std::optional<transaction> change = file_.begin();
        change->create("a", {.dtype = dtype::float32, .shape = {100}, .kind = kind});
        test::calling_sink sink([&] { destroyed ? change.reset() : change->abort(); });
        executor on({.threads = threads, .progress = &sink});
        const executor::scope within(on);
        EXPECT_EQ(code_of([&] { change->append("a", expr(2.0).broadcast_to({1 << 20})); }),
                  errc::invalid_argument);
        EXPECT_TRUE(sink.called());
        transaction next = file_.begin(no_wait);
        EXPECT_FALSE(next.find("a"));
      }
  EXPECT_EQ(findings_of(file_), "");
}

// Another thread's abort waits for the write, which throws.
TEST_F(Transaction, AbortedByAnotherThreadMakesItsWritesThrow) {
  const test::hang_alarm limit;
  for (const auto kind : {array_kind::dense, array_kind::chunked})
    for (const bool region : {false, true}) {
      transaction change = file_.begin();
      const writable_array into = change.create("a", large(kind));
      std::thread other;
      test::calling_sink sink([&] {
        other = std::thread([&] { change.abort(); });
        while (code_of([&] { change.find("a"); }) == errc{}) std::this_thread::yield();
      });
      executor on({.threads = 2, .progress = &sink});
      const executor::scope within(on);
      const errc code = code_of([&] {
        if (region) into.write({{0}, {1 << 20}}, test::seeded({1 << 20}, 1));
        else into.write(expr(2.0));
      });
      other.join();
      EXPECT_EQ(code, errc::invalid_argument);
      EXPECT_EQ(file_.latest().names(), std::vector<std::string>{});
    }
}

// Another thread's commit waits for the write, which ends by the abort from inside it.
TEST_F(Transaction, IsNotCommittedOnceAWriteAbortedIt) {
  const test::hang_alarm limit;
  transaction change = file_.begin();
  const writable_array into = change.create("a", large(array_kind::chunked));
  std::string refused;
  std::thread other;
  test::calling_sink sink([&] {
    other = std::thread([&] { refused = text_of([&] { change.commit(); }); });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // most likely it waits by now
    change.abort();
  });
  executor on({.threads = 2, .progress = &sink});
  const executor::scope within(on);
  code_of([&] { into.write(expr(2.0)); });
  other.join();
  EXPECT_NE(refused.find("[invalid_argument]"), std::string::npos) << refused;
  EXPECT_EQ(file_.latest().names(), std::vector<std::string>{});
  file_.begin(no_wait).abort();
}

// The number of bytes that this process has passed to system calls that write.
std::uint64_t bytes_written() {
  std::ifstream counters("/proc/self/io");
  for (std::string name; counters >> name;) {
    std::uint64_t count = 0;
    counters >> count;
    if (name == "wchar:") return count;
  }
  return 0;
}

TEST_F(Transaction, OneChunkAmongTenThousandArraysCostsAFewPages) {
  constexpr int arrays = 10'000;
  {
    transaction change = file_.begin();
    for (int i = 0; i < arrays; ++i)
      change
          .create("group/" + std::to_string(i), {.dtype = dtype::uint8,
                                                 .shape = {64},
                                                 .kind = array_kind::chunked,
                                                 .chunk_shape = dims{8}})
          .write({{0}, {8}}, counting({8}, dtype::uint8));
    change.commit();
  }
  EXPECT_EQ(file_.verify().arrays, static_cast<std::uint64_t>(arrays));
  for (const int element : {0, 4711, 9999}) {
    transaction change = file_.begin();
    change.update("group/" + std::to_string(element))
        .write({{8}, {8}}, counting({8}, dtype::uint8));
    const std::uint64_t before = bytes_written();
    change.commit();
    // Measured: 26,112 bytes, which is six pages and the superblocks' sectors.
    EXPECT_LE(bytes_written() - before, 2 * 26'112u);
    EXPECT_GE(bytes_written() - before, 4u * 4096);
  }
  EXPECT_EQ(findings_of(file_), "");
}

}  // namespace
}  // namespace shale
