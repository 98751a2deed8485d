// Tests that every function of the caller's that the engine, tensors, storages and pools call may
// use all of them itself: none is called while a lock is held, or by a thread that another thread
// must wait for. Each case runs in a process of its own, which must end.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <fstream>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "parallel/executor/shared_work.hpp"
#include "shale/apply.hpp"
#include "shale/error.hpp"
#include "shale/executor.hpp"
#include "shale/fold_axes.hpp"
#include "shale/functions.hpp"
#include "shale/linalg.hpp"
#include "shale/map_tiles.hpp"
#include "shale/mapped_file.hpp"
#include "shale/memory_pool.hpp"
#include "shale/ops.hpp"
#include "shale/scans.hpp"
#include "shale/shared_memory.hpp"
#include "shale/tile_source.hpp"
#include "storage/pool/pools/housekeeper.hpp"
#include "support/bounded.hpp"
#include "support/child_threads.hpp"
#include "support/failures.hpp"
#include "support/scratch_directory.hpp"

namespace shale {
namespace {

using test::expect_to_end;

tensor ones(index_t count) {
  tensor made = tensor::zeros({count}, dtype::float32);
  for (auto& value : made.elements<float>()) value = 1;
  return made;
}

// A tile source of ones that calls `body` from each of its functions.
class calling_source final : public tile_source {
 public:
  calling_source(index_t count, std::function<void()> body)
      : shape_{count}, tile_shape_{1000}, body_(std::move(body)) {}
  shale::dtype dtype() const noexcept override { return body_(), dtype::float32; }
  const dims& shape() const noexcept override { return body_(), shape_; }
  const dims& tile_shape() const noexcept override { return body_(), tile_shape_; }
  bool writable() const noexcept override { return body_(), true; }
  std::uint64_t stored_bytes(const dims&) const override { return body_(), 1; }
  void prefetch(const dims&) const noexcept override { body_(); }
  void load(const dims&, const tensor& into) const override {
    body_();
    for (auto& value : const_cast<tensor&>(into).elements<float>()) value = 1;
  }
  void store(const dims&, const tensor&) override { body_(); }

 private:
  dims shape_;
  dims tile_shape_;
  std::function<void()> body_;
};

// Uses everything that a callback may use. A call from inside `use` does nothing, because the
// callbacks would never end.
class everything {
 public:
  explicit everything(std::string folder) : folder_(std::move(folder)) {}

  void set_executor(executor& on) { on_ = &on; }
  void set_pool(memory_pool& pool) { pool_ = &pool; }
  int uses() const { return uses_; }

  void use() {
    static thread_local bool inside = false;
    if (inside) return;
    // The number is large enough to meet every state, and limited.
    if (uses_.fetch_add(1) > 60) return;
    inside = true;
    use_engine(*on_);
    use_engine(executor::shared());
    executor other({.threads = 3});
    use_engine(other);
    use_pool(*pool_);
    use_pool(memory_pool::default_pool());
    use_storages();
    // Another thread does the same, and this one waits for it.
    std::thread([this] {
      inside = true;
      use_engine(*on_);
      use_pool(*pool_);
    }).join();
    inside = false;
  }

 private:
  void use_engine(executor& on) {
    const executor::scope within(on);
    const tensor values = ones(100000);
    EXPECT_EQ(eval(sum(expr(values))).item(), scalar(100000.0F));
    apply([](float& x) { x += 1; }, values);
    dot(values, values);
    EXPECT_EQ(reduce(
                  values, 0.0, [](double& to, float x) { to += x; },
                  [](double& to, double part) { to += part; }),
              200000.0);
    eval(sum(expr(std::make_shared<calling_source>(5000, [] {}))));
    if (&on == &executor::shared()) return;
    static_cast<void>(on.statistics());
    static_cast<void>(on.cancelled());
    on.resume();
    const executor::scope pooled(on.with_pool(*pool_));
    eval(expr(values) + 1);
  }

  static void use_pool(memory_pool& pool) {
    for (const std::size_t bytes : {1000UL, 100000UL, 2000000UL, 70000000UL})
      pool.deallocate(pool.allocate(bytes), bytes);
    pool.trim();
    static_cast<void>(pool.statistics());
    pool.reset_peak();
    static_cast<void>(pool.all_clear());
    const auto reserved = pool.reserve(1000);
    pool.set_limit_bytes(0);
    memory_pool another;
    another.deallocate(another.allocate(100000), 100000);
  }

