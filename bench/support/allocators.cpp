#include "support/allocators.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <stdexcept>

#include "shale/memory_pool.hpp"

namespace shale::bench {

namespace {

class pool_allocator final : public allocator {
 public:
  void* allocate(std::size_t bytes) override { return pool_.allocate(bytes, 64); }
  void deallocate(void* pointer, std::size_t bytes) override {
    pool_.deallocate(pointer, bytes, 64);
  }

 private:
  memory_pool& pool_ = memory_pool::default_pool();
};

class c_allocator final : public allocator {
 public:
  c_allocator(void* (*make)(std::size_t), void (*release)(void*))
      : allocate_(make), free_(release) {}
  void* allocate(std::size_t bytes) override { return allocate_(bytes); }
  void deallocate(void* pointer, std::size_t) override { free_(pointer); }

 private:
  void* (*allocate_)(std::size_t);
  void (*free_)(void*);
};

std::unique_ptr<allocator> open(const char* library, const char* allocate, const char* free) {
  void* const handle = ::dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (!handle) throw std::runtime_error(std::string(::dlerror()) + ": run script/setup --bench");
  void* const first = ::dlsym(handle, allocate);
  void* const second = ::dlsym(handle, free);
  if (!first || !second) throw std::runtime_error(std::string(library) + " lacks " + allocate);
  return std::make_unique<c_allocator>(reinterpret_cast<void* (*)(std::size_t)>(first),
                                       reinterpret_cast<void (*)(void*)>(second));
}

}  // namespace

const std::vector<std::string>& allocator_names() {
  static const std::vector<std::string> names = {"shale", "glibc", "jemalloc", "mimalloc",
                                                 "tbbmalloc"};
  return names;
}

allocator& allocator_named(const std::string& name) {
  static std::map<std::string, std::unique_ptr<allocator>> opened;
  auto& entry = opened[name];
  if (entry) return *entry;
  if (name == "shale") entry = std::make_unique<pool_allocator>();
  else if (name == "glibc") entry = std::make_unique<c_allocator>(&std::malloc, &std::free);
  else if (name == "jemalloc") entry = open("libjemalloc.so.2", "malloc", "free");
  else if (name == "mimalloc") entry = open("libmimalloc.so.2", "mi_malloc", "mi_free");
  else if (name == "tbbmalloc")
    entry = open("libtbbmalloc.so.2", "scalable_malloc", "scalable_free");
  else throw std::runtime_error("no allocator " + name);
  return *entry;
}

}  // namespace shale::bench
