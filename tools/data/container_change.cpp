#include "data/container_change.hpp"

#include <fmt/format.h>

#include <optional>

#include "shale/unfinished_file.hpp"
#include "terminal/interrupt.hpp"

namespace shale::tools {

namespace {

// The owner and the group that the new file could not get, because only root may change them.
std::vector<std::string> not_kept(const std::optional<unfinished_file::owners>& owners) {
  std::vector<std::string> lines;
  if (!owners) return lines;
  const auto& [old, made] = *owners;
  if (made.user != old.user)
    lines.push_back(fmt::format("owner {}: the file is user {}'s now", old.user, made.user));
  if (made.group != old.group)
    lines.push_back(fmt::format("group {}: the file is group {}'s now", old.group, made.group));
  return lines;
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
  container made = unfinished.create([&] {
    constexpr unsigned permissions_of_containers = 0644;
    return container::create(unfinished.path(), open_mode::write,
                             unfinished.mode() & permissions_of_containers);
  });
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
  const std::uint64_t generation =
      unfinished.naming_target([&] { return fill_new(unfinished, change); });
  unfinished.naming_target([&] { publish(unfinished, file); });
  return generation;
}

std::uint64_t change_existing_container(const std::string& file,
                                        const std::function<void(transaction&)>& change) {
  auto [present, next] = begin_change(file);
  return change_and_commit(present, next, change);
}

std::vector<std::string> replace_container(const std::string& file,
                                           const std::function<void(transaction&)>& fill) {
  auto begun = begin_change(file);
  transaction& hold = begun.second;
  unfinished_file unfinished(file, existing_file::replace);
  return unfinished.naming_target([&] {
    fill_new(unfinished, fill);
    const auto owners = unfinished.take_over_owner();
    hold.replace_by(unfinished.path());
    return not_kept(owners);
  });
}

}  // namespace shale::tools
