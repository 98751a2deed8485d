#include "support/failing_calls.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

namespace shale::test {
namespace {

// These are accessed by any thread; no code here may allocate.
std::atomic<failing> how_now = failing::nothing;
std::atomic<std::uint64_t> calls = 0;
std::atomic<std::uint64_t> allocations = 0;
std::atomic<std::uint64_t> fail_at = 0;
std::atomic<int> number = 0;
std::atomic<const char*> failed = nullptr;
std::atomic<bool> unnamed_files = true;
std::atomic<bool> blocks_kept = false;
std::string network_folder;  // "" if there is none
std::atomic<call_hook> hook_now = nullptr;
std::atomic<const char*> refused = nullptr;
std::atomic<int> refused_with = 0;

enum class fate : std::uint8_t { lives, fails, halves };

fate next_call(const char* name) noexcept {
  if (const call_hook hook = hook_now.load()) hook(name);
  if (const char* const never = refused.load(); never != nullptr && std::strcmp(never, name) == 0) {
    errno = refused_with.load();
    return fate::fails;
  }
  const std::uint64_t mine = calls.fetch_add(1);
  const failing how = how_now.load();
  const std::uint64_t chosen_call = fail_at.load();
  const bool is_it = how == failing::ever_after ? mine >= chosen_call : mine == chosen_call;
  if (!is_it || how == failing::nothing || how == failing::allocation) return fate::lives;
  if (mine == chosen_call) failed.store(name);
  if (how == failing::by_death) ::raise(SIGKILL);
  if (how == failing::partially) return fate::halves;
  errno = number.load();
  return fate::fails;
}

bool fails(const char* name) noexcept { return next_call(name) == fate::fails; }

bool wants_unnamed_file(int flags) noexcept { return (flags & O_TMPFILE) == O_TMPFILE; }

// Whether `open` and `openat` have a mode as their last argument.
bool have_mode(int flags) noexcept { return (flags & O_CREAT) != 0 || wants_unnamed_file(flags); }

bool opening_fails(const char* name, int flags) noexcept {
  if (!wants_unnamed_file(flags) || unnamed_files) return fails(name);
  errno = EOPNOTSUPP;
  return true;
}

void seem_to_be_on_a_network(const char* path, struct statfs& about) noexcept {
  constexpr auto nfs = static_cast<decltype(about.f_type)>(0x6969);
  if (network_folder.empty()) return;
  if (std::strncmp(path, network_folder.c_str(), network_folder.size()) == 0) about.f_type = nfs;
}

void* allocate(std::size_t bytes, std::size_t alignment) {
  const std::uint64_t mine = allocations.fetch_add(1);
  if (how_now.load() == failing::allocation && mine == fail_at.load()) {
    failed.store("operator new");
    return nullptr;
  }
  if (bytes == 0) bytes = 1;
  if (alignment <= alignof(std::max_align_t)) return std::malloc(bytes);
  void* made = nullptr;
  return ::posix_memalign(&made, alignment, bytes) == 0 ? made : nullptr;
}

void* allocate_or_throw(std::size_t bytes, std::size_t alignment) {
  if (void* const made = allocate(bytes, alignment)) return made;
  throw std::bad_alloc();
}

}  // namespace

void fail_calls(failing how, std::uint64_t call, int error_number) {
  how_now = failing::nothing;
  calls = 0;
  allocations = 0;
  fail_at = call;
  number = error_number;
  failed = nullptr;
  how_now = how;
}

std::uint64_t stop_failing() {
  const failing how = how_now.exchange(failing::nothing);
  return how == failing::allocation ? allocations.load() : calls.load();
}

std::string failed_call() {
  const char* const name = failed.load();
  return name == nullptr ? "" : name;
}

void run_before_calls(call_hook hook) { hook_now = hook; }

void let_files_be_unnamed(bool allowed) { unnamed_files = allowed; }

void keep_free_blocks(bool kept) { blocks_kept = kept; }

void imitate_network_files(const std::string& folder) { network_folder = folder; }

void refuse_calls(const char* name, int error_number) {
  refused_with = error_number;
  refused = name;
}

}  // namespace shale::test

// ---- calls of the system: the linker sends NAME to __wrap_NAME, and __real_NAME to NAME ---------