  void use_storages() {
    // Count this call alone; others run at the same time.
    const std::string name =
        "callbacks-" + std::to_string(::getpid()) + "-" + std::to_string(names_++);
    const std::string path = folder_ + "/" + name;
    storage file =
        create_file(path, 10000, {.existing = existing_file::replace, .reserve_bytes = 100000});
    file.data()[0] = std::byte{1};
    file.grow(20000);
    file.flush();
    file.evict({0, 10000});
    map_file(path).populate({0, 20000});
    storage shared = create_shared(name, 10000);
    storage heap = storage::allocate(10, nullptr, 100);
    heap.grow(50);
  }

  const std::string folder_;
  executor* on_ = nullptr;
  memory_pool* pool_ = &memory_pool::default_pool();
  std::atomic<int> uses_ = 0;
  std::atomic<int> names_ = 0;
};

// Runs `body(all)` in a process of its own, with an executor whose sink does nothing.
template <class Body>
void expect_callbacks(Body body) {
  const test::scratch_directory scratch;
  for (const int threads : {1, 3}) {
    expect_to_end([&] {
      everything all(scratch.path());
      memory_pool pool;
      executor on({.threads = threads, .pool = &pool});
      all.set_executor(on);
      all.set_pool(pool);
      const executor::scope within(on);
      body(all);
      EXPECT_GT(all.uses(), 0);
    });
    if (testing::Test::HasFailure()) return;  // probably it hung; do not wait again
  }
}

TEST(Callbacks, FromKernels) {
  expect_callbacks([](everything& all) {
    const tensor values = ones(1 << 18);
    std::atomic<int> calls = 0;
    const auto some = [&] {
      if (calls++ % 10000 == 0) all.use();
    };
    apply([&](float&) { some(); }, values);
    reduce(
        values, 0, [&](int&, float) { some(); }, [&](int&, int) { all.use(); });
    for_each_segment<const float>([&](std::span<const float>) { all.use(); }, values);
    for_each_lane<const float>(
        1, [&](lane<const float>) { all.use(); }, values.view({1 << 9, 1 << 9}));
  });
}

// The number of uses is limited, so each function uses everything a few times only.
TEST(Callbacks, FromTilesAndFolds) {
  expect_callbacks([](everything& all) {
    const tensor values = ones(1 << 18);
    const tensor matrix = values.view({1 << 9, 1 << 9});
    const auto use_at_times = [&](std::atomic<int>& calls, int every) {
      if (calls++ % every == 0) all.use();
    };
    map_tiles([&](tile_view<float>) { all.use(); }, {.tile_shape = {1 << 15}}, values);
    std::atomic<int> elements = 0, folds = 0, merges = 0, results = 0;
    const auto fold = [&](int&, float) { use_at_times(folds, 50000); };
    const auto merge = [&](int&, int) { use_at_times(merges, 20); };
    const auto merge_many = [&](int&, int) { use_at_times(merges, 1000); };
    const auto finish = [&](int folded) {
      use_at_times(results, 100);
      return folded;
    };
    apply_indexed([&](const dims&, float&) { use_at_times(elements, 50000); }, values);
    scan_axis(values, 0, 0, fold, merge);
    merges = 0;
    reduce_axes(matrix, {0}, 0, fold, merge_many, finish);
    EXPECT_LE(all.uses(), 60) << "the last functions have used nothing";
  });
}

TEST(Callbacks, FromTileSources) {
  expect_callbacks([](everything& all) {
    const auto source = std::make_shared<calling_source>(50000, [&] { all.use(); });
    const expr values(source);
    eval(sum(values));
    // Several units need one tile, so that the tile cache is used.
    eval(sum(values.narrow(0, 1, 40000) + values.narrow(0, 7001, 40000)));
    eval_into(*source, values + 1);
    explain(values + 1);
  });
}

// The uses begin with the first tile. Otherwise the questions for shapes would take all of them.
TEST(Callbacks, FromTileSourcesWithHalos) {
  expect_callbacks([](everything& all) {
    std::atomic<bool> begun = false;
    const auto use = [&] {
      if (begun) all.use();
    };
    const auto source = std::make_shared<calling_source>(50000, use);
    const auto sink = std::make_shared<calling_source>(50000, use);
    map_tiles([&](tile_view<float>, tile_view<const float>) { begun = true; }, sink,
              with_halo(source, {.widths = {{7, 7}}, .mode = halo_mode::wrap}));
  });
}

TEST(Callbacks, FromDeleters) {
  expect_callbacks([](everything& all) {
    static float bytes[100000];
    const auto adopted = [&] {
      return tensor(storage::adopt(bytes, sizeof bytes, [&](void*) { all.use(); }), dtype::float32,
                    layout(dims{100000}));
    };
    adopted();
    eval(sum(expr(adopted())));
    eval(sum(expr(adopted()) + expr(adopted()).flip({0})));
    // A kernel releases the last handle, on any thread.
    for (int round = 0; round < 5; ++round) {
      std::atomic<bool> given = false;
      auto last = std::make_unique<tensor>(adopted());
      apply(
          [&](float&) {
            if (!given.exchange(true)) last.reset();
          },
          ones(1 << 17));
    }
    // A thread's last handle is released while the thread ends.
    std::thread([&] {
      static thread_local tensor kept;
      kept = adopted();
      memory_pool::default_pool().deallocate(memory_pool::default_pool().allocate(100000), 100000);
    }).join();
  });
}

// The thread that holds the last reference destroys owners of bytes and tile sources.
TEST(Callbacks, FromDestroyedOwnersAndSources) {
  expect_callbacks([](everything& all) {
    static float bytes[100000];
    const auto owned = [&] {
      std::shared_ptr<void> owner(static_cast<void*>(bytes), [&](void*) { all.use(); });
      return tensor(storage::adopt_owner(bytes, sizeof bytes, std::move(owner)), dtype::float32,
                    layout(dims{100000}));
    };
    eval(sum(expr(owned())));
    matmul(owned().view({100, 1000}).swapaxes(0, 1), owned().view({100, 1000}));
    struct ending_source final : tile_source {
      explicit ending_source(everything& uses) : all(uses) {}
      ~ending_source() override { all.use(); }
      shale::dtype dtype() const noexcept override { return dtype::float32; }
      const dims& shape() const noexcept override { return whole; }
      const dims& tile_shape() const noexcept override { return part; }
      std::uint64_t stored_bytes(const dims&) const override { return 1; }
      void load(const dims&, const tensor& into) const override {
        for (auto& value : const_cast<tensor&>(into).elements<float>()) value = 1;
      }
      everything& all;
      const dims whole{5000};
      const dims part{1000};
    };
    eval(sum(expr(std::make_shared<ending_source>(all))));
    {
      const expr joined =
          concat(std::vector<expr>{expr(std::make_shared<ending_source>(all)), expr(owned())}, 0);
      eval(mean(joined));
    }
    // The call is refused, so the argument is the last reference.
    EXPECT_THROW(expr(std::make_shared<ending_source>(all)) + owned(), error);
  });
}

// Accumulators, and objects in a pool, are types of the caller's.
TEST(Callbacks, FromElementsAndAccumulators) {
  struct calling {
    calling() { all->use(); }
    calling(const calling& other) : all(other.all) { all->use(); }
    calling& operator=(const calling&) = default;
    ~calling() { all->use(); }
    explicit calling(everything& uses) : all(&uses) {}
    static everything*& chosen() {
      static everything* made = nullptr;
      return made;
    }
    everything* all = chosen();
  };
  expect_callbacks([](everything& all) {
    calling::chosen() = &all;
    memory_pool pool;
    pool.make_unique<calling[]>(20000).reset();
    pool.make_unique_for_overwrite<calling[]>(3).reset();
    pool.make_shared<calling[]>(3).reset();
    reduce(
        ones(1 << 18), calling(all), [](calling&, float) {}, [](calling&, const calling&) {});
  });
}

TEST(Callbacks, FromProgressSinks) {
  struct calling_sink final : progress_sink {
    void advance(std::uint64_t, std::uint64_t) override { all->use(); }
    everything* all = nullptr;
  };
  const test::scratch_directory scratch;
  for (const int threads : {1, 3})
    expect_to_end([&] {
      everything all(scratch.path());
      calling_sink sink;
      sink.all = &all;
      executor on({.threads = threads, .progress = &sink});
      all.set_executor(on);
      const executor::scope within(on);
      const tensor values = ones(1 << 18);
      apply([](float& x) { x += 1; }, values);
      eval(sqrt(expr(values)) + 1);
      eval(sum(expr(values)));
      eval(sum(expr(std::make_shared<calling_source>(50000, [] {}))));
      EXPECT_GT(all.uses(), 0);
    });
}

// A hook for tests, which the housekeeper's thread calls.
std::atomic<everything*> probed = nullptr;
std::atomic<int> probes = 0;  // calls that have ended

detail::system_memory probe() {
  if (everything* const all = probed) {
    all->use();
    ++probes;
  }
  return detail::read_system_memory();
}

TEST(Callbacks, FromTheProbeOfTheSystemsMemory) {
  expect_callbacks([](everything& all) {
    probed = &all;
    detail::exchange_memory_probe(probe);
    memory_pool& pool = memory_pool::default_pool();
    // Idle memory makes the housekeeper call the hook: once when it wakes up, then at every check.
    while (probes < 3) {
      pool.deallocate(pool.allocate(40 << 20), 40 << 20);
      ::usleep(10000);
    }
    probed = nullptr;
  });
}

// Tiles of ten ones. Loading the tile `failing` throws, but not before a thread has loaded the tile
// behind it, or a second has passed. As a sink, notes whether a tile from `failing` on is stored.
class failing_tiles final : public tile_source {
 public:
  explicit failing_tiles(index_t failing) : failing_(failing) {}
  shale::dtype dtype() const noexcept override { return dtype::int64; }
  const dims& shape() const noexcept override { return shape_; }
  const dims& tile_shape() const noexcept override { return tile_shape_; }
  bool writable() const noexcept override { return true; }
  std::uint64_t stored_bytes(const dims&) const override { return 1; }
  void load(const dims& tile, const tensor& into) const override {
    if (tile[0] == failing_) {
      for (int look = 0; look < 1000 && !next_loaded_; ++look) ::usleep(1000);
      throw error(errc::corrupt, "this tile is lost");
    }
    for (auto& value : const_cast<tensor&>(into).elements<std::int64_t>()) value = 1;
    if (tile[0] == failing_ + 1) next_loaded_ = true;
  }
  void store(const dims& tile, const tensor&) override {
    if (tile[0] >= failing_) stored_behind_ = true;
  }
  bool stored_behind() const { return stored_behind_; }

