// The allocators that the pool is compared with, behind one interface.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace shale::bench {

class allocator {
 public:
  virtual ~allocator() = default;
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void deallocate(void* pointer, std::size_t bytes) = 0;
};

/// The names: "shale" first, then "glibc", "jemalloc", "mimalloc" and "tbbmalloc".
const std::vector<std::string>& allocator_names();

/// Each peer is opened with dlopen, so that none of them replaces malloc for the others.
/// Throws   std::runtime_error when the peer is not installed
allocator& allocator_named(const std::string& name);

}  // namespace shale::bench