#define SHALE_WRAP(type, name, parameters, ...)                  \
  extern "C" type __real_##name parameters;                      \
  extern "C" type __wrap_##name parameters;                      \
  extern "C" type __wrap_##name parameters {                     \
    if (shale::test::fails(#name)) return static_cast<type>(-1); \
    return __real_##name(__VA_ARGS__);                           \
  }

SHALE_WRAP(int, fstat, (int file, struct stat* about), file, about)
SHALE_WRAP(int, stat, (const char* path, struct stat* about), path, about)
SHALE_WRAP(int, fstatat, (int folder, const char* path, struct stat* about, int flags), folder,
           path, about, flags)

// A question for what a file is counts as the older call that asks the same.
extern "C" int __real_statx(int folder, const char* path, int flags, unsigned wanted,
                            struct statx* about);
extern "C" int __wrap_statx(int folder, const char* path, int flags, unsigned wanted,
                            struct statx* about);
extern "C" int __wrap_statx(int folder, const char* path, int flags, unsigned wanted,
                            struct statx* about) {
  const bool asks_what_it_is = (wanted & STATX_INO) != 0;
  if (shale::test::fails(!asks_what_it_is ? "statx" : *path == '\0' ? "fstat" : "fstatat"))
    return -1;
  return __real_statx(folder, path, flags, wanted, about);
}

SHALE_WRAP(int, fdatasync, (int file), file)
SHALE_WRAP(int, fsync, (int file), file)
SHALE_WRAP(int, ftruncate, (int file, off_t bytes), file, bytes)
SHALE_WRAP(int, fallocate, (int file, int mode, off_t offset, off_t bytes), file, mode, offset,
           bytes)
SHALE_WRAP(int, link, (const char* from, const char* to), from, to)
SHALE_WRAP(int, linkat, (int from, const char* name, int to, const char* other, int flags), from,
           name, to, other, flags)
SHALE_WRAP(int, rename, (const char* from, const char* to), from, to)
SHALE_WRAP(int, renameat, (int from, const char* name, int to, const char* other), from, name, to,
           other)
SHALE_WRAP(int, renameat2, (int from, const char* name, int to, const char* other, unsigned flags),
           from, name, to, other, flags)
SHALE_WRAP(int, msync, (void* address, std::size_t bytes, int flags), address, bytes, flags)
SHALE_WRAP(int, sync_file_range, (int file, off_t offset, off_t bytes, unsigned flags), file,
           offset, bytes, flags)
SHALE_WRAP(int, mprotect, (void* address, std::size_t bytes, int allowed), address, bytes, allowed)
SHALE_WRAP(int, madvise, (void* address, std::size_t bytes, int advice), address, bytes, advice)
SHALE_WRAP(int, mincore, (void* address, std::size_t bytes, unsigned char* pages), address, bytes,
           pages)
SHALE_WRAP(ssize_t, getxattr, (const char* path, const char* name, void* value, std::size_t bytes),
           path, name, value, bytes)
SHALE_WRAP(ssize_t, fgetxattr, (int file, const char* name, void* value, std::size_t bytes), file,
           name, value, bytes)
SHALE_WRAP(int, fsetxattr,
           (int file, const char* name, const void* value, std::size_t bytes, int flags), file,
           name, value, bytes, flags)
SHALE_WRAP(int, fremovexattr, (int file, const char* name), file, name)
SHALE_WRAP(ssize_t, getrandom, (void* into, std::size_t bytes, unsigned flags), into, bytes, flags)

extern "C" {

// The descriptor is closed even if close fails.
int __real_close(int file);
int __wrap_close(int file);
int __wrap_close(int file) {
  const bool fails = shale::test::fails("close");
  const int failure = errno;
  const int result = __real_close(file);
  if (!fails) return result;
  errno = failure;
  return -1;
}

int __real_fstatfs(int file, struct statfs* about);
int __wrap_fstatfs(int file, struct statfs* about);
int __wrap_fstatfs(int file, struct statfs* about) {
  if (shale::test::fails("fstatfs")) return -1;
  const int result = __real_fstatfs(file, about);
  if (result != 0 || shale::test::network_folder.empty()) return result;
  char link[32], path[4096] = "";
  std::snprintf(link, sizeof(link), "/proc/self/fd/%d", file);
  if (::readlink(link, path, sizeof(path) - 1) > 0)
    shale::test::seem_to_be_on_a_network(path, *about);
  return 0;
}

int __real_statfs(const char* path, struct statfs* about);
int __wrap_statfs(const char* path, struct statfs* about);
int __wrap_statfs(const char* path, struct statfs* about) {
  if (shale::test::fails("statfs")) return -1;
  const int result = __real_statfs(path, about);
  if (result == 0) shale::test::seem_to_be_on_a_network(path, *about);
  return result;
}

int __real_fstatvfs(int file, struct statvfs* about);
int __wrap_fstatvfs(int file, struct statvfs* about);
int __wrap_fstatvfs(int file, struct statvfs* about) {
  if (shale::test::fails("fstatvfs")) return -1;
  const int result = __real_fstatvfs(file, about);
  if (result == 0 && shale::test::blocks_kept) about->f_bavail = 0;
  return result;
}

int __real_posix_fallocate(int file, off_t offset, off_t bytes);
int __wrap_posix_fallocate(int file, off_t offset, off_t bytes);
int __wrap_posix_fallocate(int file, off_t offset, off_t bytes) {
  if (shale::test::fails("posix_fallocate")) return errno;
  return __real_posix_fallocate(file, offset, bytes);
}

void* __real_mmap(void* address, std::size_t bytes, int allowed, int flags, int file, off_t offset);
void* __wrap_mmap(void* address, std::size_t bytes, int allowed, int flags, int file, off_t offset);
void* __wrap_mmap(void* address, std::size_t bytes, int allowed, int flags, int file,
                  off_t offset) {
  if (shale::test::fails("mmap")) return MAP_FAILED;
  return __real_mmap(address, bytes, allowed, flags, file, offset);
}

ssize_t __real_pread(int file, void* into, std::size_t bytes, off_t offset);
ssize_t __wrap_pread(int file, void* into, std::size_t bytes, off_t offset);
ssize_t __wrap_pread(int file, void* into, std::size_t bytes, off_t offset) {
  const auto fate = shale::test::next_call("pread");
  if (fate == shale::test::fate::fails) return -1;
  if (fate == shale::test::fate::halves && bytes > 1) bytes /= 2;
  return __real_pread(file, into, bytes, offset);
}

ssize_t __real_pwrite(int file, const void* source, std::size_t bytes, off_t offset);
ssize_t __wrap_pwrite(int file, const void* source, std::size_t bytes, off_t offset);
ssize_t __wrap_pwrite(int file, const void* source, std::size_t bytes, off_t offset) {
  const auto fate = shale::test::next_call("pwrite");
  if (fate == shale::test::fate::fails) return -1;
  if (fate == shale::test::fate::halves && bytes > 1) bytes /= 2;
  return __real_pwrite(file, source, bytes, offset);
}

int __real_open(const char* path, int flags, ...);
int __wrap_open(const char* path, int flags, ...);
int __wrap_open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const unsigned mode = shale::test::have_mode(flags) ? va_arg(rest, unsigned) : 0;
  va_end(rest);
  if (shale::test::opening_fails("open", flags)) return -1;
  return __real_open(path, flags, mode);
}

int __real_openat(int folder, const char* path, int flags, ...);
int __wrap_openat(int folder, const char* path, int flags, ...);
int __wrap_openat(int folder, const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const unsigned mode = shale::test::have_mode(flags) ? va_arg(rest, unsigned) : 0;
  va_end(rest);
  if (shale::test::opening_fails("openat", flags)) return -1;
  return __real_openat(folder, path, flags, mode);
}

int __real_fcntl(int file, int command, ...);
int __wrap_fcntl(int file, int command, ...);
int __wrap_fcntl(int file, int command, ...) {
  va_list rest;
  va_start(rest, command);
  void* const argument = va_arg(rest, void*);
  va_end(rest);
  if (shale::test::fails("fcntl")) return -1;
  return __real_fcntl(file, command, argument);
}

}  // extern "C"

