#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <new>
#include <system_error>
#include <utility>
#include <vector>

#include "core/allocating.hpp"
#include "core/enumerator.hpp"
#include "core/held.hpp"
#include "core/never_destroyed.hpp"
#include "shale/error.hpp"
#include "shale/unfinished_file.hpp"
#include "storage/files/awaited_file.hpp"
#include "storage/files/file_descriptor.hpp"
#include "storage/files/file_rights.hpp"
#include "storage/files/folder_sync.hpp"
#include "storage/files/partial_path.hpp"
#include "storage/files/replaceable.hpp"
#include "storage/files/whole_path.hpp"
#include "storage/system/fork_handlers.hpp"

namespace shale {

namespace {

// The name of an unfinished file in a folder that is held open, so that it stays the same folder
// even if it is renamed. Only the process that made the object may remove the file. In a forked
// child, the fork handlers mark its copy. A child that was made without fork handlers (vfork,
// clone) is recognised by its process number.
struct name_in_folder {
  int folder;
  std::string name;
  pid_t maker = ::getpid();
  bool inherited = false;

  bool is_ours() const noexcept { return !inherited && maker == ::getpid(); }
  void remove() const noexcept { ::unlinkat(folder, name.c_str(), 0); }
};

// The nesting depth of creations in this thread: the code that makes a file may use another writer.
constinit thread_local int creations_here = 0;

// The list of all unfinished files, for a process that ends without running their destructors. The
// code that makes a file runs without the lock, because it belongs to the caller and may wait for
// other threads that make files. The list is never destroyed, because static objects may own
// unfinished files, and their destructors may write files.
struct unfinished_list {
  std::mutex mutex;
  std::vector<name_in_folder*> files;
  int makers = 0;       // number of threads inside a creation
  bool ending = false;  // no further thread may begin a creation
  std::condition_variable changed;

  static unfinished_list& all() {
    static detail::never_destroyed<unfinished_list> only;
    return only.get();
  }

  // A thread may wait here for others, so a fork_safe_mutex would not do. The lock is taken around
  // fork: a child that is forked while another thread holds it could never take it.
  unfinished_list() {
    static constexpr detail::fork_handlers handlers{[] { all().mutex.lock(); },
                                                    [] { all().mutex.unlock(); }, start_child};
    detail::on_fork(detail::forking_part::unfinished_files, handlers);
  }

