// Tests functions that read operands in place while these change: another process may write shared
// memory, or make its segment shorter, between two looks at it. Each operand lies directly before a
// page that nobody may access, so that a loop which trusts its first look ends the program.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "shale/error.hpp"
#include "shale/executor.hpp"
#include "shale/functions.hpp"
#include "shale/masks.hpp"
#include "shale/ops.hpp"
#include "shale/random.hpp"
#include "shale/scatter.hpp"
#include "shale/shared_memory.hpp"
#include "shale/take.hpp"
#include "shale/tile_source.hpp"
#include "support/bounded.hpp"
#include "support/failures.hpp"

namespace shale {
namespace {

using test::code_of;
using test::expect_to_end;
using test::text_of;

constexpr index_t count = 5000;

// Elements of zeros, directly before a page without access.
tensor guarded(const dims& shape, dtype type) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t bytes = static_cast<std::size_t>(element_count(shape)) * item_bytes(type);
  const std::size_t used = (bytes + page - 1) / page * page;
  void* const begin =
      ::mmap(nullptr, used + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (begin == MAP_FAILED) std::abort();
  auto* const end = static_cast<std::byte*>(begin) + used;
  ::mprotect(end, page, PROT_NONE);
  return tensor(storage::adopt(end - bytes, bytes, [=](void*) { ::munmap(begin, used + page); }),
                type, layout(shape));
}

// The numbers 0, 1, … in one tile. Loading it runs `body`, as another process might run meanwhile.
class numbers final : public tile_source {
 public:
  numbers(index_t size, std::function<void()> body) : shape_{size}, body_(std::move(body)) {}
  shale::dtype dtype() const noexcept override { return dtype::int64; }
  const dims& shape() const noexcept override { return shape_; }
  const dims& tile_shape() const noexcept override { return shape_; }
  std::uint64_t stored_bytes(const dims&) const override { return 1; }
  void load(const dims&, const tensor& into) const override {
    for (index_t i = 0; i < into.size(); ++i)
      reinterpret_cast<std::int64_t*>(into.data())[i * into.stride(0)] = i;
    body_();
  }

