#include "format/generations/replaced_file.hpp"

#include <fmt/format.h>

#include <cerrno>

#include "format/os/file_io.hpp"

namespace shale::format {

void require_same_container(const shared_file& now, const uuid& before) {
  if (now.id == before) return;
  throw container_replaced(
      errc::io, "another container has replaced this one",
      {"file " + now.path, "opened as " + to_string(before) + ", now " + to_string(now.id),
       "open it anew"});
}

std::optional<error> find_replaced(const shared_file& own, const char* outcome) {
  const bound_path& place = own.place;
  file_identity named;
  const os_result result =
      uninterrupted([&] { return place.files().identify(place.name(), named); });
  if (result >= 0 && named == own.identity) return std::nullopt;
  const auto text = [](const file_identity& identity) {
    return fmt::format("inode {} of device {}", identity.inode, identity.device);
  };
  const bool unknown = result < 0 && result != -ENOENT && result != -ENOTDIR;
  const char* const problem = result >= 0
                                  ? "the file was replaced by another one during the transaction"
                                  : "the file was renamed or removed during the transaction";
  error found = unknown
                    ? failure("cannot tell whether the file has its name", result, place.shown())
                    : error(errc::io, problem, {"file " + place.shown()});
  found.add_detail("the transaction changed " + text(own.identity));
  if (const std::string now = own.data->present_name(); !now.empty())
    found.add_detail("that file is now called " + now);
  if (!unknown)
    found.add_detail(result >= 0 ? "the name leads to " + text(named) : "the name leads nowhere");
  found.add_detail(outcome);
  found.add_detail(
      "replace a container only while nobody writes to it, as `shale convert --replace`"
      " does");
  return found;
}

error name_changes_too_often(const std::string& path) {
  return error(errc::io, "the name changes too often",
               {"file " + path, "it led to another file whenever it was looked up"});
}

}  // namespace shale::format
