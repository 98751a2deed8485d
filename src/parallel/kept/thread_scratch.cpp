#include "parallel/kept/thread_scratch.hpp"

#include <new>

#include "parallel/threads/of_thread.hpp"

namespace shale::parallel {

namespace {

constexpr std::align_val_t alignment{64};

class scratch {
 public:
  scratch() noexcept = default;
  ~scratch() { ::operator delete(bytes_, alignment); }
  scratch(const scratch&) = delete;
  scratch& operator=(const scratch&) = delete;

  std::byte* grown(std::size_t size) noexcept {
    if (size <= size_) return bytes_;
    ::operator delete(bytes_, alignment);
    bytes_ = static_cast<std::byte*>(::operator new(size, alignment, std::nothrow));
    size_ = bytes_ == nullptr ? 0 : size;
    return bytes_;
  }

 private:
  std::byte* bytes_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace

std::byte* thread_scratch(std::size_t bytes) noexcept {
  scratch* const own = of_thread<scratch>::find();
  return own == nullptr ? nullptr : own->grown(bytes < 64 ? 64 : bytes);
}

}  // namespace shale::parallel
