#include "data/raw_options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <optional>
#include <string_view>

#include "notation/shape_text.hpp"
#include "shale/raw.hpp"

namespace shale::tools {

void raw_options::add_to(CLI::App& command) {
  command.add_option("--dtype", type, "How to read a raw file's elements")->type_name("DTYPE");
  command.add_option("--shape", shape, "Their extents, as in 344,403 [one long axis]")
      ->type_name("N,M,..");
}

address with_raw_options(address source, const raw_options& options) {
  if (options.type.empty() && options.shape.empty()) return source;
  if (source.format != file_format::raw)
    throw error(errc::invalid_argument, "--dtype and --shape describe raw files only",
                {fmt::format("'{}' tells its own dtype and shape", source.file)});
  const auto set = [&](auto& in_address, auto&& in_option, std::string_view option) {
    if (in_address && !(*in_address == in_option))
      throw error(errc::invalid_argument, fmt::format("{} contradicts '{}'", option, source.text));
    in_address = in_option;
  };
  if (!options.type.empty()) set(source.raw_dtype, parse_dtype_option(options.type), "--dtype");
  if (!options.shape.empty()) set(source.raw_shape, parse_shape(options.shape), "--shape");
  return source;
}

tensor read_raw_file(const address& source) {
  if (!source.raw_dtype)
    throw error(errc::invalid_argument,
                fmt::format("'{}' has no dtype in its address", source.file),
                {fmt::format("write {0}:float32 or {0}:float32(128,256)", source.file)});
  return read_raw(source.file, *source.raw_dtype, {.shape = source.raw_shape});
}

}  // namespace shale::tools