 private:
  const dims shape_{400};
  const dims tile_shape_{10};
  const index_t failing_;
  mutable std::atomic<bool> next_loaded_ = false;
  std::atomic<bool> stored_behind_ = false;
};

enum class forking_function { load, prefetch };

// A tile source of ones. A function forks while another thread loads tile 1: the load of tile 0, or
// the first prefetch that threads of the engine share.
class forking_source final : public tile_source {
 public:
  explicit forking_source(forking_function forking) : forking_(forking) {}
  shale::dtype dtype() const noexcept override { return dtype::float32; }
  const dims& shape() const noexcept override { return shape_; }
  const dims& tile_shape() const noexcept override { return tile_shape_; }
  std::uint64_t stored_bytes(const dims&) const override { return 1; }
  void load(const dims& tile, const tensor& into) const override {
    if (tile[0] == 0 && forking_ == forking_function::load) fork_beside_tile_1();
    if (tile[0] == 1) {
      loads_tile_1_ = true;
      while (!ended_) std::this_thread::yield();
    }
    for (auto& value : const_cast<tensor&>(into).elements<float>()) value = 1;
  }
  void prefetch(const dims&) const noexcept override {
    if (forking_ != forking_function::prefetch || !parallel::shared_work::inside()) return;
    if (!has_forked_.exchange(true)) fork_beside_tile_1();
  }
  bool ended() const { return ended_; }

