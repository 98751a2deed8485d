#include "data/container_change.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "shale/unfinished_file.hpp"
#include "terminal/interrupt.hpp"

namespace shale::tools {

namespace {

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  if (from.empty()) return text;
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

// The failure with `to`, the name that the user knows, instead of `from`.
error renamed(const error& failure, const std::string& from, const std::string& to) {
  const std::string text = replaced(failure.what(), from, to);
  const std::size_t end = std::min(text.find('\n'), text.size());
  // "message [code]": the code is printed again by the new error.
  const std::size_t code = std::min(text.rfind(" [", end), end);
  error result(failure.code(), std::string_view(text).substr(0, code));
  for (std::size_t at = end + 1; at < text.size();) {
    const std::size_t next = std::min(text.find('\n', at), text.size());
    const std::size_t first = std::min(text.find_first_not_of(' ', at), next);
    result.add_detail(std::string_view(text).substr(first, next - first));
    at = next + 1;
  }
  return result;
}

// Gives a new file the owner, the group and the permissions of the one that it replaces.
// Returns  what could not be kept, because only root may change a file's owner
std::vector<std::string> copy_ownership(const std::string& from, const std::string& to) {
  struct stat old {};
  struct stat made {};
  if (::stat(from.c_str(), &old) != 0 || ::stat(to.c_str(), &made) != 0) return {};
  std::vector<std::string> not_kept;
  constexpr auto same = static_cast<uid_t>(-1);
  if (made.st_uid != old.st_uid && ::chown(to.c_str(), old.st_uid, same) != 0)
    not_kept.push_back(fmt::format("owner {}: the file is user {}'s now", old.st_uid, made.st_uid));
  if (made.st_gid != old.st_gid && ::chown(to.c_str(), same, old.st_gid) != 0)
    not_kept.push_back(
        fmt::format("group {}: the file is group {}'s now", old.st_gid, made.st_gid));
  // This comes last, because a change of the owner clears permissions. A failure leaves the new
  // file's own permissions. The other bits of the mode were meant for other bytes.
  static_cast<void>(::chmod(to.c_str(), old.st_mode & 0777));
  return not_kept;
}

std::uint64_t change_and_commit(container& file, transaction& next,
                                const std::function<void(transaction&)>& change) {
  change(next);
  std::uint64_t generation = 0;
  replace_target([&] { generation = next.commit(); });
  file.close();
  return generation;
}

// Another process may replace the container between the open and the lock, as compaction does. Then
// the new container is opened. The number of attempts has no limit, because an attempt fails only
// if another process has made progress. Each attempt waits for the lock for `wait_default`.
std::pair<container, transaction> begin_change(const std::string& file) {
  for (;;) {
    container present = container::open(file, open_mode::write);
    const std::string uuid = present.uuid();
    try {
      transaction change = present.begin();
      return {std::move(present), std::move(change)};
    } catch (const error& failure) {
      const bool replaced = failure.code() == errc::io && container::open(file).uuid() != uuid;
      if (!replaced) throw;
    }
  }
}

std::uint64_t fill_new(const unfinished_file& unfinished,
                       const std::function<void(transaction&)>& fill) {
  container made = unfinished.create([&] { return container::create(unfinished.path()); });
  transaction next = made.begin();
  return change_and_commit(made, next, fill);
}

// The advice "-f replaces it" would be wrong, because -f never replaces a container.
void publish(unfinished_file& made, const std::string& file) {
  try {
    made.publish();
  } catch (const error& failure) {
    if (failure.code() != errc::already_exists) throw;
    throw error(errc::already_exists,
                fmt::format("'{}' has been made by another process meanwhile", file),
                {"run the command again: it then changes that container"});
  }
}

}  // namespace

std::uint64_t change_container(const std::string& file,
                               const std::function<void(transaction&)>& change) {
  if (container::open_if_exists(file, open_mode::write))
    return change_existing_container(file, change);
  // A new container is filled under another name, so that a failure leaves none behind.
  unfinished_file unfinished(file, existing_file::refuse);
  const std::string path = unfinished.path();  // publishing clears it
  try {
    const std::uint64_t generation = fill_new(unfinished, change);
    publish(unfinished, file);
    return generation;
  } catch (const error& failure) {
    throw renamed(failure, path, file);
  }
}

std::uint64_t change_existing_container(const std::string& file,
                                        const std::function<void(transaction&)>& change) {
  auto [present, next] = begin_change(file);
  return change_and_commit(present, next, change);
}

std::vector<std::string> replace_container(const std::string& file,
                                           const std::function<void(transaction&)>& fill) {
  auto [present, hold] = begin_change(file);
  const unfinished_file unfinished(file, existing_file::replace);
  const std::string& path = unfinished.path();
  try {
    fill_new(unfinished, fill);
    std::vector<std::string> not_kept = copy_ownership(unfinished.target(), path);
    hold.replace_by(path);
    return not_kept;
  } catch (const error& failure) {
    throw renamed(failure, path, file);
  }
}

}  // namespace shale::tools