 private:
  // The files belong to the parent, and the parent's other threads do not exist in the child. The
  // condition variable counts waiting threads, so it is constructed again.
  static void start_child() {
    unfinished_list& here = all();
    for (name_in_folder* file : here.files) file->inherited = true;
    here.files.clear();
    here.makers = creations_here > 0 ? 1 : 0;
    here.ending = false;
    ::new (static_cast<void*>(&here.changed)) std::condition_variable;
    here.mutex.unlock();
  }
};

// Constructed at program start, so that no fork happens while another thread constructs it.
[[maybe_unused]] const unfinished_list& made_at_load = unfinished_list::all();

void forget_unfinished(const name_in_folder& file) noexcept {
  unfinished_list& all = unfinished_list::all();
  const std::lock_guard lock(all.mutex);
  std::erase(all.files, &file);
}

[[noreturn]] void throw_exists(const std::string& target) {
  throw error(errc::already_exists, "the file exists",
              {"file " + target, "existing_file::replace would replace it"});
}

// Throws if no file can be created or renamed in the directory. Called before a file is made under
// a temporary name.
void require_writable(const std::string& directory, const std::string& target) {
  struct stat status {};
  int failure = ::stat(directory.c_str(), &status) == 0 ? 0 : errno;
  if (failure == 0 && !S_ISDIR(status.st_mode)) failure = ENOTDIR;
  if (failure == 0 && ::access(directory.c_str(), W_OK | X_OK) != 0) failure = errno;
  if (failure == 0) return detail::require_renames(directory, target);
  error refused = error::from_errno(code_for_errno(failure), "cannot create file", failure,
                                    {"file " + target, "directory " + directory});
  if (failure == ENOENT)
    refused.add_detail(fmt::format("make the folder first: mkdir -p {}", directory));
  throw refused;
}

// The absolute path, as seen from the present working directory.
std::string fixed(const std::string& path) {
  std::error_code unknown;  // if the working directory has no name, the path stays unchanged
  const auto absolute = std::filesystem::absolute(path, unknown);
  return unknown ? path : absolute.string();
}

[[noreturn]] void throw_owner_unknown(int failure, const std::string& target) {
  throw error::from_errno(code_for_errno(failure), "cannot tell the owner and the permissions",
                          failure, {"file " + target});
}

// Gives the new file, which is open as `made`, the owner, group and rights of the file that it
// replaces. If the process may not set owner or group, the file keeps those of the process. If
// another process has removed the old file, the new one gets the rights that the old one had at the
// beginning, `before`.
//
// A user who may write to the folder can put another file in the place of either name at any time.
// So the new file is reached by its descriptor. Owner and group are set only if the old file had
// them at the beginning. If another file has taken the old file's name, the new file gets only the
// permissions that both of them had, and an access list only if both had the same one.
std::optional<unfinished_file::owners> hand_on(int folder, const char* from, int made,
                                               const std::optional<detail::file_rights>& before,
                                               const std::string& target) {
  if (made < 0) return std::nullopt;  // only if there was no file at the beginning
  detail::file_rights now;
  const struct stat& old = now.status;
  struct stat about {};
  if (::fstat(made, &about) != 0) throw_owner_unknown(errno, target);
  const int failure = ::fstatat(folder, from, &now.status, AT_SYMLINK_NOFOLLOW) == 0 ? 0 : errno;
  if (failure != 0 && failure != ENOENT) throw_owner_unknown(failure, target);
  if (failure != 0 || !S_ISREG(old.st_mode)) {
    if (before) detail::give_rights(made, about.st_gid, *before, before->status.st_mode);
    return std::nullopt;
  }
  const bool same_user = before && before->status.st_uid == old.st_uid;
  const bool same_group = before && before->status.st_gid == old.st_gid;
  // A new file may get the inode number of a removed one, so the owners are compared too.
  const bool same_file = same_user && same_group && before->status.st_dev == old.st_dev &&
                         before->status.st_ino == old.st_ino;
  constexpr auto unchanged = static_cast<uid_t>(-1);
  unfinished_file::owners result{{old.st_uid, old.st_gid}, {about.st_uid, about.st_gid}};
  if (same_user && about.st_uid != old.st_uid && ::fchown(made, old.st_uid, unchanged) == 0)
    result.made.user = old.st_uid;
  if (same_group && about.st_gid != old.st_gid && ::fchown(made, unchanged, old.st_gid) == 0)
    result.made.group = old.st_gid;
  now.list = detail::access_list::of(folder, from, old);
  mode_t allowed = old.st_mode;
  if (!same_file) {
    allowed &= before ? before->status.st_mode : about.st_mode;
    const auto first = before ? before->list : detail::access_list::of(made);
    if (now.list != first) now.list = detail::access_list();
  }
  detail::give_rights(made, result.made.group, now, allowed);
  return result;
}

std::string last_part(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

// The state of an unfinished file until it is published.
struct unfinished_file::pending {
  pending(detail::file_descriptor opened, std::string for_place, const std::string& path,
          const std::optional<detail::file_rights>& replaced)
      : folder(std::move(opened)),
        place(std::move(for_place)),
        target(last_part(place)),
        before(replaced),
        partial{folder.get(), last_part(path)},
        awaited(path) {}

  const detail::file_descriptor folder;
  const std::string place;                          // the target's absolute path
  const std::string target;                         // the last part of `place`
  const std::optional<detail::file_rights> before;  // of the file to replace, if there was one
  name_in_folder partial;
  detail::awaited_file awaited;
};

unfinished_file::unfinished_file(const std::string& target, existing_file existing)
    : existing_(existing) {
  detail::allocating([&] {
    detail::require_enumerator(existing, existing_file::keep, "existing_file");
    if (existing == existing_file::keep)
      throw error(errc::invalid_argument, "an unfinished file is a new one: it keeps no old bytes",
                  {"file " + target, "wanted existing_file::replace or existing_file::refuse"});
    begin(target);
  });
}

void unfinished_file::begin(const std::string& target) {
  detail::require_whole_path(target);
  target_ = detail::path_after_links(target);
  struct stat status {};
  const int failure = ::stat(target_.c_str(), &status) == 0 ? 0 : errno;
  // After these three errors there is no file that this process can reach, and perhaps no folder,
  // which is checked below. After another failure there may be a file, whose permissions are
  // unknown. A name that is too long is refused here: the name of the partial file is cut to fit,
  // so the error would otherwise come only at the end.
  if (failure != 0 && failure != ENOENT && failure != ENOTDIR && failure != EACCES)
    throw error::from_errno(code_for_errno(failure), "cannot create file", failure,
                            {"file " + target_});
  if (failure == 0) {
    if (!S_ISREG(status.st_mode))
      throw error(errc::invalid_argument, "only regular files can be replaced",
                  {"file " + target_});
    if (existing_ == existing_file::refuse) throw_exists(target_);
    detail::require_replaceable(target_, status);
  }
  if (target_.empty() || target_.back() == '/')
    throw error(errc::invalid_argument, "not the name of a file", {"got '" + target + "'"});
  require_writable(detail::directory_of(target_), target);
  const std::string place = fixed(target_);
  const std::string folder = detail::directory_of(target_);
  // If the process may not list the folder, it can still write files there, but cannot sync the
  // folder.
  detail::file_descriptor opened = detail::open_descriptor(folder, O_RDONLY | O_DIRECTORY);
  if (!opened) opened = detail::open_descriptor(folder, O_PATH | O_DIRECTORY);
  if (!opened)
    throw error::from_errno(code_for_errno(errno), "cannot open folder", errno,
                            {"directory " + folder});
  std::string path = detail::partial_path(place);
  std::optional<detail::file_rights> before;
  if (failure == 0)
    before = detail::file_rights{
        status, detail::access_list::of(opened.get(), last_part(place).c_str(), status)};
  pending_ = std::make_shared<pending>(std::move(opened), place, path, before);
  unfinished_list& all = unfinished_list::all();
  const std::lock_guard lock(all.mutex);
  all.files.push_back(&pending_->partial);
  path_ = std::move(path);
}

unfinished_file::creation::creation() {
  if (creations_here++ > 0) return;
  unfinished_list& all = unfinished_list::all();
  std::unique_lock lock(all.mutex);
  all.changed.wait(lock, [&] { return !all.ending; });
  ++all.makers;
}

unfinished_file::creation::~creation() {
  if (--creations_here > 0) return;
  unfinished_list& all = unfinished_list::all();
  const std::lock_guard lock(all.mutex);
  if (--all.makers <= 1) all.changed.notify_all();
}

unfinished_file::~unfinished_file() {
  if (path_.empty() || !pending_->partial.is_ours()) return;
  pending_->partial.remove();
  forget_unfinished(pending_->partial);
}

unfinished_file::unfinished_file(unfinished_file&& other) noexcept
    : target_(std::exchange(other.target_, {})),
      path_(std::exchange(other.path_, {})),
      existing_(other.existing_),
      pending_(std::exchange(other.pending_, nullptr)) {}

unfinished_file& unfinished_file::operator=(unfinished_file&& other) noexcept {
  std::swap(target_, other.target_);
  std::swap(path_, other.path_);
  std::swap(existing_, other.existing_);
  std::swap(pending_, other.pending_);
  return *this;
}

void unfinished_file::require_pending() const {
  if (target_.empty()) detail::throw_moved_from("unfinished_file");
  if (path_.empty())
    throw error(errc::invalid_argument, "the file is published already", {"file " + target_});
  if (!pending_->partial.is_ours())
    throw error(
        errc::invalid_argument, "the unfinished file belongs to another process",
        {"this process was forked from it: create a new unfinished_file for file " + target_});
}

void unfinished_file::look() const noexcept { pending_->awaited.look(); }

unsigned unfinished_file::mode() const noexcept {
  return pending_ && pending_->before ? 0600 : 0666;
}

std::optional<unfinished_file::owners> unfinished_file::take_over_owner() {
  require_pending();
  return detail::allocating([&] {
    require_made();
    return existing_ == existing_file::replace
               ? hand_on(pending_->folder.get(), pending_->target.c_str(),
                         pending_->awaited.descriptor(), pending_->before, target_)
               : std::nullopt;
  });
}

// Throws unless the file that was made, and no other, is at path(), and can get the permissions of
// the file that it replaces.
void unfinished_file::require_made() const {
  if (pending_->awaited.descriptor() < 0) pending_->awaited.look();
  pending_->awaited.check(target_);
  pending_->awaited.require_name(pending_->folder.get(), pending_->partial.name, target_);
  if (pending_->before && pending_->awaited.descriptor() < 0)
    throw error(errc::io, "cannot open the file to give it the permissions of the old one",
                {"file " + target_});
}

void unfinished_file::publish() {
  require_pending();
  detail::allocating([&] { pending_->awaited.sync(target_); });
  publish_durable();
}

void unfinished_file::publish_durable() {
  require_pending();
  detail::allocating([&] { take_name(); });
}

void unfinished_file::take_name() {
  const std::shared_ptr<pending> here = pending_;
  const int folder = here->folder.get();
  const char* const temporary = here->partial.name.c_str();
  const char* const to = here->target.c_str();
  require_made();
  if (existing_ == existing_file::replace)
    hand_on(folder, to, here->awaited.descriptor(), here->before, target_);
  const unsigned flags = existing_ == existing_file::refuse ? RENAME_NOREPLACE : 0;
  if (::renameat2(folder, temporary, folder, to, flags) != 0) {
    if (errno == EEXIST) throw_exists(target_);
    // If the file system does not know the flag: making a hard link never replaces a file either.
    if (errno != EINVAL || flags == 0 || ::linkat(folder, temporary, folder, to, 0) != 0) {
      if (errno == EEXIST) throw_exists(target_);
      throw error::from_errno(detail::code_for_opened_file(errno),
                              "cannot give the finished file its name", errno, {"file " + target_});
    }
    here->partial.remove();
  }
  forget_unfinished(here->partial);
  path_.clear();
  pending_.reset();
  // It may be a file of another writer.
  detail::awaited_file::appeared(here->place, here->awaited.descriptor());
  if (const int failure = detail::sync_folder(folder); failure != 0)
    throw error::from_errno(errc::io, "cannot make the name durable", failure, {"file " + target_});
}

namespace {

// The process may end only when no thread is making a file: between the making of a file and its
// entry in the list, nobody could remove it. So this function closes a gate (`ending`), at which
// new creations wait, and waits until all creations that have begun are done. The caller ends the
// process while it holds the lock that it gets, so no creation can begin before that.
//
// The gate alone could wait for ever: a creation that has begun runs code of the user, and that
// code may wait for another thread, which waits at the gate. That case cannot be told from a slow
// one, so after one second the gate opens again and this function only waits for a moment at which
// no creation is running. One second is long for making a file and short for a user who ends the
// process. The value affects only the duration: both ways leave no unfinished file behind.
[[nodiscard]] std::unique_lock<std::mutex> remove_unfinished_files() noexcept {
  unfinished_list& all = unfinished_list::all();
  std::unique_lock lock(all.mutex);
  const auto none_but_here = [&] { return all.makers == (creations_here > 0 ? 1 : 0); };
  all.ending = true;
  if (!all.changed.wait_for(lock, std::chrono::seconds(1), none_but_here)) {
    all.ending = false;
    all.changed.notify_all();
    all.changed.wait(lock, none_but_here);
  }
  for (const name_in_folder* file : all.files)
    if (file->is_ours()) file->remove();
  return lock;
}

}  // namespace

void exit_without_unfinished_files(int status) noexcept {
  const std::unique_lock<std::mutex> held = remove_unfinished_files();
  ::_exit(status);
}

void raise_without_unfinished_files(int number) noexcept {
  const std::unique_lock<std::mutex> held = remove_unfinished_files();
  ::signal(number, SIG_DFL);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, number);
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  ::raise(number);
  // The first process of a PID namespace ignores signals whose default action would end it.
  ::_exit(128 + number);
}

}  // namespace shale
