#include "storage/files/awaited_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <utility>
#include <vector>

#include "core/never_destroyed.hpp"
#include "shale/error.hpp"
#include "storage/system/fork_safe_mutex.hpp"

namespace shale::detail {

namespace {

// The list of all awaited files. It is usable until the process ends, because static objects may
// own files.
struct awaited_list {
  fork_safe_mutex mutex;
  std::vector<awaited_file*> files;
  std::atomic<std::size_t> count = 0;

  static awaited_list& all() {
    static never_destroyed<awaited_list> only;
    return only.get();
  }
};

// Constructed at program start, so that no fork happens while another thread constructs it.
[[maybe_unused]] const awaited_list& made_at_load = awaited_list::all();

bool same_file(int one, int other) noexcept {
  const auto known = file_identity::of(one);
  return known && known == file_identity::of(other);
}

[[noreturn]] void throw_replaced(const std::string& shown) {
  throw error(errc::io, "another file has taken the place of the one that was written",
              {"file " + shown, "the file is written beside it, under a temporary name"});
}

}  // namespace

std::optional<file_identity> file_identity::of(int descriptor) noexcept {
  struct stat status {};
  if (descriptor < 0 || ::fstat(descriptor, &status) != 0) return std::nullopt;
  return file_identity{status.st_dev, status.st_ino};
}

awaited_file::awaited_file(std::string path) : path_(std::move(path)) {
  awaited_list& all = awaited_list::all();
  const std::lock_guard lock(all.mutex);
  all.files.push_back(this);
  all.count.store(all.files.size(), std::memory_order_relaxed);
}

awaited_file::~awaited_file() {
  awaited_list& all = awaited_list::all();
  const std::lock_guard lock(all.mutex);
  std::erase(all.files, this);
  all.count.store(all.files.size(), std::memory_order_relaxed);
}

void awaited_file::appeared(const std::string& path,
                            const std::optional<file_identity>& made) noexcept {
  awaited_list& all = awaited_list::all();
  if (all.count.load(std::memory_order_relaxed) == 0) return;
  const std::lock_guard lock(all.mutex);
  for (awaited_file* file : all.files) {
    if (file->path_ != path) continue;
    file->announced_ = made;
    file->unwatched_ = 0;
    file->is_missed_ = false;
    file->look_locked();
    file->is_missed_ = file->unwatched_ != 0;
  }
}

void awaited_file::appeared(const std::string& path, int made) noexcept {
  if (awaited_list::all().count.load(std::memory_order_relaxed) != 0)
    appeared(path, file_identity::of(made));
}

void awaited_file::look() noexcept {
  const std::lock_guard lock(awaited_list::all().mutex);
  look_locked();
}

void awaited_file::look_locked() noexcept {
  const int flags = O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  file_descriptor found = open_descriptor(path_, O_RDONLY | flags);
  if (!found && errno == EACCES) found = open_descriptor(path_, O_WRONLY | flags);
  if (!found) {
    if (errno != ENOENT) unwatched_ = errno;
    return;
  }
  if (announced_ && file_identity::of(found.get()) != announced_) {
    if (!watching_) unwatched_ = ESTALE;
    return;
  }
  if (watching_ && same_file(watching_.get(), found.get())) return;
  try {
    errors_ = write_back_record::of(found.get());
    watching_ = std::move(found);
    if (!is_missed_) unwatched_ = 0;
  } catch (...) {
    unwatched_ = ENOMEM;
  }
}

void awaited_file::sync(const std::string& shown) {
  if (!watching_) look();
  if (unwatched_ != 0 || !watching_) {
    const int failure = unwatched_ != 0 ? unwatched_ : ENOENT;
    throw error::from_errno(code_for_errno(failure), "cannot open the file to sync it", failure,
                            {"file " + shown});
  }
  check(shown);
  if (::fsync(watching_.get()) != 0) errors_->report({.error_number = errno});
  check(shown);
}

void awaited_file::require_name(int folder, const std::string& name,
                                const std::string& shown) const {
  struct stat named {};
  if (::fstatat(folder, name.c_str(), &named, AT_SYMLINK_NOFOLLOW) != 0)
    throw error::from_errno(
        code_for_errno(errno), "the file that was written cannot be found", errno,
        {"file " + shown, "the file is written beside it, under a temporary name"});
  if (!S_ISREG(named.st_mode))
    throw error(errc::invalid_argument, "only a regular file can be published", {"file " + shown});
  if (announced_ && (announced_->device != named.st_dev || announced_->inode != named.st_ino))
    throw_replaced(shown);
  struct stat known {};
  if (!watching_ || ::fstat(watching_.get(), &known) != 0) return;
  if (known.st_dev != named.st_dev || known.st_ino != named.st_ino) throw_replaced(shown);
}

void awaited_file::check(const std::string& shown) const {
  if (errors_) errors_->check(shown);
}

}  // namespace shale::detail
