// Children that are forked while other threads of the parent are in the middle of a transaction.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "array/test_support.hpp"
#include "shale/container.hpp"
#include "shale/expr.hpp"
#include "shale/ops.hpp"
#include "shale/tile_source.hpp"

namespace shale {
namespace {

using test::findings_of;

// Zeros that come when they are let.
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
  // Once the commit has begun it refuses writes, and waits for the one that goes on.
  const tensor none = tensor::zeros(shape, dtype::int32);
  try {
    for (;;) a.write(none);
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::invalid_argument) << failure.what();
  }

  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);  // if it waits for a thread that it does not have
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

}  // namespace
}  // namespace shale