 private:
  void fork_beside_tile_1() const {
    while (!loads_tile_1_) std::this_thread::yield();
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(20);
      return test::start_no_housekeeper();
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status));
    EXPECT_EQ(WTERMSIG(status), SIGABRT);
    ended_ = true;
  }

  const forking_function forking_;
  dims shape_{200};
  dims tile_shape_{10};
  mutable std::atomic<bool> loads_tile_1_ = false, has_forked_ = false, ended_ = false;
};

// The first unit needs the tiles 0 and 1, the second one the tiles 1 and 2. In the child, the
// thread that loads tile 1 is missing. There are more units than those that are prefetched before
// threads share the call.
TEST(ForkedSources, DoNotWaitInAChildForTilesOfOtherThreads) {
  for (const auto forking : {forking_function::load, forking_function::prefetch})
    expect_to_end([forking] {
      executor two({.threads = 2});
      const executor::scope within(two);
      const auto source = std::make_shared<forking_source>(forking);
      const expr values{std::shared_ptr<const tile_source>(source)};
      EXPECT_EQ(eval(sum(values.narrow(0, 5, 190))).item(), scalar(190.0F));
      EXPECT_TRUE(source->ended());
    });
}

// A pass without operands takes as long as any other. The pass that copies its result is reported
// after it.
TEST(Progress, OfPassesWithoutOperandsIsReported) {
  struct largest_pass final : progress_sink {
    void advance(std::uint64_t done_bytes, std::uint64_t total_bytes) override {
      if (total_bytes < total) return;
      done = done_bytes;
      total = total_bytes;
    }
    std::uint64_t done = 0, total = 0;
  } sink;
  constexpr std::int64_t count = 1 << 21;
  executor two({.threads = 2, .progress = &sink});
  const executor::scope within(two);
  EXPECT_EQ(eval(sum(arange(count))).item(), scalar(count * (count - 1) / 2));
  EXPECT_EQ(sink.total, std::uint64_t{8} << 21);
  EXPECT_EQ(sink.done, sink.total);
}

