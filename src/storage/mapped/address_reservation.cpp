#include "storage/mapped/address_reservation.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <utility>

#include "shale/error.hpp"
#include "shale/index.hpp"
#include "storage/system/pages.hpp"

namespace shale::detail {

address_reservation::address_reservation(std::size_t bytes, std::size_t alignment,
                                         std::uint64_t remainder) {
  if (bytes == 0) return;
  // Reserves a larger range, which contains an address with the remainder wherever the kernel puts
  // it, and releases the rest.
  const auto padded = checked_add(bytes, alignment - system_page_bytes());
  void* const found = padded ? ::mmap(nullptr, *padded, PROT_NONE,
                                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
                             : MAP_FAILED;
  if (found == MAP_FAILED)
    throw error::from_errno(errc::out_of_memory, "no address space for a mapping",
                            padded ? errno : ENOMEM,
                            {fmt::format("wanted {} bytes", bytes), no_address_space_advice});
  auto* const first = static_cast<std::byte*>(found);
  const auto misfit = (remainder - reinterpret_cast<std::uintptr_t>(first)) & (alignment - 1);
  const std::size_t after = *padded - bytes - misfit;
  address_ = first + misfit;
  bytes_ = bytes;
  if (misfit > 0) ::munmap(first, misfit);
  if (after > 0) ::munmap(address_ + bytes, after);
}

address_reservation::~address_reservation() {
  if (claimed_ < bytes_) ::munmap(address_ + claimed_, bytes_ - claimed_);
}

address_reservation::address_reservation(address_reservation&& other) noexcept
    : address_(std::exchange(other.address_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      claimed_(std::exchange(other.claimed_, 0)) {}

address_reservation& address_reservation::operator=(address_reservation&& other) noexcept {
  std::swap(address_, other.address_);
  std::swap(bytes_, other.bytes_);
  std::swap(claimed_, other.claimed_);
  return *this;
}

}  // namespace shale::detail
