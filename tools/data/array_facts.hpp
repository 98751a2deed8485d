// Facts about an array, found without reading its elements.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/conventions.hpp"
#include "notation/address.hpp"
#include "shale/array.hpp"
#include "shale/logical_dtype.hpp"
#include "shale/npz.hpp"
#include "shale/snapshot.hpp"
#include "shale/t7.hpp"

namespace shale::tools {

/// Keys and stored values, as containers return them.
using attribute_list = std::vector<std::pair<std::string, std::string>>;

/// Adds "attributes", the values by their keys, and "attribute_kinds".
void add_attributes(nlohmann::json& to, const attribute_list& attributes);

struct array_facts {
  std::string name;     ///< empty if the file holds one array without a name
  std::string address;  ///< as it can be typed: a '[' in the name is doubled
  shale::dtype type = shale::dtype::float32;
  dims shape;                            ///< of the stored elements
  std::optional<logical_dtype> logical;  ///< what they stand for
  std::string kind;                      ///< "dense", "chunked", "mapped", "deflated", "level", …
  std::optional<dims> chunk_shape;
  std::string codec;               ///< empty if no codec encodes the elements
  std::uint64_t stored_bytes = 0;  ///< for an ASCII file of Torch7: bytes in memory
  std::uint64_t logical_bytes = 0;
  std::optional<std::string> fill_value;
  std::optional<std::uint64_t> modified;  ///< the generation that changed the array last
  attribute_list attributes;
  conventions by_convention;  ///< what some of the attributes say

  /// The reason why the elements cannot be read.
  std::optional<error> problem;

  /// False if only name, address and problem are known.
  bool described = true;

  /// The number of chunks that cover the shape, stored or not; nothing if the array has no chunks.
  std::optional<std::uint64_t> chunks() const;

  /// The name of the logical dtype, or else of the dtype; and the shape without an axis of
  /// characters.
  std::string type_name() const;
  dims shown_shape() const;

  /// Logical bytes per stored byte as text, "2.17"; "-" if no bytes are stored.
  std::string ratio() const;

  nlohmann::json to_json() const;
};

/// An array of that generation of a container.
array_facts describe_array(const snapshot& generation, const array& stored);

/// An array of a container. A damaged or unsupported one is described by its problem alone.
/// Throws   not_found, io
array_facts describe_array(const snapshot& generation, const std::string& name);

/// A member of an archive. A damaged or unsupported one is described by its problem alone.
/// Throws   io
array_facts describe_member(const npz_file& archive, const std::string& name);

/// The same, but the problem of the member is thrown.
/// Throws   not_found, unsupported, corrupt, io
array_facts describe_sound_member(const npz_file& archive, const std::string& name);

/// A tensor or a storage of a .t7 file. If several have the same path, the facts are the problem
/// alone.
array_facts describe_tensor(const t7_file& file, const std::string& name);

/// The same, but the problem is thrown.
/// Throws   not_found, unsupported
array_facts describe_sound_tensor(const t7_file& file, const std::string& name);

/// An .npy file. If its size does not match its header, the facts have a problem.
array_facts describe_npy(const std::string& file);

/// A raw file. If the address gives no dtype, the facts describe the bytes of the file.
/// Throws   what `read_raw` throws: invalid_argument for a folder, a pipe or a device
array_facts describe_raw(const address& source);

/// Prints the problem of each array that has one.
/// Returns  the exit code of the first problem, 0 if there is none
int note_problems(const std::vector<array_facts>& arrays);

/// The size of the file at `path`.
/// Throws   not_found, access_denied, io
std::uint64_t file_bytes(const std::string& path);

}  // namespace shale::tools
