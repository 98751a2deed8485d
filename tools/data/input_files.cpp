#include "data/input_files.hpp"

#include <fmt/format.h>

#include "data/logical.hpp"
#include "data/name_advice.hpp"
#include "data/raw_options.hpp"
#include "shale/npy.hpp"

namespace shale::tools {

namespace {

operand operand_of(const address& source, const tensor& whole,
                   const std::optional<logical_dtype>& logical = std::nullopt) {
  tensor elements = whole;
  if (source.index)
    elements = with_context([&] { return "slice " + source.text; },
                            [&] { return whole.index(*source.index); });
  return {.location = source,
          .values = expr(elements),
          .elements = elements,
          .stored = {},
          .logical = logical_of_slice(logical, source.index, whole.rank())};
}

// The name in the address, or the only name in the file.
std::string name_in(const address& source, const std::vector<std::string>& names) {
  if (!source.array.empty()) return source.array;
  if (names.size() == 1) return names.front();
  throw_no_array(source.text, names.empty() ? "the file holds none"
                                            : fmt::format("write {}:NAME; there are {}",
                                                          source.file, list_of_names(names)));
}

}  // namespace

input_files::opened_container& input_files::container_at(const std::string& file) {
  const auto found = containers_.find(file);
  if (found != containers_.end()) return found->second;
  const container handle = container::open(file, mode_);
  return containers_.emplace(file, opened_container{handle, handle.latest()}).first->second;
}

const npz_file& input_files::archive_at(const std::string& file) {
  const auto found = archives_.find(file);
  if (found != archives_.end()) return found->second;
  return archives_.emplace(file, npz_file::open(file)).first->second;
}

const t7_file& input_files::torch_file_at(const std::string& file) {
  const auto found = torch_files_.find(file);
  if (found != torch_files_.end()) return found->second;
  return torch_files_.emplace(file, t7_file::open(file)).first->second;
}

const snapshot& input_files::generation_of(const std::string& file) {
  return container_at(file).generation;
}

const container& input_files::container_of(const std::string& file) {
  return container_at(file).file;
}

operand input_files::open_array(const address& source) {
  const snapshot& generation = container_at(source.file).generation;
  const std::string name =
      name_in(source, source.array.empty() ? generation.names({}, {}, listed_names_max + 1)
                                           : std::vector<std::string>());
  const array stored = find_array(generation, name, source);
  const std::optional<logical_dtype> logical = usable_logical_dtype(stored);
  if (stored.kind() == array_kind::dense) {
    operand dense = operand_of(source, stored.map(), logical);
    dense.stored = stored;
    return dense;
  }
  expr values = stored;
  if (source.index)
    values = with_context([&] { return "slice " + source.text; },
                          [&] { return values.index(*source.index); });
  return {.location = source,
          .values = values,
          .elements = std::nullopt,
          .stored = stored,
          .logical = logical_of_slice(logical, source.index, stored.rank())};
}

operand input_files::open(const address& source) {
  switch (source.format) {
    case file_format::shale:
      return open_array(source);
    case file_format::npy: {
      const tensor whole = read_npy(source.file);
      return operand_of(source, whole, inspect_npy(source.file).logical);
    }
    case file_format::npz: {
      const npz_file& archive = archive_at(source.file);
      return explaining_members(archive, [&] {
        const std::string name = name_in(source, archive.names());
        const npz_checksum checked =
            checksums_ == checksum_use::compared ? npz_checksum::always : npz_checksum::copied;
        const tensor whole = archive.read(name, {.checksum = checked});
        return operand_of(source, whole, archive.inspect(name).header.logical);
      });
    }
    case file_format::t7: {
      const t7_file& file = torch_file_at(source.file);
      return explaining_members(
          file, [&] { return operand_of(source, file.read(name_in(source, file.names()))); });
    }
    case file_format::raw:
      return operand_of(source, read_raw_file(source));
  }
  throw error(errc::unsupported, fmt::format("'{}' has an unknown format", source.text));
}

std::vector<array_facts> input_files::describe_container(const address& source) {
  const snapshot& generation = generation_of(source.file);
  if (!source.array.empty())
    return {describe_array(generation, find_array(generation, source.array, source))};
  std::vector<array_facts> arrays;
  for (const std::string& name : generation.names())
    arrays.push_back(describe_array(generation, name));
  return arrays;
}

std::vector<array_facts> input_files::describe_archive(const address& source) {
  const npz_file& archive = archive_at(source.file);
  if (!source.array.empty())
    return {
        explaining_members(archive, [&] { return describe_sound_member(archive, source.array); })};
  std::vector<array_facts> arrays;
  for (const std::string& name : archive.names()) arrays.push_back(describe_member(archive, name));
  return arrays;
}

std::vector<array_facts> input_files::describe_torch_file(const address& source) {
  const t7_file& file = torch_file_at(source.file);
  if (!source.array.empty())
    return {explaining_members(file, [&] { return describe_sound_tensor(file, source.array); })};
  std::vector<array_facts> arrays;
  for (const std::string& name : file.names()) arrays.push_back(describe_tensor(file, name));
  return arrays;
}

std::vector<array_facts> input_files::describe(const address& source) {
  std::vector<array_facts> arrays;
  switch (source.format) {
    case file_format::shale:
      arrays = describe_container(source);
      break;
    case file_format::npy:
      arrays = {describe_npy(source.file)};
      break;
    case file_format::npz:
      arrays = describe_archive(source);
      break;
    case file_format::t7:
      arrays = describe_torch_file(source);
      break;
    case file_format::raw:
      arrays = {describe_raw(source)};
      break;
  }
  for (array_facts& array : arrays)
    array.address = !array.name.empty()                 ? label(source.file, array.name)
                    : source.format == file_format::raw ? source.text
                                                        : source.file;
  return arrays;
}

}  // namespace shale::tools
