// Tests threads of one process on one container; this also runs under a race detector.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <latch>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "array/test_support.hpp"
#include "shale/container.hpp"
#include "shale/executor.hpp"
#include "shale/ops.hpp"
#include "shale/tile_source.hpp"
#include "support/bounded.hpp"

namespace shale {
namespace {

using test::counting;
using test::findings_of;

class Concurrency : public test::fresh_container {
 protected:
  // Runs `body(thread)` on several threads at once; an exception fails the test.
  template <class Body>
  void on_threads(int count, Body body) {
    std::vector<std::thread> threads;
    for (int t = 0; t < count; ++t)
      threads.emplace_back([&, t] {
        try {
          body(t);
        } catch (const error& failure) {
          ADD_FAILURE() << failure.what();
        }
      });
    for (auto& thread : threads) thread.join();
  }
};

// change.1
TEST_F(Concurrency, DifferentArraysAndChunksAreWrittenAtOnce) {
  const dims shape{64, 60};
  transaction change = file_.begin();
  std::vector<writable_array> arrays;
  for (int i = 0; i < 4; ++i)
    arrays.push_back(
        change.create(std::to_string(i),
                      {.dtype = dtype::int32,
                       .shape = shape,
                       .kind = i % 2 == 0 ? array_kind::chunked : array_kind::dense,
                       .chunk_shape = i % 2 == 0 ? std::optional(dims{8, 60}) : std::nullopt}));
  on_threads(4, [&](int t) {
    for (int i = 0; i < 4; ++i)
      for (index_t row = t * 16; row < t * 16 + 16; row += 8) {
        const tensor values = counting(shape, dtype::int32).narrow(0, row, 8);
        arrays[static_cast<std::size_t>(i)].write({{row, 0}, {8, 60}}, values);
      }
  });
  change.commit();
  for (int i = 0; i < 4; ++i)
    EXPECT_TRUE(
        equal_bits(file_.latest().at(std::to_string(i)).read(), counting(shape, dtype::int32)));
  EXPECT_EQ(findings_of(file_), "");
}

// change.2
TEST_F(Concurrency, EndsOfTransactionsWaitForChunksThatAreBeingWritten) {
  for (int round = 0; round < 200; ++round) {
    transaction change = file_.begin();
    const writable_array a = round == 0 ? change.create("a", {.dtype = dtype::int32,
                                                              .shape = {64, 4096},
                                                              .kind = array_kind::chunked,
                                                              .chunk_shape = dims{8, 4096}})
                                        : change.update("a");
    const tensor values = counting({8, 4096}, dtype::int32);
    std::atomic<int> writing = 0;
    on_threads(3, [&](int t) {
      if (t == 0) {
        while (writing < 2) std::this_thread::yield();
        if (round % 2 == 0) change.commit();
        else change.abort();
        return;
      }
      const auto tiles = a.tiles();
      ++writing;
      try {
        for (index_t row = t - 1;; row = (row + 2) % 8) tiles->store({row, 0}, values);
      } catch (const error& failure) {
        EXPECT_EQ(failure.code(), errc::invalid_argument) << failure.what();
      }
    });
    EXPECT_EQ(findings_of(file_), "") << round;
  }
}

// Writes of many chunks keep the objects that they use, even if the transaction ends meanwhile.
TEST_F(Concurrency, TransactionsEndInTheMiddleOfWrites) {
  for (int round = 0; round < 20; ++round) {
    transaction change = file_.begin();
    const writable_array a =
        change.create("a" + std::to_string(round), {.dtype = dtype::int32,
                                                    .shape = {512, 64},
                                                    .kind = array_kind::chunked,
                                                    .chunk_shape = dims{4, 64}});
    const tensor values = counting({512, 64}, dtype::int32);
    std::atomic<int> writing = 0;
    on_threads(3, [&](int t) {
      if (t == 0) {
        while (writing < 2) std::this_thread::yield();
        if (round % 4 == 0) change.commit();
        else if (round % 4 == 1) change.abort();
        else change.remove("a" + std::to_string(round));
        return;
      }
      executor own({.threads = 1});
      const executor::scope within(own);
      ++writing;
      try {
        for (;;) {
          if (round % 2 == 0) a.write(region{{0, 0}, {512, 64}}, values);
          else a.write(expr(values));
        }
      } catch (const error& failure) {
        EXPECT_TRUE(failure.code() == errc::invalid_argument || failure.code() == errc::not_found)
            << failure.what();
      }
    });
    if (round % 4 > 1) change.abort();
    EXPECT_EQ(findings_of(file_), "") << round;
  }
}

// change.2: a commit contains a write as a whole or not at all, for dense and chunked arrays.
TEST_F(Concurrency, WritesAreWhollyInACommitOrRefused) {
  const dims shape{256, 256};
  for (int round = 0; round < 10; ++round) {
    transaction change = file_.begin();
    std::vector<writable_array> arrays;
    for (const bool chunked : {false, true})
      arrays.push_back(
          change.create(std::to_string(round) + (chunked ? "c" : "d"),
                        {.dtype = dtype::int32,
                         .shape = shape,
                         .kind = chunked ? array_kind::chunked : array_kind::dense,
                         .chunk_shape = chunked ? std::optional(dims{8, 64}) : std::nullopt}));
    std::atomic<int> writing = 0;
    on_threads(3, [&](int t) {
      if (t == 0) {
        while (writing < 2) std::this_thread::yield();
        change.commit();
        return;
      }
      executor own({.threads = 1});
      const executor::scope within(own);
      try {
        for (int value = 1;; ++value, ++writing)
          arrays[static_cast<std::size_t>(t - 1)].write(full(shape, value));
      } catch (const error& failure) {
        EXPECT_EQ(failure.code(), errc::invalid_argument) << failure.what();
      }
    });
    for (const auto& array : arrays) {
      const tensor read = file_.latest().at(array.name()).read();
      EXPECT_TRUE(
          equal_bits(read, read.narrow(0, 0, 1).narrow(1, 0, 1).broadcast_to(shape).clone()))
          << array.name();
    }
    EXPECT_EQ(findings_of(file_), "") << round;
  }
}

// Zeros whose tile source waits until the test lets it go on, and then runs a function of the test.
// With a code for an error, there are none: loading them fails then.
class calling_values final : public tile_source {
 public:
  calling_values(dims shape, std::function<void()> calls, errc failure = errc{})
      : shape_(std::move(shape)), calls_(std::move(calls)), failure_(failure) {}

