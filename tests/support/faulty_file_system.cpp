// An in-memory FUSE file system whose operations fail on command. `faulty_file_system DIRECTORY`
// mounts it there and prints "mounted". Then it reads commands, one per line, and answers each with
// "ok":
//
//   fail OPERATION FIRST LAST ERRNO   OPERATION is read, write, sync or allocate; fails from now on
//                                     where it touches a byte from FIRST to LAST
//   heal                              nothing fails any more
//
// It unmounts and ends at the end of its input. If it is killed, accesses to the directory fail
// with ENOTCONN.
#define FUSE_USE_VERSION 31

#include <fuse.h>
#include <linux/falloc.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace {

struct fault {
  off_t first = 0;
  off_t last = 0;
  int number = 0;
};

// This lock guards everything that follows.
std::mutex state;
std::map<std::string, fault> faults;
std::map<std::string, std::vector<char>> files;  // by name, with the leading slash

// Minus the errno with which the operation on [from, from + bytes) must fail, or 0.
int failure_of(const char* operation, off_t first, off_t bytes) {
  const auto found = faults.find(operation);
  if (found == faults.end()) return 0;
  const fault& injected = found->second;
  return first <= injected.last && first + bytes > injected.first ? -injected.number : 0;
}

std::vector<char>* find(const char* path) {
  const auto found = files.find(path);
  return found == files.end() ? nullptr : &found->second;
}

int get_attributes(const char* path, struct stat* about, fuse_file_info*) {
  const std::lock_guard lock(state);
  std::memset(about, 0, sizeof *about);
  if (std::strcmp(path, "/") == 0) {
    about->st_mode = S_IFDIR | 0755;
    about->st_nlink = 2;
    return 0;
  }
  const auto* const bytes = find(path);
  if (bytes == nullptr) return -ENOENT;
  about->st_mode = S_IFREG | 0644;
  about->st_nlink = 1;
  about->st_size = static_cast<off_t>(bytes->size());
  about->st_blocks = (about->st_size + 511) / 512;
  return 0;
}

int list(const char*, void* into, fuse_fill_dir_t fill, off_t, fuse_file_info*,
         fuse_readdir_flags) {
  const std::lock_guard lock(state);
  for (const auto& file : files)
    fill(into, file.first.c_str() + 1, nullptr, 0, static_cast<fuse_fill_dir_flags>(0));
  return 0;
}

int open_file(const char* path, fuse_file_info*) {
  const std::lock_guard lock(state);
  return find(path) != nullptr ? 0 : -ENOENT;
}

// Linux tells a file system late that a file was closed. Without `hard_remove`, the library renames a
// file that is removed before it hears of that, and here is no rename.
void* begin(fuse_conn_info*, fuse_config* config) {
  config->hard_remove = 1;
  return nullptr;
}

int create(const char* path, mode_t, fuse_file_info*) {
  const std::lock_guard lock(state);
  files[path];
  return 0;
}

int remove_file(const char* path) {
  const std::lock_guard lock(state);
  return files.erase(path) > 0 ? 0 : -ENOENT;
}

int resize(const char* path, off_t bytes, fuse_file_info*) {
  const std::lock_guard lock(state);
  auto* const file = find(path);
  if (file == nullptr) return -ENOENT;
  file->resize(static_cast<std::size_t>(bytes));
  return 0;
}

int read_bytes(const char* path, char* into, std::size_t bytes, off_t offset, fuse_file_info*) {
  const std::lock_guard lock(state);
  const auto* const file = find(path);
  if (file == nullptr) return -ENOENT;
  if (const int failure = failure_of("read", offset, static_cast<off_t>(bytes))) return failure;
  const auto first = std::min(static_cast<std::size_t>(offset), file->size());
  const auto count = std::min(bytes, file->size() - first);
  std::copy_n(file->begin() + static_cast<std::ptrdiff_t>(first), count, into);
  return static_cast<int>(count);
}

int write_bytes(const char* path, const char* source, std::size_t bytes, off_t offset,
                fuse_file_info*) {
  const std::lock_guard lock(state);
  auto* const file = find(path);
  if (file == nullptr) return -ENOENT;
  if (const int failure = failure_of("write", offset, static_cast<off_t>(bytes))) return failure;
  const auto first = static_cast<std::size_t>(offset);
  if (file->size() < first + bytes) file->resize(first + bytes);
  std::copy_n(source, bytes, file->begin() + offset);
  return static_cast<int>(bytes);
}

int synchronize(const char*, int, fuse_file_info*) {
  const std::lock_guard lock(state);
  return failure_of("sync", 0, std::numeric_limits<off_t>::max());
}

int allocate(const char* path, int mode, off_t first, off_t bytes, fuse_file_info*) {
  const std::lock_guard lock(state);
  auto* const file = find(path);
  if (file == nullptr) return -ENOENT;
  if (const int failure = failure_of("allocate", first, bytes)) return failure;
  const auto end = static_cast<std::size_t>(first + bytes);
  if (mode == 0) {
    if (file->size() < end) file->resize(end);
    return 0;
  }
  if (mode != (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE)) return -EOPNOTSUPP;
  if (static_cast<std::size_t>(first) < file->size())
    std::fill(file->begin() + first,
              file->begin() + static_cast<std::ptrdiff_t>(std::min(end, file->size())), '\0');
  return 0;
}

void obey(const std::string& directory) {
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream in(line);
    std::string verb, operation;
    fault injected;
    in >> verb >> operation >> injected.first >> injected.last >> injected.number;
    {
      const std::lock_guard lock(state);
      if (verb == "fail") faults[operation] = injected;
      else faults.clear();
    }
    std::puts("ok");
    std::fflush(stdout);
  }
  ::umount2(directory.c_str(), MNT_DETACH);
  std::_Exit(0);
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return 2;
  fuse_operations operations{};
  operations.init = begin;
  operations.getattr = get_attributes;
  operations.readdir = list;
  operations.open = open_file;
  operations.create = create;
  operations.unlink = remove_file;
  operations.truncate = resize;
  operations.read = read_bytes;
  operations.write = write_bytes;
  operations.fsync = synchronize;
  operations.fallocate = allocate;
  fuse_args none = FUSE_ARGS_INIT(0, nullptr);
  if (fuse_opt_add_arg(&none, arguments[0]) != 0) return 1;
  fuse* const served = fuse_new(&none, &operations, sizeof operations, nullptr);
  if (served == nullptr || fuse_mount(served, arguments[1]) != 0) return 1;
  std::thread(obey, std::string(arguments[1])).detach();
  std::puts("mounted");
  std::fflush(stdout);
  return fuse_loop(served);
}
