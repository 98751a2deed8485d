// Reserves address space for a mapping and its growth. Nothing else can be mapped there, and an
// access faults until something is mapped over it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shale::detail {

/// Advice for the case that the kernel refuses a mapping: ENOMEM does not say which limit was
/// reached.
inline constexpr char no_address_space_advice[] =
    "map less, reserve less, or raise `ulimit -v` or the number of mappings (vm.max_map_count)";

class address_reservation {
 public:
  address_reservation() = default;

  /// Reserves `bytes` (a multiple of the page size) of address space. Its start is `remainder`
  /// modulo `alignment` (a power of two, at least a page).
  /// Throws   out_of_memory
  address_reservation(std::size_t bytes, std::size_t alignment, std::uint64_t remainder);
  ~address_reservation();
  address_reservation(address_reservation&& other) noexcept;
  address_reservation& operator=(address_reservation&& other) noexcept;

  std::byte* address() const noexcept { return address_; }
  std::size_t bytes() const noexcept { return bytes_; }

  /// Says that the code that mapped the first `bytes` also unmaps them: from now on only the rest
  /// is released here. `bytes` is a multiple of the page size. It can decrease only after the range
  /// was mapped inaccessible again.
  void claim(std::size_t bytes) noexcept { claimed_ = bytes; }
  std::size_t claimed() const noexcept { return claimed_; }

 private:
  std::byte* address_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t claimed_ = 0;
};

}  // namespace shale::detail