  shale::dtype dtype() const noexcept override { return shale::dtype::int32; }
  const dims& shape() const noexcept override { return shape_; }
  const dims& tile_shape() const noexcept override { return shape_; }
  std::uint64_t stored_bytes(const dims&) const override { return 0; }
  void load(const dims&, const tensor& into) const override {
    std::call_once(once_, [&] {
      asked_.count_down();
      let_.wait();
      calls_();
    });
    if (failure_ != errc{}) throw error(failure_, "no values today");
    fill(into, 0);
  }

  void wait_until_asked() const { asked_.wait(); }
  void let() const { let_.count_down(); }

 private:
  const dims shape_;
  const std::function<void()> calls_;
  const errc failure_;
  mutable std::once_flag once_;
  mutable std::latch asked_{1};
  mutable std::latch let_{1};
};

// change.2: an array that is made of values is in a commit with all of them, or is not made at all.
TEST_F(Concurrency, ACommitHasArraysWithTheirValuesOrAsTheyWere) {
  const test::hang_alarm limit;
  const dims shape{8, 8};
  const tensor old = counting(shape, dtype::int32);
  const tensor zeros = tensor::zeros(shape, dtype::int32);
  for (int round = 0; round < 8; ++round) {
    SCOPED_TRACE(round);
    const bool fails = round % 2 == 0, replaces = round / 2 % 2 == 0;
    const array_kind kind = round < 4 ? array_kind::dense : array_kind::chunked;
    const std::string name = std::to_string(round);
    transaction change = file_.begin();
    if (replaces) change.create(name, old);
    const auto values = std::make_shared<calling_values>(
        shape, [] {}, fails ? errc::corrupt : errc{});
    errc made{}, committed{};
    std::thread maker([&] {
      made = test::code_of([&] {
        if (replaces) change.create_or_replace(name, expr(values), {.kind = kind});
        else change.create(name, expr(values), {.kind = kind});
      });
    });
    values->wait_until_asked();
    std::thread ender([&] { committed = test::code_of([&] { change.commit(); }); });
    // Once names are refused, the commit has begun, and it waits for the call.
    while (test::code_of([&] { change.names(); }) == errc{}) std::this_thread::yield();
    values->let();
    maker.join();
    ender.join();
    EXPECT_EQ(made, fails ? errc::corrupt : errc{});
    EXPECT_EQ(committed, errc{});
    const snapshot now = file_.latest();
    EXPECT_EQ(now.names(".new"), std::vector<std::string>());
    const std::optional<array> found = now.find(name);
    ASSERT_EQ(found.has_value(), replaces || !fails);
    if (found) {
      EXPECT_TRUE(equal_bits(found->read(), fails ? old : zeros));
    }
  }
  EXPECT_EQ(findings_of(file_), "");
}

// Waits in its first report until the test lets it go on.
class waiting_sink final : public progress_sink {
 public:
  void advance(std::uint64_t, std::uint64_t) override {
    std::call_once(once_, [&] {
      asked_.count_down();
      let_.wait();
    });
  }
  void wait_until_asked() const { asked_.wait(); }
  void let() { let_.count_down(); }

