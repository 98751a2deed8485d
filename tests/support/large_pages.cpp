// A library that is preloaded into a test program. It makes a kernel with pages of 4 KiB behave
// like one with pages of SHALE_LARGE_PAGE_BYTES bytes (16384 or 65536), as kernels of ARM64 and
// POWER may have.
//
//   pages.1  sysconf, getpagesize and getauxval return the large size
//   pages.2  file offsets, fixed addresses, and the first addresses of all other calls must be
//            multiples of it, else EINVAL; new mappings begin at such an address
//   pages.3  lengths are rounded up to it, so that a call for a part of a page affects the whole
//            page
//   pages.4  a page is resident as a whole; only whole pages are dropped from the page cache
//   pages.5  the page that contains the end of a file can be accessed completely: after the file
//            it shows zeros. Only pages completely after the end raise SIGBUS
//
// It does not imitate everything. Bytes that were stored or read after the end of the file keep
// their values when the file grows over them. A device error in the last small pages of a large
// page looks like the end of the file. The C library's own mappings (heap, stacks) keep small
// pages, and each small page of a file is written to its device separately.
//
// It uses only system calls, because some of these functions run in a handler of SIGBUS.
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

namespace {

constexpr std::uintptr_t small_page = 4096;
std::uintptr_t page = small_page;  // set before main, and before any constructor of the program

// Returns -errno or the result.
long direct(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) {
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  long result;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
}

long with_errno(long result) {
  if (result >= 0 || result < -4095) return result;
  errno = static_cast<int>(-result);
  return -1;
}

bool is_aligned(std::uintptr_t value) { return value % page == 0; }
std::uintptr_t up(std::uintptr_t value) { return (value + page - 1) / page * page; }
std::uintptr_t number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

// ---- mapping ------------------------------------------------------------------------------------

long map(std::uintptr_t address, std::uintptr_t length, long protection, long flags,
         long descriptor, long offset) {
  const bool fixed = (flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) != 0;
  if (!is_aligned(static_cast<std::uintptr_t>(offset)) || (fixed && !is_aligned(address)))
    return -EINVAL;
  if (length == 0) return -EINVAL;
  if (up(length) < length || up(length) + page < length) return -ENOMEM;
  length = up(length);
  const auto rounded = [&](std::uintptr_t start, long how) {
    return direct(SYS_mmap, static_cast<long>(start), static_cast<long>(length), protection, how,
                  descriptor, offset);
  };
  if (fixed) return rounded(address, flags);
  // The aligned address lies inside a range that is larger by a page.
  const long found = direct(SYS_mmap, 0, static_cast<long>(length + page), PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (found < 0) return found;
  const auto first = static_cast<std::uintptr_t>(found);
  const std::uintptr_t start = up(first);
  if (start > first) direct(SYS_munmap, found, static_cast<long>(start - first));
  const std::uintptr_t after = first + page - start;
  if (after > 0) direct(SYS_munmap, static_cast<long>(start + length), static_cast<long>(after));
  const long mapped = rounded(start, flags | MAP_FIXED);
  if (mapped < 0) direct(SYS_munmap, static_cast<long>(start), static_cast<long>(length));
  return mapped;
}

// A system call for a range of addresses.
long on_range(long call, std::uintptr_t address, std::uintptr_t length, long more = 0) {
  if (!is_aligned(address)) return -EINVAL;
  return direct(call, static_cast<long>(address), static_cast<long>(up(length)), more);
}

long populate_small(std::uintptr_t address, long advice) {
  return direct(SYS_madvise, static_cast<long>(address), small_page, advice);
}

// Whether the file ends before `address`: no byte from `address` to the end of its large page can
// be loaded. The first bytes of that large page must be accessible.
bool is_behind_end(std::uintptr_t address) {
  const std::uintptr_t first = address / page * page;
  address = address / small_page * small_page;
  if (address == first || populate_small(first, MADV_POPULATE_READ) != 0) return false;
  for (; address < first + page; address += small_page)
    if (populate_small(address, MADV_POPULATE_READ) != -EFAULT) return false;
  return true;
}

// pages.5
long populate(std::uintptr_t address, std::uintptr_t length, long advice) {
  const long all = on_range(SYS_madvise, address, length, advice);
  if (all != -EFAULT) return all;
  const std::uintptr_t end = address + up(length);
  for (; address < end; address += small_page) {
    const long one = populate_small(address, advice);
    if (one == 0) continue;
    if (one != -EFAULT || !is_behind_end(address)) return one;
    address = up(address) - small_page;
  }
  return 0;
}

long advise(std::uintptr_t address, std::uintptr_t length, long advice) {
  if (advice == MADV_POPULATE_READ || advice == MADV_POPULATE_WRITE)
    return populate(address, length, advice);
  return on_range(SYS_madvise, address, length, advice);
}

// pages.4
long residency(std::uintptr_t address, std::uintptr_t length, unsigned char* vector) {
  if (!is_aligned(address)) return -EINVAL;
  const std::uintptr_t end = address + up(length);
  for (; address < end; address += page) {
    unsigned char small[65536 / small_page];
    const long result = direct(SYS_mincore, static_cast<long>(address), static_cast<long>(page),
                               reinterpret_cast<long>(small));
    if (result < 0) return result;
    *vector++ = std::any_of(small, small + page / small_page,
                            [](unsigned char byte) { return (byte & 1) != 0; });
  }
  return 0;
}

long remap(std::uintptr_t address, std::uintptr_t old_length, std::uintptr_t length, long flags,
           std::uintptr_t to) {
  if (!is_aligned(address) || ((flags & MREMAP_FIXED) != 0 && !is_aligned(to))) return -EINVAL;
  if ((flags & MREMAP_MAYMOVE) != 0 && (flags & MREMAP_FIXED) == 0) {
    // A new, aligned address.
    const long place = map(0, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (place < 0) return place;
    to = static_cast<std::uintptr_t>(place);
    flags |= MREMAP_FIXED;
  }
  return direct(SYS_mremap, static_cast<long>(address), static_cast<long>(up(old_length)),
                static_cast<long>(up(length)), flags, static_cast<long>(to));
}

// ---- the end of a file (pages.5) ----------------------------------------------------------------

// The protection of the mapping at `address`, from /proc/self/maps; -1 if there is none.
int protection_at(std::uintptr_t address) {
  const long maps =
      direct(SYS_open, reinterpret_cast<long>("/proc/self/maps"), O_RDONLY | O_CLOEXEC);
  if (maps < 0) return -1;
  std::uintptr_t bounds[2] = {0, 0};
  int field = 0;  // 0, 1: the bounds; 2: the rights; 3: the rest of the line
  int protection = 0;
  int answer = -1;
  char text[1024];
  for (long count; answer < 0 && (count = direct(SYS_read, maps, reinterpret_cast<long>(text),
                                                 sizeof text)) > 0;) {
    for (long i = 0; i < count && answer < 0; ++i) {
      const char c = text[i];
      if (c == '\n') {
        if (bounds[0] <= address && address < bounds[1]) answer = protection;
        bounds[0] = bounds[1] = 0;
        field = protection = 0;
      } else if (field < 2 && (c == '-' || c == ' ')) {
        ++field;
      } else if (field < 2) {
        bounds[field] =
            bounds[field] * 16 + static_cast<std::uintptr_t>(c <= '9' ? c - '0' : c - 'a' + 10);
      } else if (field == 2) {
        if (c == 'r') protection |= PROT_READ;
        if (c == 'w') protection |= PROT_WRITE;
        if (c == ' ') field = 3;
      }
    }
  }
  direct(SYS_close, maps);
  return answer;
}

bool show_zeros(std::uintptr_t address) {
  if (!is_behind_end(address)) return false;
  const int protection = protection_at(address);
  if (protection < 0) return false;
  address = address / small_page * small_page;
  return direct(SYS_mmap, static_cast<long>(address), static_cast<long>(up(address + 1) - address),
                protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) >= 0;
}

using sigaction_function = int(int, const struct sigaction*, struct sigaction*);

sigaction_function& real_sigaction() {
  static auto* const found = reinterpret_cast<sigaction_function*>(::dlsym(RTLD_NEXT, "sigaction"));
  return *found;
}

struct sigaction programs;  // the action of SIGBUS that the program has set

void handle(int signal_number, siginfo_t* about, void* context) {
  const int before = errno;
  const bool done = about->si_code == BUS_ADRERR && show_zeros(number(about->si_addr));
  errno = before;
  if (done) return;
  const struct sigaction next = programs;
  if ((next.sa_flags & SA_SIGINFO) != 0) return next.sa_sigaction(signal_number, about, context);
  if (next.sa_handler != SIG_DFL && next.sa_handler != SIG_IGN)
    return next.sa_handler(signal_number);
  if (next.sa_handler == SIG_IGN && about->si_code <= 0) return;
  // On return the access faults again; a signal that was sent is sent again.
  struct sigaction by_default {};
  by_default.sa_handler = SIG_DFL;
  real_sigaction()(signal_number, &by_default, nullptr);
  if (about->si_code <= 0) ::raise(signal_number);
}

void install(const struct sigaction& wanted) {
  struct sigaction ours = wanted;
  ours.sa_sigaction = handle;
  ours.sa_flags = static_cast<int>((wanted.sa_flags | SA_SIGINFO) & ~SA_RESETHAND);
  real_sigaction()(SIGBUS, &ours, nullptr);
}

[[gnu::constructor(101)]] void start() {
  if (const char* const wanted = std::getenv("SHALE_LARGE_PAGE_BYTES"))
    page = std::strtoul(wanted, nullptr, 10);
  if (page != 16384 && page != 65536) {
    constexpr char text[] = "SHALE_LARGE_PAGE_BYTES is neither 16384 nor 65536\n";
    direct(SYS_write, 2, reinterpret_cast<long>(text), sizeof text - 1);
    ::_exit(127);
  }
  real_sigaction()(SIGBUS, nullptr, &programs);
  install(programs);
}

}  // namespace

// ---- replacements for functions of the C library -----------------------------------------------

extern "C" {

void* mmap(void* address, std::size_t length, int protection, int flags, int descriptor,
           off_t offset) noexcept {
  return reinterpret_cast<void*>(
      with_errno(map(number(address), length, protection, flags, descriptor, offset)));
}
void* mmap64(void* address, std::size_t length, int protection, int flags, int descriptor,
             off_t offset) noexcept {
  return mmap(address, length, protection, flags, descriptor, offset);
}
int munmap(void* address, std::size_t length) noexcept {
  return static_cast<int>(with_errno(on_range(SYS_munmap, number(address), length)));
}
int mprotect(void* address, std::size_t length, int protection) noexcept {
  return static_cast<int>(with_errno(on_range(SYS_mprotect, number(address), length, protection)));
}
int msync(void* address, std::size_t length, int flags) {
  return static_cast<int>(with_errno(on_range(SYS_msync, number(address), length, flags)));
}
int madvise(void* address, std::size_t length, int advice) noexcept {
  return static_cast<int>(with_errno(advise(number(address), length, advice)));
}
int mincore(void* address, std::size_t length, unsigned char* vector) noexcept {
  return static_cast<int>(with_errno(residency(number(address), length, vector)));
}
void* mremap(void* address, std::size_t old_length, std::size_t length, int flags, ...) noexcept {
  std::va_list more;
  va_start(more, flags);
  const std::uintptr_t to = (flags & MREMAP_FIXED) != 0 ? number(va_arg(more, void*)) : 0;
  va_end(more);
  return reinterpret_cast<void*>(with_errno(remap(number(address), old_length, length, flags, to)));
}

// pages.4. Returns 0 or an errno.
int posix_fadvise(int descriptor, off_t offset, off_t length, int advice) noexcept {
  if (advice == POSIX_FADV_DONTNEED && length > 0) {
    const auto end = static_cast<std::uintptr_t>(offset + length);
    const std::uintptr_t first = up(static_cast<std::uintptr_t>(offset));
    // The end of the file counts as the end of a page.
    struct stat about {};
    const bool known = direct(SYS_fstat, descriptor, reinterpret_cast<long>(&about)) == 0;
    const bool to_the_end = known && end >= static_cast<std::uintptr_t>(about.st_size);
    const std::uintptr_t last = to_the_end ? up(end) : end / page * page;
    if (last <= first) return 0;
    offset = static_cast<off_t>(first);
    length = static_cast<off_t>(last - first);
  }
  return static_cast<int>(-direct(SYS_fadvise64, descriptor, offset, length, advice));
}

long sysconf(int name) noexcept {
  static auto* const real = reinterpret_cast<long (*)(int)>(::dlsym(RTLD_NEXT, "sysconf"));
  if (name == _SC_PAGESIZE) return static_cast<long>(page);
  const long answer = real(name);
  const bool counts_pages = name == _SC_PHYS_PAGES || name == _SC_AVPHYS_PAGES;
  return counts_pages && answer > 0 ? answer / static_cast<long>(page / small_page) : answer;
}
int getpagesize() noexcept { return static_cast<int>(page); }
unsigned long getauxval(unsigned long type) noexcept {
  static auto* const real =
      reinterpret_cast<unsigned long (*)(unsigned long)>(::dlsym(RTLD_NEXT, "getauxval"));
  return type == AT_PAGESZ ? page : real(type);
}

int sigaction(int signal_number, const struct sigaction* wanted, struct sigaction* old) noexcept {
  if (signal_number != SIGBUS) return real_sigaction()(signal_number, wanted, old);
  const struct sigaction before = programs;
  if (wanted != nullptr) {
    programs = *wanted;
    install(programs);
  }
  if (old != nullptr) *old = before;
  return 0;
}
sighandler_t signal(int signal_number, sighandler_t handler) noexcept {
  struct sigaction wanted {};
  struct sigaction old {};
  wanted.sa_handler = handler;
  wanted.sa_flags = SA_RESTART;
  return sigaction(signal_number, &wanted, &old) == 0 ? old.sa_handler : SIG_ERR;
}

long syscall(long call, ...) noexcept {
  std::va_list more;
  va_start(more, call);
  long a[6];
  for (long& argument : a) argument = va_arg(more, long);
  va_end(more);
  const auto address = static_cast<std::uintptr_t>(a[0]);
  const auto length = static_cast<std::uintptr_t>(a[1]);
  switch (call) {
    case SYS_mmap:
      return with_errno(map(address, length, a[2], a[3], a[4], a[5]));
    case SYS_munmap:
    case SYS_mprotect:
    case SYS_msync:
      return with_errno(on_range(call, address, length, a[2]));
    case SYS_madvise:
      return with_errno(advise(address, length, a[2]));
    case SYS_mincore:
      return with_errno(residency(address, length, reinterpret_cast<unsigned char*>(a[2])));
    case SYS_mremap:
      return with_errno(remap(address, length, static_cast<std::uintptr_t>(a[2]), a[3],
                              static_cast<std::uintptr_t>(a[4])));
    default:
      return with_errno(direct(call, a[0], a[1], a[2], a[3], a[4], a[5]));
  }
}

}  // extern "C"
