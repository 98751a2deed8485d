// Tests children that are forked while other threads of the parent run a transaction.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdio>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "array/test_support.hpp"
#include "shale/apply.hpp"
#include "shale/container.hpp"
#include "shale/evaluate.hpp"
#include "shale/for_each.hpp"
#include "shale/functions.hpp"
#include "shale/linalg.hpp"
#include "shale/mapped_file.hpp"
#include "shale/ops.hpp"
#include "shale/print.hpp"
#include "shale/reduce.hpp"
#include "shale/tile_source.hpp"
#include "support/bounded.hpp"

namespace shale {
namespace {

using test::findings_of;

// A tile source of zeros that waits until the test lets it go on.
class held_back final : public tile_source {
 public:
  explicit held_back(dims shape) : shape_(std::move(shape)) {}

  shale::dtype dtype() const noexcept override { return shale::dtype::int32; }
  const dims& shape() const noexcept override { return shape_; }
  const dims& tile_shape() const noexcept override { return shape_; }
  std::uint64_t stored_bytes(const dims&) const override { return 0; }

  void load(const dims&, const tensor& into) const override {
    std::unique_lock lock(mutex_);
    asked_ = true;
    changed_.notify_all();
    changed_.wait(lock, [&] { return let_; });
    fill(into, 0);
  }

  void wait_until_asked() const {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return asked_; });
  }

  void let() {
    const std::lock_guard lock(mutex_);
    let_ = true;
    changed_.notify_all();
  }

 private:
  const dims shape_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  mutable bool asked_ = false;
  bool let_ = false;
};

class ForkedChild : public test::fresh_container {};

TEST_F(ForkedChild, LeavesATransactionAloneThatAnotherThreadEnds) {
  const dims shape{8, 8};
  std::optional<transaction> change = file_.begin();
  const writable_array a = change->create("a", {.dtype = dtype::int32, .shape = shape});
  const auto zeros = std::make_shared<held_back>(shape);
  std::thread writer([&] { a.write(expr(zeros)); });
  zeros->wait_until_asked();
  std::thread ender([&] { change->commit(); });
  // A commit that has begun refuses new writes, and waits for the running one.
  const tensor none = tensor::zeros(shape, dtype::int32);
  try {
    for (;;) a.write(none);
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::invalid_argument) << failure.what();
  }

  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);  // ends the child if it waits for a thread that it does not have
    change.reset();
    ::_exit(0);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;

  zeros->let();
  writer.join();
  ender.join();
  EXPECT_TRUE(equal_bits(at("a").read(), none));
  EXPECT_EQ(findings_of(file_), "");
}

// ---- every way to bytes that a child does not inherit -------------------------------------------

struct way {
  const char* name;
  std::function<void()> go;
};

// Runs each call in its own child, which ends with 0 if the call throws `code` and names `path`. It
// starts no thread: a child has only the thread that forked.
void expect_refused_in_children(const std::vector<way>& ways, errc code, const std::string& path) {
  for (const way& tried : ways) {
    const pid_t child = ::fork();
    if (child == 0) {
      executor one({.threads = 1});
      const executor::scope within(one);
      const test::outcome ended = test::outcome_of([&] { tried.go(); });
      const bool so = ended.code == code && ended.text.find(path) != std::string::npos;
      if (!so) std::fprintf(stderr, "%s: %s\n", tried.name, ended.text.c_str());
      ::_exit(so ? 0 : 1);
    }
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
        << tried.name << " ended with status " << status;
  }
}

