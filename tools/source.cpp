#include "source.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cmath>
#include <nlohmann/json.hpp>

#include "attribute.hpp"
#include "codec_text.hpp"
#include "command_line.hpp"
#include "shale/npy.hpp"
#include "shale/raw.hpp"

namespace shale::tools {

namespace {

// How many names an error repeats before it refers to `shale ls`.
constexpr std::size_t names_in_errors = 8;

tensor sliced(const tensor& whole, const address& which) {
  if (!which.index) return whole;
  return with_context([&] { return "slice " + which.text; },
                      [&] { return whole.index(*which.index); });
}

operand from_tensor(const address& which, const tensor& whole) {
  const tensor elements = sliced(whole, which);
  return {.where = which, .values = expr(elements), .elements = elements, .stored = {}};
}

// What looks like a slice may have been meant as the end of a name, and the other way round.
array array_at(const snapshot& generation, const std::string& name, const address& which) {
  if (const std::optional<array> found = generation.find(name)) return *found;
  try {
    return generation.at(name);
  } catch (error& failure) {
    if (which.index) {
      const std::string_view typed = std::string_view(which.text).substr(which.file.size() + 1);
      if (generation.find(typed))
        failure.add_detail(
            fmt::format("the array '{}' is written {}", typed, label(which.file, typed)));
    } else if (name.find('[') != std::string::npos) {
      failure.add_detail("'[[' begins no slice: it is a '[' in the name");
    }
    throw;
  }
}

tensor read_raw_file(const address& which) {
  if (!which.raw_dtype)
    throw error(
        errc::invalid_argument, fmt::format("'{}' says nothing of its dtype", which.file),
        {fmt::format("write {0}:float32 or {0}:float32(128,256), or pass --dtype and --shape",
                     which.file)});
  return read_raw(which.file, *which.raw_dtype, {.shape = which.raw_shape});
}

array_facts describe_array(const array& stored) {
  array_facts facts;
  facts.name = stored.name();
  facts.type = stored.dtype();
  facts.shape = stored.shape();
  facts.logical_bytes = stored.size_bytes();
  facts.stored_bytes = stored.stored_bytes();
  facts.modified = stored.modified();
  facts.attributes = stored.attributes();
  facts.kind = "dense";
  if (stored.kind() == array_kind::chunked) {
    facts.kind = "chunked";
    facts.chunk_shape = stored.chunk_shape();
    facts.codec = format_codec(stored.codec(), stored.dtype());
    facts.fill_value = stored.fill_value().to_string();
  }
  return facts;
}

array_facts describe_header(const npy_header& header, std::string kind) {
  array_facts facts;
  facts.type = header.dtype;
  facts.shape = header.shape;
  facts.kind = std::move(kind);
  if (header.fortran_order) facts.kind += ", Fortran order";
  if (header.byte_order != std::endian::little) facts.kind += ", big-endian";
  facts.logical_bytes = facts.stored_bytes = header.data_bytes();
  return facts;
}

array_facts describe_member(const npz_member& member) {
  const bool packed = member.compression == npz_compression::deflate;
  array_facts facts = describe_header(member.header, packed ? "deflated" : "stored");
  facts.name = member.name;
  facts.stored_bytes = member.stored_bytes;
  return facts;
}

// One member that is not to be read leaves the others to be seen.
array_facts describe_member(const npz_file& archive, const std::string& name) {
  try {
    return describe_member(archive.inspect(name));
  } catch (const error& failure) {
    if (failure.code() != errc::unsupported && failure.code() != errc::corrupt) throw;
    array_facts facts;
    facts.name = name;
    facts.problem = failure;
    return facts;
  }
}

array_facts describe_raw(const address& which) {
  if (!which.raw_dtype) {
    array_facts facts;
    facts.type = dtype::uint8;
    facts.kind = "raw bytes";
    facts.logical_bytes = facts.stored_bytes = file_bytes(which.file);
    facts.shape = {static_cast<index_t>(facts.stored_bytes)};
    return facts;
  }
  const tensor elements = read_raw_file(which);
  array_facts facts;
  facts.type = elements.dtype();
  facts.shape = elements.shape();
  facts.kind = "raw";
  facts.logical_bytes = facts.stored_bytes = elements.size_bytes();
  return facts;
}

}  // namespace

void raw_options::add_to(CLI::App& command) {
  command.add_option("--dtype", type, "How to read a raw file's elements")->type_name("DTYPE");
  command.add_option("--shape", shape, "Their extents, as in 344,403 [one long axis]")
      ->type_name("N,M,..");
}

address with_raw_options(address which, const raw_options& options) {
  if (options.type.empty() && options.shape.empty()) return which;
  if (which.format != file_format::raw)
    throw error(errc::invalid_argument, "--dtype and --shape describe raw files only",
                {fmt::format("'{}' says itself what it holds", which.file)});
  const auto settle = [&](auto& said, auto&& told, std::string_view option) {
    if (said && !(*said == told))
      throw error(errc::invalid_argument, fmt::format("{} contradicts '{}'", option, which.text));
    said = told;
  };
  if (!options.type.empty()) settle(which.raw_dtype, parse_dtype_option(options.type), "--dtype");
  if (!options.shape.empty()) settle(which.raw_shape, parse_shape(options.shape), "--shape");
  return which;
}

std::string array_facts::ratio() const {
  if (stored_bytes == 0) return "-";
  return fmt::format("{:.2f}",
                     static_cast<double>(logical_bytes) / static_cast<double>(stored_bytes));
}

nlohmann::json array_facts::to_json() const {
  if (problem)
    return {{"name", name}, {"code", shale::name(problem->code())}, {"problem", problem->what()}};
  nlohmann::json json{{"name", name},
                      {"dtype", shale::name(type)},
                      {"shape", tools::to_json(shape)},
                      {"kind", kind},
                      {"stored_bytes", stored_bytes},
                      {"logical_bytes", logical_bytes},
                      {"attributes", nlohmann::json::object()}};
  if (chunk_shape) json["chunk_shape"] = tools::to_json(*chunk_shape);
  if (!codec.empty()) json["codec"] = codec;
  if (fill_value) json["fill_value"] = *fill_value;
  if (modified) json["modified"] = *modified;
  for (const auto& [key, value] : attributes) json["attributes"][key] = attribute_json(value);
  return json;
}

library::opened& library::container_at(const std::string& file) {
  const auto found = containers_.find(file);
  if (found != containers_.end()) return found->second;
  const container handle = container::open(file);
  return containers_.emplace(file, opened{handle, handle.latest()}).first->second;
}

const npz_file& library::archive_at(const std::string& file) {
  const auto found = archives_.find(file);
  if (found != archives_.end()) return found->second;
  return archives_.emplace(file, npz_file::open(file)).first->second;
}

const snapshot& library::generation_of(const std::string& file) {
  return container_at(file).generation;
}

const container& library::container_of(const std::string& file) { return container_at(file).file; }

std::string library::name_in(const address& which, const std::vector<std::string>& names) {
  if (!which.array.empty()) return which.array;
  if (names.size() == 1) return names.front();
  std::string listed;
  for (std::size_t i = 0; i < std::min(names.size(), names_in_errors); ++i)
    listed += (i > 0 ? ", " : "") + names[i];
  if (names.size() > names_in_errors) listed += ", …";
  throw error(errc::invalid_argument, fmt::format("'{}' does not say which array", which.text),
              {names.empty() ? "the file holds none"
                             : fmt::format("write {}:NAME; there are {}", which.file, listed)});
}

operand library::open_shale(const address& which) {
  const snapshot& generation = container_at(which.file).generation;
  const std::string name =
      name_in(which, which.array.empty() ? generation.names({}, {}, names_in_errors + 1)
                                         : std::vector<std::string>());
  const array stored = array_at(generation, name, which);
  if (stored.kind() == array_kind::dense) {
    operand dense = from_tensor(which, stored.as_tensor());
    dense.stored = stored;
    return dense;
  }
  expr values = stored;
  if (which.index)
    values = with_context([&] { return "slice " + which.text; },
                          [&] { return values.index(*which.index); });
  return {.where = which, .values = values, .elements = std::nullopt, .stored = stored};
}

operand library::open(const address& which) {
  switch (which.format) {
    case file_format::shale:
      return open_shale(which);
    case file_format::npy:
      return from_tensor(which, read_npy(which.file));
    case file_format::npz: {
      const npz_file& archive = archive_at(which.file);
      return from_tensor(which, archive.read(name_in(which, archive.names())));
    }
    case file_format::raw:
      return from_tensor(which, read_raw_file(which));
  }
  throw error(errc::unsupported, "no such format");
}

std::vector<array_facts> library::describe(const address& which) {
  std::vector<array_facts> all;
  switch (which.format) {
    case file_format::shale: {
      const snapshot& generation = generation_of(which.file);
      if (!which.array.empty()) {
        all.push_back(describe_array(generation.at(which.array)));
        break;
      }
      for (const std::string& each : generation.names())
        all.push_back(describe_array(generation.at(each)));
      break;
    }
    case file_format::npy: {
      const npy_header header = inspect_npy(which.file);
      all.push_back(describe_header(header, fmt::format("npy {}.0", header.version)));
      break;
    }
    case file_format::npz: {
      const npz_file& archive = archive_at(which.file);
      if (!which.array.empty()) {
        all.push_back(describe_member(archive.inspect(which.array)));
        break;
      }
      for (const std::string& each : archive.names()) all.push_back(describe_member(archive, each));
      break;
    }
    case file_format::raw:
      all.push_back(describe_raw(which));
      break;
  }
  return all;
}

std::uint64_t file_bytes(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0)
    throw error::from_errno(code_for_errno(errno), "cannot open file", errno, {"file " + path});
  return static_cast<std::uint64_t>(status.st_size);
}

int note_problems(const std::vector<array_facts>& arrays) {
  int code = exit_yes;
  for (const array_facts& each : arrays) {
    if (!each.problem) continue;
    note(fmt::format("shale: {}", each.problem->what()));
    if (code == exit_yes) code = code_of(*each.problem);
  }
  return code;
}

nlohmann::json to_json(const scalar& value) {
  const auto real = [](double number) -> nlohmann::json {
    if (!std::isfinite(number)) return nullptr;
    return number;
  };
  switch (kind(value.type())) {
    case dtype_kind::boolean:
      return value.as<bool>();
    case dtype_kind::signed_integer:
      return value.as<std::int64_t>();
    case dtype_kind::unsigned_integer:
      return value.as<std::uint64_t>();
    case dtype_kind::floating:
      return real(value.as<double>());
    case dtype_kind::complex: {
      const auto number = value.as<std::complex<double>>();
      return nlohmann::json::array({real(number.real()), real(number.imag())});
    }
  }
  return nullptr;
}

nlohmann::json to_json(const dims& values) {
  nlohmann::json json = nlohmann::json::array();
  for (const index_t each : values) json.push_back(each);
  return json;
}

}  // namespace shale::tools