// chain.3: a unit that waited for one that failed has nothing to store.
TEST(FailedScans, StoreNothingBehindTheTileThatFailed) {
  for (const index_t failing : {1, 20})
    expect_to_end([failing] {
      executor two({.threads = 2});
      const executor::scope within(two);
      failing_tiles sink(failing);
      const expr read(std::make_shared<failing_tiles>(failing));
      EXPECT_EQ(test::code_of([&] { eval_into(sink, cumulative_sum(read, 0)); }), errc::corrupt);
      EXPECT_FALSE(sink.stored_behind());
    });
}

// An exception of the caller's own.
class own_bad_alloc final : public std::bad_alloc {};

// A source whose functions throw.
template <class Thrown>
class throwing_source final : public tile_source {
 public:
  shale::dtype dtype() const noexcept override { return dtype::float32; }
  const dims& shape() const noexcept override { return shape_; }
  const dims& tile_shape() const noexcept override { return tile_shape_; }
  bool writable() const noexcept override { return true; }
  std::uint64_t stored_bytes(const dims&) const override { return 1; }
  void load(const dims&, const tensor&) const override { throw Thrown(); }
  void store(const dims&, const tensor&) override { throw Thrown(); }

 private:
  dims shape_{100000};
  dims tile_shape_{1000};
};

template <class Thrown>
class throwing_sink final : public progress_sink {
 public:
  void advance(std::uint64_t, std::uint64_t) override { throw Thrown(); }
};

// The library turns its own lack of memory into an error, and leaves that of others as it is.
template <class Thrown>
void expect_to_pass(int threads) {
  throwing_sink<Thrown> sink;
  executor silent({.threads = threads});
  executor reported({.threads = threads, .progress = &sink});
  const tensor values = ones(100000);
  const auto source = std::make_shared<throwing_source<Thrown>>();
  {
    const executor::scope within(silent);
    EXPECT_THROW(eval(sum(expr(source))), Thrown);
    EXPECT_THROW(eval_into(*source, expr(values)), Thrown);
    EXPECT_THROW(eval_into(*source, expr(source).flip()), Thrown);  // one call inside another
    EXPECT_THROW(apply([](float&) { throw Thrown(); }, values), Thrown);
  }
  const executor::scope within(reported);
  EXPECT_THROW(eval(expr(values) + 1), Thrown);
  EXPECT_THROW(apply([](float& x) { x += 1; }, values), Thrown);
}

TEST(Callbacks, PassTheirLackOfMemoryToTheCaller) {
  for (const int threads : {1, 3})
    expect_to_end([threads] {
      expect_to_pass<std::bad_alloc>(threads);
      expect_to_pass<std::bad_array_new_length>(threads);
      expect_to_pass<own_bad_alloc>(threads);
    });
}

}  // namespace
}  // namespace shale
