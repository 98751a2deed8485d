// Address space set aside for a mapping and its growth: nothing else can be placed there, and
// touching it is a fault, until something is mapped over it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shale::detail {

/// What to do when the kernel has no room for a mapping: ENOMEM does not say which limit it was.
inline constexpr char no_address_space_advice[] =
    "map less, reserve less, or raise `ulimit -v` or the number of mappings (vm.max_map_count)";

class address_reservation {
 public:
  address_reservation() = default;

  /// `bytes` (a multiple of the page size) of address space whose start is `remainder` modulo
  /// `alignment` (a power of two, at least a page).
  /// Throws   out_of_memory
  address_reservation(std::size_t bytes, std::size_t alignment, std::uint64_t remainder);
  ~address_reservation();
  address_reservation(address_reservation&& other) noexcept;
  address_reservation& operator=(address_reservation&& other) noexcept;

  std::byte* address() const noexcept { return address_; }
  std::size_t bytes() const noexcept { return bytes_; }

  /// Whoever mapped the first `bytes` unmaps them too: from now on only the rest is released here.
  /// Never less than claimed before; a multiple of the page size.
  void claim(std::size_t bytes) noexcept { claimed_ = bytes; }
  std::size_t claimed() const noexcept { return claimed_; }

 private:
  std::byte* address_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t claimed_ = 0;
};

}  // namespace shale::detail
