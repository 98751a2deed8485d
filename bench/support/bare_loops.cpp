#include "support/bare_loops.hpp"

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <numeric>
#include <thread>
#include <vector>

namespace shale::bench {

struct thread_crew::state {
  std::mutex mutex;
  std::condition_variable changed;
  long call = 0;    // increases with each run
  int running = 0;  // helpers that have not finished the call
  bool end = false;
  const std::function<void(int)>* part = nullptr;
  std::vector<std::thread> helpers;
};

namespace {

// The part of [0, count) that belongs to a worker.
std::pair<std::size_t, std::size_t> part_of(std::size_t count, int worker, int threads) {
  const auto begin_of = [&](int k) {
    if (k == threads) return count;
    return count / static_cast<std::size_t>(threads) * static_cast<std::size_t>(k) / 1024 * 1024;
  };
  return {begin_of(worker), begin_of(worker + 1)};
}

// Loads 16 bytes of each input and mixes them.
template <std::size_t Inputs>
__m128 mixed(const std::array<const float*, 3>& in, std::size_t i) {
  __m128 value = _mm_set1_ps(1.5F);
  for (std::size_t k = 0; k < Inputs; ++k) value = _mm_add_ps(value, _mm_loadu_ps(in[k] + i));
  return value;
}

template <std::size_t Inputs>
void map_part(stores how, float* out, const std::array<const float*, 3>& in, std::size_t begin,
              std::size_t end) {
  if (how == stores::ordinary) {
    for (std::size_t i = begin; i < end; i += 4) _mm_storeu_ps(out + i, mixed<Inputs>(in, i));
    return;
  }
  for (std::size_t i = begin; i < end; i += 16) {
    const __m128 a = mixed<Inputs>(in, i), b = mixed<Inputs>(in, i + 4);
    const __m128 c = mixed<Inputs>(in, i + 8), d = mixed<Inputs>(in, i + 12);
    _mm_stream_ps(out + i, a);
    _mm_stream_ps(out + i + 4, b);
    _mm_stream_ps(out + i + 8, c);
    _mm_stream_ps(out + i + 12, d);
  }
  _mm_sfence();
}

}  // namespace

thread_crew::thread_crew(int threads) : threads_(threads), state_(new state) {
  for (int worker = 1; worker < threads; ++worker)
    state_->helpers.emplace_back([this, worker] { work(worker); });
}

thread_crew::~thread_crew() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->end = true;
  }
  state_->changed.notify_all();
  for (std::thread& helper : state_->helpers) helper.join();
  delete state_;
}

void thread_crew::work(int worker) {
  std::unique_lock lock(state_->mutex);
  for (long seen = 0;;) {
    state_->changed.wait(lock, [&] { return state_->end || state_->call != seen; });
    if (state_->end) return;
    seen = state_->call;
    const auto* const part = state_->part;
    lock.unlock();
    (*part)(worker);
    lock.lock();
    if (--state_->running == 0) state_->changed.notify_all();
  }
}

void thread_crew::on_all(const std::function<void(int)>& part) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->part = &part;
    state_->running = threads_ - 1;
    ++state_->call;
  }
  state_->changed.notify_all();
  part(0);
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [&] { return state_->running == 0; });
}

void thread_crew::run(std::size_t count,
                      const std::function<void(std::size_t, std::size_t)>& part) {
  on_all([&](int worker) {
    const auto [begin, end] = part_of(count, worker, threads_);
    part(begin, end);
  });
}

void thread_crew::run_each(std::size_t count, const std::function<void(int, std::size_t)>& task) {
  std::atomic<std::size_t> next = 0;
  on_all([&](int worker) {
    for (std::size_t k = next++; k < count; k = next++) task(worker, k);
  });
}

void bare_map(thread_crew& crew, stores how, std::span<float> out,
              std::span<const std::span<const float>> in) {
  std::array<const float*, 3> inputs{};
  for (std::size_t k = 0; k < in.size(); ++k) inputs[k] = in[k].data();
  crew.run(out.size(), [&](std::size_t begin, std::size_t end) {
    switch (in.size()) {
      case 0:
        return map_part<0>(how, out.data(), inputs, begin, end);
      case 1:
        return map_part<1>(how, out.data(), inputs, begin, end);
      case 2:
        return map_part<2>(how, out.data(), inputs, begin, end);
      default:
        return map_part<3>(how, out.data(), inputs, begin, end);
    }
  });
}

float bare_read(thread_crew& crew, std::span<const float> in) {
  std::mutex mutex;
  float all = 0;
  crew.run(in.size(), [&](std::size_t begin, std::size_t end) {
    __m128 sums[8] = {};
    for (std::size_t i = begin; i < end; i += 32)
      for (std::size_t k = 0; k < 8; ++k)
        sums[k] = _mm_add_ps(sums[k], _mm_loadu_ps(in.data() + i + 4 * k));
    __m128 sum = _mm_setzero_ps();
    for (const __m128 part : sums) sum = _mm_add_ps(sum, part);
    alignas(16) std::array<float, 4> lanes{};
    _mm_store_ps(lanes.data(), sum);
    const std::lock_guard lock(mutex);
    all += std::accumulate(lanes.begin(), lanes.end(), 0.0F);
  });
  return all;
}

void bare_add(std::span<float> out, std::span<const float> a, std::span<const float> b) {
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = a[i] + b[i];
}

double bare_sum(std::span<const float> in) {
  std::array<double, 32> sums{};
  for (std::size_t i = 0; i < in.size(); i += sums.size())
    for (std::size_t k = 0; k < sums.size(); ++k) sums[k] += static_cast<double>(in[i + k]);
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

}  // namespace shale::bench