 private:
  dims shape_;
  std::function<void()> body_;
};

expr numbers_and_then(index_t size, std::function<void()> body) {
  return expr(std::make_shared<numbers>(size, std::move(body)));
}

void set_all(const tensor& mask, bool value) {
  std::fill_n(mask.data(), mask.size(), std::byte{value});
}

// Runs `body` once the engine has reported the end of a pass.
class after_a_pass final : public progress_sink {
 public:
  void advance(std::uint64_t done_bytes, std::uint64_t total_bytes) override {
    last_total = total_bytes;
    if (done_bytes == total_bytes && body) std::exchange(body, nullptr)();
  }
  std::function<void()> body{};
  std::uint64_t last_total = 0;
};

TEST(ChangedOperands, AMaskThatLosesElementsIsRefused) {
  expect_to_end([] {
    const tensor mask = guarded({count}, dtype::boolean);
    set_all(mask, true);
    // A sum is selected slab by slab, the source itself by coordinates found before.
    const expr values = numbers_and_then(count, [&] { set_all(mask, false); }) + 0;
    EXPECT_EQ(code_of([&] { masked_select(values, mask); }), errc::io);
    EXPECT_NE(text_of([&] {
                set_all(mask, true);
                masked_select(values, mask);
              }).find("a mask changed while"),
              std::string::npos);
    set_all(mask, true);
    const tensor out = guarded({count}, dtype::int64);
    EXPECT_EQ(code_of([&] { masked_scatter(out, mask, values); }), errc::io);
  });
}

TEST(ChangedOperands, AMaskThatGainsElementsSelectsNoMore) {
  expect_to_end([] {
    const tensor mask = guarded({count}, dtype::boolean);
    mask.data()[count - 1] = std::byte{1};
    const expr values = numbers_and_then(count, [&] { set_all(mask, true); });
    const tensor selected = masked_select(values, mask);
    EXPECT_EQ(selected.shape(), dims{1});
    set_all(mask, false);
    mask.data()[count - 1] = std::byte{1};
    const tensor out = tensor::full({count}, 7, dtype::int64);
    masked_scatter(out, mask, values);
    EXPECT_EQ(eval(sum(expr(out) == 7)).item().as<index_t>(), count - 1);
  });
}

TEST(ChangedOperands, NonzeroRefusesAMaskThatLosesElements) {
  expect_to_end([] {
    after_a_pass sink;
    executor on({.threads = 1, .progress = &sink});
    const executor::scope within(on);
    for (const dims& shape : {dims{count}, dims{count / 50, 50}}) {
      const tensor mask = guarded(shape, dtype::boolean);
      set_all(mask, true);
      sink.body = [&] { set_all(mask, false); };
      EXPECT_EQ(code_of([&] { nonzero(mask); }), errc::io);
      mask.data()[0] = std::byte{1};
      sink.body = [&] { set_all(mask, true); };
      EXPECT_EQ(nonzero(mask)[0].shape(), dims{1});
    }
  });
}

TEST(ChangedOperands, IndicesThatLeaveTheirRangeAreRefused) {
  for (const index_t lane : {count, index_t{1} << 16}) {
    expect_to_end([lane] {
      executor on({.threads = 2});
      const executor::scope within(on);
      for (const std::int64_t index :
           {std::int64_t{1} << 40, std::int64_t{10}, std::int64_t{-11}}) {
        const tensor indices = guarded({lane}, dtype::int64);
        const expr values = numbers_and_then(lane, [&] {
          std::fill_n(reinterpret_cast<std::int64_t*>(indices.data()), lane, index);
        });
        const tensor out = guarded({10}, dtype::int64);
        const auto refused = [&](auto function) {
          std::fill_n(indices.data(), lane * 8, std::byte{0});
          EXPECT_NE(text_of([&] { function(out, 0, indices, values); }).find("indices changed"),
                    std::string::npos);
        };
        refused(scatter);
        refused(scatter_add);
        refused(index_add);
        std::fill_n(indices.data(), lane * 8, std::byte{0});
        EXPECT_EQ(code_of([&] { put(out, indices, values); }), errc::io);
        // An expression looks at an index as it uses it.
        std::fill_n(indices.data(), lane * 8, std::byte{0});
        EXPECT_EQ(code_of([&] { eval(take(values.narrow(0, 0, 10), indices)); }),
                  errc::invalid_argument);
      }
    });
  }
}

// The rest of a segment that was made shorter is zeros in this process.
TEST(ChangedOperands, ASegmentThatLosesBytesIsRefused) {
  expect_to_end([] {
    const std::string name = "changed-operands-test." + std::to_string(::getpid());
    constexpr index_t large = 1 << 16;
    const auto refused = [&](auto function) {
      const tensor shared(create_shared(name, large * 8), dtype::int64, layout({large}));
      for (index_t i = 0; i < large; ++i) shared.data()[i * 8] = std::byte{1};
      const expr values = numbers_and_then(
          large, [&] { EXPECT_EQ(::truncate(("/dev/shm/shale." + name).c_str(), 8192), 0); });
      EXPECT_EQ(code_of([&] { function(shared, values); }), errc::io);
    };
    const tensor out = tensor::zeros({large}, dtype::int64);
    refused([](const tensor& shared, const expr& values) { masked_select(shared, values >= 0); });
    refused([](const tensor& shared, const expr& values) {
      masked_select(values + 0, tensor(shared.storage(), dtype::boolean, layout({large})));
    });
    refused([&](const tensor& shared, const expr& values) {
      masked_scatter(out, values >= 0, shared);
    });
    refused([&](const tensor& shared, const expr& values) { scatter(out, 0, shared, values); });
    refused([&](const tensor& shared, const expr& values) { scatter(out, 0, values, shared); });
  });
}

// Operands that are the output's bytes at other addresses are copied: they would change.
TEST(ChangedOperands, AreCopiedIfTheyLieInTheOutputsSegment) {
  const std::string name = "changed-operands-test." + std::to_string(::getpid());
  const storage created = create_shared(name, 6 * 8);
  const tensor out(created, dtype::int64, layout({6}));
  const tensor opened(open_shared(name, {.access = access::read_only}), dtype::int64, layout({6}));
  const auto expect = [&](auto function, const std::vector<std::int64_t>& wanted) {
    eval_into(out, arange(6));
    function();
    const auto elements = out.elements<std::int64_t>();
    EXPECT_EQ(std::vector<std::int64_t>(elements.begin(), elements.end()), wanted);
  };
  const tensor next = eval((arange(6) + 1) % 6);
  expect([&] { scatter(out, 0, next, opened); }, {5, 0, 1, 2, 3, 4});
  expect([&] { masked_scatter(out, next, opened); }, {0, 1, 2, 3, 4, 5});
  expect([&] { masked_scatter(out, arange(6), opened); }, {0, 0, 1, 2, 3, 4});
  const tensor bytes(opened.storage(), dtype::boolean, layout({6}, {8}, 0));
  expect([&] { masked_scatter(out, bytes.flip(), arange(6) * 256); }, {0, 256, 512, 768, 1024, 5});
  const auto store_indices = [&] {
    eval_into(out, next);
    scatter(out, 0, opened, arange(10, 16));
  };
  expect(store_indices, {15, 10, 11, 12, 13, 14});
}

// One unit of work that would take hours. It is cancelled from another thread.
TEST(Cancellation, EndsAScatterInsideALane) {
  expect_to_end([] {
    executor on({.threads = 1});
    const dims shape{index_t{1} << 44};
    const tensor out = tensor::zeros({1}, dtype::int64);
    const expr indices = expr(tensor::zeros({1}, dtype::int64)).broadcast_to(shape);
    errc code{};
    std::thread caller([&] {
      const executor::scope within(on);
      code = code_of([&] { scatter_add(out, 0, indices, 1); });
    });
    while (reinterpret_cast<const std::atomic<std::int64_t>*>(out.data())->load() == 0)
      std::this_thread::yield();
    on.cancel();
    caller.join();
    EXPECT_EQ(code, errc::cancelled);
  });
}

TEST(Cancellation, EndsFunctionsThatEvaluateAtOnce) {
  after_a_pass sink;
  executor on({.threads = 2, .progress = &sink});
  const executor::scope within(on);
  const tensor large = tensor::zeros({1 << 20}, dtype::boolean);
  set_all(large, true);
  const tensor elements = tensor::zeros({1 << 20}, dtype::int64);
  const auto cancelled = [&](auto function) {
    sink.body = [&] { on.cancel(); };
    EXPECT_EQ(code_of(function), errc::cancelled);
    on.resume();
  };
  cancelled([&] { masked_select(large, large); });
  cancelled([&] { nonzero(large); });
  cancelled([&] { masked_scatter(elements, large, elements); });
  cancelled([&] { scatter(elements, 0, elements, 1); });
  cancelled([] {
    generator g(1);
    permutation(g, 100'000);
  });
  cancelled([] {
    generator g(1);
    multinomial(g, arange(1, 20), 100'000);
  });
}

TEST(Progress, IsReportedByFunctionsThatEvaluateAtOnce) {
  after_a_pass sink;
  executor on({.threads = 2, .progress = &sink});
  const executor::scope within(on);
  constexpr index_t large = 1 << 20;
  const tensor mask = tensor::zeros({large}, dtype::boolean);
  set_all(mask.narrow(0, 0, large / 4).clone(), true);
  std::fill_n(mask.data(), large / 4, std::byte{1});
  const tensor values = tensor::zeros({large}, dtype::int64);
  const auto counted = [&](auto function) {
    const auto before = on.statistics();
    sink.last_total = 0;
    function();
    const auto after = on.statistics();
    return std::vector<std::uint64_t>{sink.last_total, after.bytes_read - before.bytes_read,
                                      after.bytes_written - before.bytes_written};
  };
  using numbers_of = std::vector<std::uint64_t>;
  EXPECT_EQ(counted([&] { masked_select(values, mask); }),
            (numbers_of{large * 8, large * (1 + 1 + 8), large / 4 * 8}));
  EXPECT_EQ(counted([&] { nonzero(mask); }), (numbers_of{large, large * 2, large / 4 * 8}));
  EXPECT_EQ(counted([&] { masked_scatter(values.clone(), mask, values); }),
            (numbers_of{large / 4 * 8, large * 2 + large / 4 * 8, large / 4 * 8}));
  // The passes before find the least and the greatest index.
  EXPECT_EQ(counted([&] { scatter(values.clone(), 0, values, values); }),
            (numbers_of{large * 8, large * 8 * 3, large * 8 + 16}));
}

}  // namespace
}  // namespace shale
