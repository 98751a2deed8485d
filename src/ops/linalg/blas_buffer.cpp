#include "ops/linalg/blas_buffer.hpp"

#include <sys/mman.h>

#include <condition_variable>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <new>
#include <utility>

#include "shale/error.hpp"

namespace shale::ops {

namespace {

// The size of OpenBLAS's buffers on x86-64. Other processors have buffers of at most this size.
constexpr std::size_t buffer_bytes = std::size_t{128} << 20;

// A buffer that nobody uses. The list's links are in the buffers themselves.
struct free_buffer {
  free_buffer* next;
};

// Buffers are kept for later calls.
struct buffer_list {
  std::mutex mutex;
  std::condition_variable freed;
  free_buffer* first = nullptr;
  std::size_t made = 0;
};

// The list is never destroyed, because calls may still run in other threads while the process ends.
buffer_list& buffers() {
  static buffer_list& only = *new buffer_list;
  return only;
}

// The buffer that a blas_buffer of this thread holds, and whether a call of OpenBLAS uses it.
struct held_buffer {
  void* address = nullptr;
  bool used = false;
};
thread_local held_buffer held;

// Returns a free buffer, or else a new one, or null if there is no address space for one.
void* take(buffer_list& all) noexcept {
  if (all.first != nullptr) return std::exchange(all.first, all.first->next);
  void* const made =
      ::mmap(nullptr, buffer_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED) return nullptr;
  ++all.made;
  return made;
}

void give_back(void* buffer) noexcept {
  buffer_list& all = buffers();
  {
    const std::lock_guard lock(all.mutex);
    all.first = new (buffer) free_buffer{all.first};
  }
  all.freed.notify_one();
}

}  // namespace

blas_buffer::blas_buffer() {
  buffer_list& all = buffers();
  std::unique_lock lock(all.mutex);
  while ((held.address = take(all)) == nullptr) {
    if (all.made == 0)
      throw error(errc::out_of_memory, "no address space for a buffer of the BLAS library",
                  {"wanted 128 MiB for each thread that multiplies matrices",
                   "raise the limit of address space (ulimit -v)"});
    all.freed.wait(lock);
  }
}

blas_buffer::~blas_buffer() { give_back(std::exchange(held.address, nullptr)); }

// OpenBLAS calls these two functions at the start and at the end of each product. The linker finds
// them here, so it does not take OpenBLAS's own memory.o, which defines them too. That object also
// defines `gotoblas`, the table of kernels that all of OpenBLAS uses, so the table has to be here.
extern "C" {

void* gotoblas = nullptr;

void* blas_memory_alloc(int) {
  if (held.address != nullptr && !std::exchange(held.used, true)) return held.address;
  // The thread holds no buffer that is free: the host program itself calls OpenBLAS.
  buffer_list& all = buffers();
  const std::lock_guard lock(all.mutex);
  if (void* const found = take(all); found != nullptr) return found;
  std::fputs("OpenBLAS: no address space for a buffer of 128 MiB\n", stderr);
  std::abort();
}

void blas_memory_free(void* buffer) {
  if (buffer == held.address) held.used = false;
  else give_back(buffer);
}
}

}  // namespace shale::ops