 private:
  std::once_flag once_;
  std::latch asked_{1};
  std::latch let_{1};
};

// change.2: the same for a copy, which has attributes too.
TEST_F(Concurrency, ACommitHasCopiesWithTheirAttributes) {
  const test::hang_alarm limit;
  const tensor values = counting({64}, dtype::int32);
  write_new(
      "a",
      {.dtype = dtype::int32, .shape = {64}, .kind = array_kind::chunked, .chunk_shape = dims{16}},
      expr(values));
  transaction noted = file_.begin();
  noted.set_attribute("a", "unit", "m");
  noted.commit();
  const array from = at("a");
  transaction change = file_.begin();
  waiting_sink sink;
  errc copied{}, committed{};
  std::thread copier([&] {
    executor on({.threads = 1, .progress = &sink});
    const executor::scope within(on);
    copied = test::code_of([&] { change.create_copy("b", from); });
  });
  sink.wait_until_asked();
  std::thread ender([&] { committed = test::code_of([&] { change.commit(); }); });
  // Once names are refused, the commit has begun, and it waits for the copy.
  while (test::code_of([&] { change.names(); }) == errc{}) std::this_thread::yield();
  sink.let();
  copier.join();
  ender.join();
  EXPECT_EQ(copied, errc{});
  EXPECT_EQ(committed, errc{});
  const std::optional<array> copy = file_.latest().find("b");
  ASSERT_TRUE(copy.has_value());
  EXPECT_EQ(copy->attribute("unit"), "m");
  EXPECT_TRUE(equal_bits(copy->read(), values));
  EXPECT_EQ(findings_of(file_), "");
}

// change.6: the thread that ends the transaction waits for the write that the calls come from.
TEST_F(Concurrency, CallsFromInsideAWriteAreToldThatAnotherThreadEndsTheTransaction) {
  using ending = std::function<void(transaction&)>;
  const dims shape{8, 8};
  const array_spec spec{
      .dtype = dtype::int32, .shape = shape, .kind = array_kind::chunked, .chunk_shape = shape};
  const tensor zeros = tensor::zeros(shape, dtype::int32);
  const std::string copy = directory_ / "copy.shale";
  test::expect_to_end([&] {
    for (const char* const name : {"a", "b", "c"}) write_new(name, spec, zeros);
    container::create(copy);
    for (const ending& end : {ending([](transaction& change) { change.commit(); }),
                              ending([](transaction& change) { change.abort(); }),
                              ending([&](transaction& change) { change.replace_by(copy); })}) {
      transaction change = file_.begin();
      const writable_array written = change.update("a");
      const std::vector<std::function<void()>> calls{
          [&] { change.create("new", spec); },
          [&] { change.update("c"); },
          [&] { change.remove("c"); },
          [&] { change.rename("c", "d"); },
          [&] {
            change.resize("c", {4, 8});
          },
          [&] { change.append("c", zeros); },
          [&] { change.set_attribute("c", "key", "value"); },
          [&] { change.remove_attribute("c", "key"); },
      };
      std::vector<errc> codes;
      const auto values = std::make_shared<calling_values>(shape, [&] {
        for (const auto& call : calls) codes.push_back(test::code_of(call));
      });
      std::thread writer([&] { test::code_of([&] { written.write(expr(values)); }); });
      values->wait_until_asked();
      std::thread ender([&] { end(change); });
      // Once changes are refused, the end has begun, and it waits for the running write.
      const auto change_more = [&] { change.set_attribute("b", "key", "value"); };
      while (test::code_of(change_more) == errc{}) std::this_thread::yield();
      values->let();
      writer.join();
      ender.join();
      EXPECT_EQ(codes, std::vector<errc>(calls.size(), errc::invalid_argument));
    }
    EXPECT_EQ(findings_of(container::open(path_)), "");
  });
}

// change.5: copies and checksums of dense arrays need the threads that write and read chunks.
TEST_F(Concurrency, UpdatesAndCommitsNeedNoThreadThatWritesChunks) {
  const dims shape{512, 64};
  const dims dense_shape{3, 512, 512};
  const tensor values = counting(shape, dtype::int32);
  const tensor dense = counting(dense_shape, dtype::int32);
  {
    transaction change = file_.begin();
    change.create("chunked", {.dtype = dtype::int32,
                              .shape = shape,
                              .kind = array_kind::chunked,
                              .chunk_shape = dims{4, 64}});
    for (int i = 0; i < 8; ++i)
      change.create("d" + std::to_string(i), {.dtype = dtype::int32, .shape = dense_shape})
          .write(dense);
    change.commit();
  }
  for (int round = 0; round < 4; ++round) {
    transaction change = file_.begin();
    const writable_array chunked = change.update("chunked");
    chunked.write(values);
    const std::optional<array> reading = change.find("chunked");
    std::atomic<int> running = 0;
    on_threads(3, [&](int t) {
      if (t == 0) {
        while (running < 2) std::this_thread::yield();
        for (int i = 0; i < 8; ++i) change.update("d" + std::to_string(i)).map();
        change.commit();
        return;
      }
      try {
        for (;; ++running) {
          if (t == 1) chunked.write(values);
          else EXPECT_TRUE(equal_bits(reading->read(), values));
        }
      } catch (const error& failure) {
        EXPECT_EQ(failure.code(), errc::invalid_argument) << failure.what();
      }
    });
    EXPECT_TRUE(equal_bits(file_.latest().at("chunked").read(), values));
    EXPECT_TRUE(equal_bits(file_.latest().at("d7").read(), dense));
    EXPECT_EQ(findings_of(file_), "") << round;
  }
}

// Many threads add and remove arrays; the transaction lets one at a time do so.
TEST_F(Concurrency, ChangesOfArraysTakeTurns) {
  const dims shape{512, 1024};
  const tensor values = counting(shape, dtype::int32);
  {
    transaction change = file_.begin();
    change.create("a", {.dtype = dtype::int32, .shape = shape}).write(values);
    change.create("b", {.dtype = dtype::int32, .shape = shape}).write(values);
    change.commit();
  }
  for (int round = 0; round < 8; ++round) {
    transaction change = file_.begin();
    const std::string label = std::to_string(round);
    on_threads(5, [&](int t) {
      if (t == 0) change.update("a").map();
      if (t == 1) change.set_attribute("a", label, label);
      if (t == 2) change.remove("b");
      if (t == 3) change.create("new" + label, {.dtype = dtype::int32, .shape = shape});
      if (t == 4) {
        EXPECT_EQ(change.names({}, {}, 1), std::vector<std::string>{"a"});
      }
    });
    change.create("b", {.dtype = dtype::int32, .shape = shape}).write(values);
    change.commit();
    const snapshot now = file_.latest();
    EXPECT_TRUE(equal_bits(now.at("a").read(), values)) << round;
    EXPECT_TRUE(equal_bits(now.at("b").read(), values)) << round;
    EXPECT_EQ(now.at("a").attributes().size(), static_cast<std::size_t>(round) + 1);
    EXPECT_EQ(findings_of(file_), "") << round;
  }
}

TEST_F(Concurrency, OneSnapshotServesManyThreads) {
  const tensor dense = counting({300, 100}, dtype::int64);
  {
    transaction change = file_.begin();
    change.create("d", {.dtype = dtype::int64, .shape = {300, 100}}).write(dense);
    change
        .create("c", {.dtype = dtype::int64,
                      .shape = {300, 100},
                      .kind = array_kind::chunked,
                      .chunk_shape = dims{32, 32}})
        .write(dense);
    change.commit();
  }
  const snapshot now = file_.latest();
  const array d = now.at("d");
  const array c = now.at("c");
  on_threads(4, [&](int t) {
    for (int round = 0; round < 10; ++round) {
      const region part{{t * 20 + round, 3}, {50, 90}};
      const tensor wanted = dense.narrow(0, part.start[0], 50).narrow(1, 3, 90);
      EXPECT_TRUE(equal_bits(c.read(part), wanted));
      EXPECT_TRUE(equal_bits(d.read(part), wanted));
      EXPECT_TRUE(equal_bits(d.map(), dense));
      EXPECT_EQ(now.names().size(), 2u);
      EXPECT_TRUE(now.find("c"));
    }
  });
}

TEST_F(Concurrency, ReadersNeverWaitForTheWriterNorSeeHalfOfIt) {
  constexpr int generations = 20;
  const auto write = [&](double value) {
    transaction change = file_.begin();
    for (const char* name : {"d", "c"}) {
      if (value == 0)
        change.create(name, {.shape = {64, 64},
                             .kind = name[0] == 'd' ? array_kind::dense : array_kind::chunked});
      change.update(name).write(expr(value));
    }
    change.commit();
  };
  write(0);
  std::atomic<bool> done = false;
  on_threads(4, [&](int t) {
    if (t == 0) {
      for (int i = 1; i <= generations; ++i) write(i);
      done = true;
      return;
    }
    if (t == 1) {
      std::uint64_t seen = 0;
      while (seen < 2 + generations) seen = file_.wait_newer(seen, {30'000}).value();
      return;
    }
    std::vector<std::pair<double, tensor>> held;
    while (!done) {
      const snapshot now = file_.latest();
      const auto value = static_cast<double>(now.generation()) - 2;
      const tensor view = now.at("d").map();
      EXPECT_EQ(view.at({0, 0}), scalar(value));
      EXPECT_EQ(view.at({63, 63}), scalar(value));
      EXPECT_EQ(now.at("c").read({{5, 5}, {1, 1}}).item(), scalar(value));
      if (held.empty() || held.back().first != value) held.emplace_back(value, view);
    }
    for (const auto& [value, view] : held) EXPECT_EQ(view.at({17, 4}), scalar(value));
  });
  EXPECT_EQ(findings_of(file_), "");
}

TEST_F(Concurrency, WritersTakeTurns) {
  on_threads(4, [&](int t) {
    container own = container::open(path_, open_mode::write);
    for (int i = 0; i < 5; ++i) {
      transaction change = t % 2 == 0 ? own.begin({60'000}) : file_.begin({60'000});
      change.create(std::to_string(t) + "/" + std::to_string(i), {.shape = {10}}).write(expr(i));
      change.commit();
    }
  });
  EXPECT_EQ(file_.latest().generation(), 21u);
  EXPECT_EQ(file_.latest().names().size(), 20u);
  EXPECT_EQ(findings_of(file_), "");
}

}  // namespace
}  // namespace shale