// ---- operator new -------------------------------------------------------------------------------

using shale::test::allocate;
using shale::test::allocate_or_throw;

constexpr std::size_t usual_alignment = alignof(std::max_align_t);

void* operator new(std::size_t bytes) { return allocate_or_throw(bytes, usual_alignment); }
void* operator new[](std::size_t bytes) { return allocate_or_throw(bytes, usual_alignment); }
void* operator new(std::size_t bytes, std::align_val_t to) {
  return allocate_or_throw(bytes, static_cast<std::size_t>(to));
}
void* operator new[](std::size_t bytes, std::align_val_t to) {
  return allocate_or_throw(bytes, static_cast<std::size_t>(to));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return allocate(bytes, usual_alignment);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return allocate(bytes, usual_alignment);
}
void* operator new(std::size_t bytes, std::align_val_t to, const std::nothrow_t&) noexcept {
  return allocate(bytes, static_cast<std::size_t>(to));
}
void* operator new[](std::size_t bytes, std::align_val_t to, const std::nothrow_t&) noexcept {
  return allocate(bytes, static_cast<std::size_t>(to));
}
void operator delete(void* address) noexcept { std::free(address); }
void operator delete[](void* address) noexcept { std::free(address); }
void operator delete(void* address, std::size_t) noexcept { std::free(address); }
void operator delete[](void* address, std::size_t) noexcept { std::free(address); }
void operator delete(void* address, std::align_val_t) noexcept { std::free(address); }
void operator delete[](void* address, std::align_val_t) noexcept { std::free(address); }
void operator delete(void* address, std::size_t, std::align_val_t) noexcept { std::free(address); }
void operator delete[](void* address, std::size_t, std::align_val_t) noexcept {
  std::free(address);
}
