// Advice for errors about array names: how a name is typed in an address.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "notation/address.hpp"
#include "shale/container.hpp"

namespace shale::tools {

/// Adds advice to `failure`, which did not find the array `wanted`: it lists similar names as they
/// are typed, if any of them is typed differently from how it is stored.
void explain_names(error& failure, const std::string& file, const snapshot& generation,
                   const std::string& wanted);

/// The array `name` of a container, which `source` names.
/// Throws   not_found with advice: a slice may have been meant as part of a name, or the reverse
array find_array(const snapshot& generation, const std::string& name, const address& source);

/// Runs `body`, which changes the array `name` of a container. If it throws not_found, the error
/// gets the advice of `explain_names`.
template <class Body>
void explaining_names(const std::string& file, const std::string& name, Body&& body) {
  try {
    body();
  } catch (error& failure) {
    if (failure.code() == errc::not_found)
      explain_names(failure, file, container::open(file).latest(), name);
    throw;
  }
}

/// How many names an error lists at most.
inline constexpr std::size_t listed_names_max = 8;

/// The names as they are typed: "a, b, c". If there are more than `listed_names_max`, the list ends
/// with an ellipsis.
std::string list_of_names(const std::vector<std::string>& names);

/// Whether any name is typed differently from how it is stored.
bool has_bracket_in(const std::vector<std::string>& names);

/// Runs `body`, which reads an array of `file`, an archive or a file of Torch7. Its error not_found
/// lists the names as they are stored; this adds how a '[' is typed.
template <class File, class Body>
auto explaining_members(const File& file, Body&& body) {
  try {
    return body();
  } catch (error& failure) {
    if (failure.code() == errc::not_found && has_bracket_in(file.names()))
      failure.add_detail("a '[' in a name is typed '[['");
    throw;
  }
}

}  // namespace shale::tools