std::vector<way> ways_to_elements(const tensor& t, const tensor& other) {
  return {
      {"eval_into", [&] { eval_into(t, expr(1.0)); }},
      {"eval_into of a view", [&] { eval_into(t.select(0, 1), expr(1.0)); }},
      {"eval", [&] { eval(expr(t) + 1); }},
      {"eval of a transposed copy", [&] { eval(expr(t.swapaxes(0, 1))); }},
      {"sum", [&] { eval(sum(expr(t))); }},
      {"equal", [&] { static_cast<void>(array_equal(expr(t), expr(other))); }},
      {"fill", [&] { fill(t, 3); }},
      {"copy to", [&] { copy(t, expr(other)); }},
      {"copy from", [&] { copy(other.clone(), expr(t)); }},
      {"apply", [&] { apply([](float& x) { x = 1; }, t); }},
      {"apply_into",
       [&] {
         apply_into(
             other.clone(), [](float x) { return x; }, t);
       }},
      {"reduce",
       [&] {
         reduce(
             t, 0.0, [](double& sum, float x) { sum += x; },
             [](double& sum, double more) { sum += more; });
       }},
      {"for_each_segment",
       [&] { for_each_segment<float>([](std::span<float> run) { run[0] = 1; }, t); }},
      {"for_each_lane",
       [&] {
         for_each_lane<const float>(
             1, [](lane<const float>) {}, t);
       }},
      {"matmul", [&] { matmul(t, other); }},
      {"dot", [&] { dot(t.select(0, 0), other.select(0, 0)); }},
      {"elements", [&] { static_cast<void>(t.elements<const float>()); }},
      {"as", [&] { static_cast<void>(t.as<float, 2>()); }},
      {"at",
       [&] {
         static_cast<void>(t.at({1, 1}));
       }},
      {"item", [&] { static_cast<void>(t.select(0, 1).select(0, 1).item()); }},
      {"set",
       [&] {
         tensor(t).set({1, 1}, 1);
       }},
      {"clone", [&] { t.clone(); }},
      {"contiguous", [&] { t.swapaxes(0, 1).contiguous(); }},
      {"reshape", [&] { t.swapaxes(0, 1).reshape({t.size()}); }},
      {"equal_bits", [&] { static_cast<void>(equal_bits(t, other)); }},
      {"equal_bits with itself", [&] { static_cast<void>(equal_bits(t, t)); }},
      {"to_string", [&] { to_string(t); }},
      {"check", [&] { t.storage().check(); }},
      {"flush", [&] { t.storage().flush(); }},
      {"populate",
       [&] {
         t.storage().populate({0, 1});
       }},
  };
}

TEST_F(ForkedChild, HasNoWayToTheBytesOfAWritableMapping) {
  test::expect_to_end([&] {
    const dims shape{64, 64};
    const std::string path = directory_ / "mapped";
    storage mapped = create_file(path, 64 * 64 * sizeof(float));
    const tensor elements(mapped, dtype::float32, layout(shape));
    const tensor other = test::counting(shape, dtype::float32);
    expect_refused_in_children(ways_to_elements(elements, other), errc::unsupported, path);
    // The parent still has the bytes.
    EXPECT_EQ(elements.at({1, 1}).to<float>(), 0);
    mapped.check();
  });
}

TEST_F(ForkedChild, HasNoWayToTheBytesOfATransaction) {
  test::expect_to_end([&] {
    const dims shape{64, 64};
    const tensor values = test::counting(shape, dtype::float32);
    executor one({.threads = 1});
    const executor::scope within(one);
    transaction change = file_.begin();
    const writable_array mapped =
        change.create("mapped", {.dtype = dtype::float32, .shape = shape});
    mapped.write(expr(values));
    const writable_array unused =
        change.create("unused", {.dtype = dtype::float32, .shape = shape});
    const tensor elements = mapped.map();
    const std::optional<array> found = change.find("mapped");
    expect_refused_in_children(ways_to_elements(elements, values), errc::unsupported, path_);
    expect_refused_in_children(
        {
            {"write an expression", [&] { mapped.write(expr(values)); }},
            {"write a region",
             [&] {
               mapped.write({{1, 1}, {2, 2}}, tensor::zeros({2, 2}, dtype::float32));
             }},
            {"map", [&] { mapped.map(); }},
            {"read what was found", [&] { found->read(); }},
            {"read a part of it",
             [&] {
               found->read(region{{1, 1}, {2, 2}});
             }},
            {"compute with it", [&] { eval(expr(*found) + 1); }},
        },
        errc::unsupported, path_);
    // Nothing is mapped here, but the transaction belongs to the parent.
    expect_refused_in_children(
        {
            {"write what was not mapped", [&] { unused.write(expr(values)); }},
            {"map what was not mapped", [&] { unused.map(); }},
        },
        errc::invalid_argument, path_);
    EXPECT_TRUE(equal_bits(elements, values));
    elements.storage().check();
  });
}

}  // namespace
}  // namespace shale
