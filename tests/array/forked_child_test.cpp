// Tests children that are forked while other threads of the parent run a transaction.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <iterator>
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
#include "support/allocation_turns.hpp"
#include "support/bounded.hpp"
#include "support/child_threads.hpp"
#include "support/closed_streams.hpp"
#include "support/instrumented.hpp"

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
    test::start_no_housekeeper();
    const test::hang_alarm limit;  // the child may wait for a thread that it does not have
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

// A copy of the container takes the name before the parent's commit is published. What a child
// commits to the copy would be durable without it.
TEST_F(ForkedChild, BeginsNothingAfterACommitOfItsParentThatFailed) {
  const std::string copy = directory_ / "copy.shale";
  std::filesystem::copy_file(path_, copy);
  transaction change = file_.begin();
  change.create("a", {.dtype = dtype::int32, .shape = {6}, .kind = array_kind::chunked});
  std::filesystem::rename(copy, path_);
  const pending_commit lost = change.commit_async();
  EXPECT_EQ(test::code_of([&] { lost.wait(); }), errc::io);
  const pid_t child = ::fork();
  if (child == 0) {
    test::start_no_housekeeper();
    const test::hang_alarm limit;
    ::_exit(test::code_of([&] { file_.begin(); }) == errc::io ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST_F(ForkedChild, WithoutStandardStreamsPrintsIntoNoContainer) {
  const tensor values = test::counting({1000}, dtype::int64);
  for (unsigned closed = 1; closed <= test::closed_streams::all; ++closed) {
    SCOPED_TRACE(closed);
    const std::string path = directory_ / (std::to_string(closed) + ".shale");
    EXPECT_TRUE(test::runs_without_streams(closed, [&](const test::closed_streams& streams) {
      container made = container::create(path);
      streams.print();
      transaction change = made.begin();
      streams.print();
      change.create("a", expr(values));
      streams.print();
      change.commit();
      streams.print();
    }));
    const container file = container::open(path);
    EXPECT_EQ(findings_of(file), "");
    EXPECT_TRUE(equal_bits(file.latest().at("a").read(), values));
  }
}

// The child destroys its handles, and lives on.
TEST_F(ForkedChild, PinsNoGenerationForATransactionOfItsParent) {
  {
    transaction first = file_.begin();
    first.create("a", {.dtype = dtype::int32, .shape = {64}, .kind = array_kind::chunked});
    first.commit();
  }
  std::optional<transaction> change = file_.begin();
  std::optional<writable_array> a = change->update("a");
  int until[2], done[2];
  ASSERT_EQ(::pipe2(until, O_CLOEXEC), 0);
  ASSERT_EQ(::pipe2(done, O_CLOEXEC), 0);
  const pid_t child = ::fork();
  char byte = 'x';
  if (child == 0) {
    test::start_no_housekeeper();
    const test::hang_alarm limit;
    ::close(until[1]);
    a.reset();
    change.reset();
    const bool told = ::write(done[1], &byte, 1) == 1;
    ::_exit(told && ::read(until[0], &byte, 1) == 0 ? 0 : 1);
  }
  ::close(until[0]);
  ::close(done[1]);
  EXPECT_EQ(::read(done[0], &byte, 1), 1);
  change->commit();
  const std::optional<std::uint64_t> oldest_read = file_.space().oldest_read;
  EXPECT_FALSE(oldest_read.has_value()) << "generation " << *oldest_read;
  ::close(done[0]);
  ::close(until[1]);
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

// ---- every way to what a child inherits ---------------------------------------------------------

// Threads of the parent use the handles all the time, so that each fork comes in the middle of some
// of these calls. No child may wait for one of those threads, or see a change of theirs half done.
TEST_F(ForkedChild, UsesWhatOtherThreadsOfItsParentUse) {
  const dims shape{64, 64};
  const tensor values = test::counting(shape, dtype::float32);
  {
    transaction change = file_.begin();
    change.create("dense", {.dtype = dtype::float32, .shape = shape}).write(expr(values));
    change
        .create("chunked", {.dtype = dtype::float32,
                            .shape = shape,
                            .kind = array_kind::chunked,
                            .chunk_shape = dims{16, 16}})
        .write(expr(values));
    change.commit();
  }
  const executor comparing = executor({.checksums = checksum_use::compared});
  const snapshot pinned = file_.latest();
  const std::vector<std::function<void()>> uses{
      [&] { static_cast<void>(file_.latest().names()); },
      [&] { static_cast<void>(file_.wait_newer(0, timeout{0})); },
      [&] {
        static_cast<void>(pinned.at("dense").map().at({1, 1}));
      },
      [&] {
        static_cast<void>(pinned.at("chunked").read(region{{16, 0}, {16, 64}}));
      },
      [&] {
        const executor::scope within(comparing);
        static_cast<void>(eval(sum(expr(pinned.at("dense")) + expr(values))));
      },
      [&] { static_cast<void>(container::open(path_).latest().generation()); },
      [&] { file_.begin(timeout{60'000}).abort(); },
  };
  std::atomic<bool> enough = false;
  std::vector<std::jthread> threads;
  for (const auto& use : uses)
    threads.push_back(test::running_thread([&] {
      while (!enough) {
        const auto turn = test::turn_to_allocate();
        use();
      }
    }));
  for (int fork = 0; fork < test::repeats(100); ++fork) {
    auto turn = test::turn_to_allocate();
    const pid_t child = ::fork();
    turn = {};
    if (child == 0) {
      test::start_no_housekeeper();
      const test::hang_alarm limit;  // the child may wait for a thread that it does not have
      const bool same = equal_bits(pinned.at("chunked").read(), values) &&
                        equal_bits(pinned.at("dense").map(), values);
      for (const auto& use : uses) use();
      ::_exit(same ? 0 : 1);
    }
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    if (HasFailure()) break;
  }
  enough = true;
  threads.clear();
  EXPECT_EQ(findings_of(file_), "");
}

// arena.3: no thread of oneTBB is in the child, and any of its locks may be held there.
TEST_F(ForkedChild, ComputesWithoutTheHelpersOfItsParent) {
  const executor several({.threads = 4});
  const tensor values = test::counting({1000, 1000}, dtype::int64);
  const auto total = [&](const executor& on) {
    const executor::scope within(on);
    return eval(sum(expr(values))).item().to<std::int64_t>();
  };
  const std::int64_t right = total(several);
  std::atomic<bool> enough = false;
  const std::jthread computing = test::running_thread([&] {
    while (!enough) {
      const auto turn = test::turn_to_allocate();
      EXPECT_EQ(total(several), right);
      EXPECT_EQ(total(executor({.threads = 3})), right);
    }
  });
  for (int fork = 0; fork < test::repeats(100); ++fork) {
    auto turn = test::turn_to_allocate();
    const pid_t child = ::fork();
    turn = {};
    if (child == 0) {
      test::start_no_housekeeper();
      const test::hang_alarm limit;
      bool same = total(several) == right;
      for (int threads = 2; threads < 6; ++threads)
        same = same && total(executor({.threads = threads})) == right;
      const auto tasks = std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
      ::_exit(!same ? 1 : tasks == 1 ? 0 : 2);
    }
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    if (HasFailure()) break;
  }
  enough = true;
}

TEST_F(ForkedChild, HasNoWayIntoATransactionThatAnotherThreadChanges) {
  const dims shape{8, 8};
  transaction change = file_.begin();
  const writable_array a = change.create("a", {.dtype = dtype::int32,
                                               .shape = shape,
                                               .kind = array_kind::chunked,
                                               .chunk_shape = dims{4, 4}});
  const tensor zeros = tensor::zeros(shape, dtype::int32);
  a.write(zeros);
  const std::optional<array> found = change.find("a");
  std::atomic<bool> enough = false;
  std::jthread changing = test::running_thread([&] {
    while (!enough) {
      const auto turn = test::turn_to_allocate();
      change.set_attribute("a", "key", "value");
      a.write(zeros);
      change.create("b", {.dtype = dtype::int32, .shape = shape});
      change.remove("b");
    }
  });
  const std::vector<std::function<void()>> uses{
      [&] { a.write(zeros); },
      [&] { static_cast<void>(found->read()); },
      [&] { static_cast<void>(change.find("a")); },
      [&] { static_cast<void>(change.names()); },
      [&] { change.create("c", {.dtype = dtype::int32, .shape = shape}); },
      [&] { change.remove("a"); },
      [&] { change.rename("a", "b"); },
      [&] { change.resize("a", shape); },
      [&] { change.append("a", zeros); },
      [&] { static_cast<void>(change.update("a")); },
      [&] { change.set_attribute("a", "key", "value"); },
      [&] { change.remove_attribute("a", "key"); },
      [&] { change.commit(); },
  };
  for (int fork = 0; fork < test::repeats(100); ++fork) {
    auto turn = test::turn_to_allocate();
    const pid_t child = ::fork();
    turn = {};
    if (child == 0) {
      test::start_no_housekeeper();
      const test::hang_alarm limit;
      executor one({.threads = 1});
      const executor::scope within(one);
      int wrong = 0;
      for (const auto& use : uses)
        if (test::code_of(use) != errc::invalid_argument) ++wrong;
      change.abort();
      ::_exit(wrong);
    }
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    if (HasFailure()) break;
  }
  enough = true;
  changing.join();
  change.commit();
  EXPECT_EQ(findings_of(file_), "");
}

// Zeros whose tile source forks. The child leaves it by an exception.
class forking_values final : public tile_source {
 public:
  struct of_the_child {};

  shale::dtype dtype() const noexcept override { return shale::dtype::int32; }
  const dims& shape() const noexcept override { return shape_; }
  const dims& tile_shape() const noexcept override { return shape_; }
  std::uint64_t stored_bytes(const dims&) const override { return 0; }
  void load(const dims&, const tensor& into) const override {
    const pid_t child = ::fork();
    if (child == 0) {
      test::start_no_housekeeper();
      ::alarm(test::instrumented ? 240
                                 : 30);  // the child may wait for a thread that it does not have
      throw of_the_child();
    }
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    fill(into, 0);
  }

 private:
  const dims shape_{4, 4};
};

// Another thread of the parent has the transaction's locks at some of the forks.
TEST_F(ForkedChild, LeavesAnAppendOfItsParentThatItIsForkedFrom) {
  transaction change = file_.begin();
  const array_spec spec{.dtype = dtype::int32,
                        .shape = {0, 4},
                        .kind = array_kind::chunked,
                        .chunk_shape = dims{4, 4}};
  change.create("longer", spec);
  change.create("changed", spec);
  std::atomic<bool> enough = false;
  std::jthread changing = test::running_thread([&] {
    while (!enough) {
      const auto turn = test::turn_to_allocate();
      change.set_attribute("changed", "key", "value");
    }
  });
  executor one({.threads = 1});
  const executor::scope within(one);
  constexpr int forks = test::repeats(100);
  for (int fork = 0; fork < forks; ++fork) {
    auto turn = test::turn_to_allocate();
    const pid_t tried = ::getpid();
    try {
      change.append("longer", expr(std::make_shared<forking_values>()), 0);
    } catch (const forking_values::of_the_child&) {
      ::_exit(::getpid() != tried ? 0 : 1);
    }
    turn = {};
    if (HasFailure()) break;
  }
  enough = true;
  changing.join();
  EXPECT_EQ(change.find("longer")->shape(), (dims{4 * forks, 4}));
  change.commit();
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
      test::start_no_housekeeper();
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

TEST_F(ForkedChild, InheritsATensorOfATransactionThatWasCommitted) {
  const tensor values = test::counting({64, 64}, dtype::float32);
  transaction change = file_.begin();
  const writable_array made = change.create("a", {.dtype = dtype::float32, .shape = {64, 64}});
  made.write(expr(values));
  const tensor kept = made.map();
  change.commit();
  ASSERT_FALSE(kept.storage().writable());
  const pid_t child = ::fork();
  if (child == 0) {
    test::start_no_housekeeper();
    executor one({.threads = 1});
    const executor::scope within(one);
    const test::outcome ended = test::outcome_of([&] {
      kept.storage().check();
      if (!equal_bits(kept, values)) throw error(errc::corrupt, "other elements");
    });
    if (ended.code) std::fprintf(stderr, "%s\n", ended.text.c_str());
    ::_exit(ended.code ? 1 : 0);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_TRUE(equal_bits(kept, values));
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
            {"read what was found", [&] { found->read(); }},
            {"read a part of it",
             [&] {
               found->read(region{{1, 1}, {2, 2}});
             }},
            {"compute with it", [&] { eval(expr(*found) + 1); }},
        },
        errc::invalid_argument, path_);
    // The transaction belongs to the parent.
    expect_refused_in_children(
        {
            {"write an expression", [&] { mapped.write(expr(values)); }},
            {"write a region",
             [&] {
               mapped.write({{1, 1}, {2, 2}}, tensor::zeros({2, 2}, dtype::float32));
             }},
            {"map", [&] { mapped.map(); }},
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
