#include "data/array_facts.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "data/json_value.hpp"
#include "data/raw_options.hpp"
#include "notation/attribute.hpp"
#include "notation/codec_text.hpp"
#include "shale/npy.hpp"
#include "shale/raw.hpp"
#include "terminal/output.hpp"
#include "terminal/table.hpp"

namespace shale::tools {

namespace {

array_facts describe_header(const npy_header& header, std::string kind) {
  array_facts facts;
  facts.type = header.dtype;
  facts.shape = header.shape;
  facts.logical = header.logical;
  facts.kind = std::move(kind);
  if (header.fortran_order) facts.kind += ", Fortran order";
  if (header.byte_order != std::endian::little) facts.kind += ", big-endian";
  facts.logical_bytes = facts.stored_bytes = header.data_bytes();
  return facts;
}

// Returns the result of `describe`. If the array is damaged or of a later version, returns only its
// problem: the other arrays of the file can still be read.
template <class Describe>
array_facts described_or_problem(const std::string& name, Describe&& describe) {
  try {
    return describe();
  } catch (const error& failure) {
    if (failure.code() != errc::unsupported && failure.code() != errc::corrupt) throw;
    array_facts facts;
    facts.name = name;
    facts.problem = failure;
    facts.described = false;
    return facts;
  }
}

}  // namespace

void add_attributes(nlohmann::json& to, const attribute_list& attributes) {
  nlohmann::json values = nlohmann::json::object();
  nlohmann::json kinds = nlohmann::json::object();
  for (const auto& [key, stored] : attributes) {
    nlohmann::json& shown = values[as_utf8(key)] = attribute_json(stored);
    if (shown.is_string()) shown = as_utf8(shown.get<std::string>());
    kinds[as_utf8(key)] = attribute_kind_name(stored);
  }
  to["attributes"] = std::move(values);
  to["attribute_kinds"] = std::move(kinds);
}

std::string array_facts::ratio() const {
  if (stored_bytes == 0) return "-";
  return fmt::format("{:.2f}",
                     static_cast<double>(logical_bytes) / static_cast<double>(stored_bytes));
}

std::string array_facts::type_name() const {
  return logical ? shale::name(*logical, shape) : std::string(shale::name(type));
}

dims array_facts::shown_shape() const { return logical ? logical_shape(*logical, shape) : shape; }

std::optional<std::uint64_t> array_facts::chunks() const {
  if (!chunk_shape) return std::nullopt;
  index_t count = 1;
  for (index_t axis = 0; axis < shape.size(); ++axis)
    count *= ceil_div(shape[axis], std::max<index_t>((*chunk_shape)[axis], 1));
  return static_cast<std::uint64_t>(count);
}

nlohmann::json array_facts::to_json() const {
  nlohmann::json json{{"name", name}, {"address", address}};
  if (problem) {
    json["code"] = shale::name(problem->code());
    json["problem"] = problem->what();
  }
  if (kind == "level") json["kind"] = kind;
  if (!described) return json;
  json["dtype"] = shale::name(type);
  json["shape"] = tools::to_json(shape);
  if (logical) {
    json["logical_dtype"] = type_name();
    json["logical_shape"] = tools::to_json(shown_shape());
  }
  json["kind"] = kind;
  json["stored_bytes"] = stored_bytes;
  json["logical_bytes"] = logical_bytes;
  add_attributes(json, attributes);
  by_convention.add_to(json);
  if (chunk_shape) json["chunk_shape"] = tools::to_json(*chunk_shape);
  if (const auto count = chunks()) json["chunks"] = *count;
  if (!codec.empty()) json["codec"] = codec;
  if (fill_value) json["fill_value"] = *fill_value;
  if (modified) json["modified"] = *modified;
  return json;
}

array_facts describe_array(const snapshot& generation, const array& stored) {
  array_facts facts;
  facts.name = stored.name();
  facts.type = stored.dtype();
  facts.shape = stored.shape();
  facts.logical_bytes = stored.size_bytes();
  facts.stored_bytes = stored.stored_bytes();
  facts.modified = stored.modified();
  facts.attributes = stored.attributes();
  facts.by_convention = conventions_of(generation, stored);
  facts.logical = facts.by_convention.logical;
  facts.kind = "dense";
  if (stored.kind() == array_kind::chunked) {
    facts.kind = "chunked";
    facts.chunk_shape = stored.chunk_shape();
    facts.codec = format_codec(stored.codec(), stored.dtype());
    facts.fill_value = stored.fill_value().to_string();
  }
  return facts;
}

array_facts describe_sound_member(const npz_file& archive, const std::string& name) {
  const npz_member member = archive.inspect(name);
  const bool packed = member.compression == npz_compression::deflate;
  array_facts facts = describe_header(member.header, packed ? "deflated" : "stored");
  facts.name = member.name;
  facts.stored_bytes = member.stored_bytes;
  return facts;
}

array_facts describe_array(const snapshot& generation, const std::string& name) {
  return described_or_problem(name,
                              [&] { return describe_array(generation, generation.at(name)); });
}

array_facts describe_member(const npz_file& archive, const std::string& name) {
  return described_or_problem(name, [&] { return describe_sound_member(archive, name); });
}

array_facts describe_sound_tensor(const t7_file& file, const std::string& name) {
  const t7_array array = file.inspect(name);
  array_facts facts;
  facts.name = array.name;
  facts.type = array.dtype;
  facts.shape = array.layout.shape();
  facts.kind = array.kind == t7_kind::storage ? "storage" : "tensor";
  if (!array.layout.is_contiguous()) facts.kind += ", strided";
  if (file.encoding() == t7_encoding::ascii) facts.kind += ", ASCII";
  facts.logical_bytes =
      static_cast<std::uint64_t>(array.layout.size()) * std::uint64_t{item_bytes(array.dtype)};
  facts.stored_bytes = array.storage_bytes;
  return facts;
}

array_facts describe_tensor(const t7_file& file, const std::string& name) {
  try {
    return describe_sound_tensor(file, name);
  } catch (const error& failure) {
    // The other arrays can still be read.
    if (failure.code() != errc::unsupported) throw;
    array_facts facts;
    facts.name = name;
    facts.problem = failure;
    facts.described = false;
    return facts;
  }
}

array_facts describe_npy(const std::string& file) {
  const npy_header header = inspect_npy(file);
  array_facts facts = describe_header(header, fmt::format("npy {}.0", header.version));
  const std::uint64_t bytes = file_bytes(file);
  const std::uint64_t present = bytes - std::min<std::uint64_t>(bytes, header.data_offset);
  if (present == facts.logical_bytes) return facts;
  facts.stored_bytes = std::min(present, facts.logical_bytes);
  try {
    read_npy(file);
  } catch (const error& failure) {
    facts.problem = failure;
  }
  return facts;
}

array_facts describe_raw(const address& source) {
  array_facts facts;
  if (!source.raw_dtype) {
    // This reads no element, but throws if the path is not a regular file: a folder, a pipe, a
    // device.
    static_cast<void>(read_raw(source.file, dtype::uint8, {.shape = dims{0}}));
    facts.type = dtype::uint8;
    facts.kind = "raw bytes";
    facts.logical_bytes = facts.stored_bytes = file_bytes(source.file);
    facts.shape = {static_cast<index_t>(facts.stored_bytes)};
    return facts;
  }
  const tensor elements = read_raw_file(source);
  facts.type = elements.dtype();
  facts.shape = elements.shape();
  facts.kind = "raw";
  facts.logical_bytes = facts.stored_bytes = elements.size_bytes();
  return facts;
}

int note_problems(const std::vector<array_facts>& arrays) {
  int code = exit_success;
  for (const array_facts& array : arrays) {
    if (!array.problem) continue;
    note(fmt::format("shale: {}", array.problem->what()));
    if (code == exit_success) code = code_of(*array.problem);
  }
  return code;
}

std::uint64_t file_bytes(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0)
    throw error::from_errno(code_for_errno(errno), "cannot open file", errno, {"file " + path});
  return static_cast<std::uint64_t>(status.st_size);
}

}  // namespace shale::tools
