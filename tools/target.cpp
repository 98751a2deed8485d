#include "target.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "codec_text.hpp"
#include "interrupt.hpp"
#include "partial_file.hpp"
#include "shale/mapped_file.hpp"
#include "shale/npy.hpp"
#include "shale/npz.hpp"

namespace shale::tools {

namespace {

existing_file existing(const target_options& options) {
  return options.force ? existing_file::replace : existing_file::refuse;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

// The same failure in terms of the name that the user knows.
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

// A row-major tensor in a file that is mapped for writing.
tensor map_new_file(const std::string& path, dtype type, const dims& shape) {
  const layout whole(shape);
  const auto bytes = checked_mul(static_cast<std::size_t>(whole.size()), item_bytes(type));
  if (!bytes) throw error(errc::invalid_argument, "the array is too large for a file");
  return tensor(create_file(path, *bytes, {.mode = 0666}), type, whole);
}

written write_npy_file(const address& to, const expr& values, const target_options& options,
                       executor& on) {
  require_replaceable(to.file, options);
  npy_writer writer(to.file, values.dtype(), values.shape(), existing(options));
  eval_into(writer.elements(), values, &on);
  throw_if_interrupted();
  writer.finish();
  return {.type = values.dtype(),
          .stored_bytes = writer.elements().size_bytes(),
          .generation = std::nullopt};
}

written write_raw_file(const address& to, const expr& values, const target_options& options,
                       executor& on) {
  partial_file file(to.file, options.force ? replacing::allow : replacing::refuse);
  const tensor elements = map_new_file(file.path(), values.dtype(), values.shape());
  eval_into(elements, values, &on);
  elements.storage().check();
  throw_if_interrupted();
  file.publish();
  return {
      .type = elements.dtype(), .stored_bytes = elements.size_bytes(), .generation = std::nullopt};
}

// A ZIP member's checksum stands in front of its bytes, so these are computed into a file of their
// own first, whatever their size.
written write_npz_file(const address& to, const expr& values, const target_options& options,
                       executor& on) {
  require_replaceable(to.file, options);
  const partial_file scratch(to.file + ".elements", replacing::allow);
  const tensor elements = map_new_file(scratch.path(), values.dtype(), values.shape());
  eval_into(elements, values, &on);
  elements.storage().check();
  const std::pair<std::string, tensor> member{to.array.empty() ? "arr_0" : to.array, elements};
  throw_if_interrupted();
  write_npz(to.file, std::span(&member, 1), {.existing = existing(options), .on = &on});
  return {
      .type = elements.dtype(), .stored_bytes = elements.size_bytes(), .generation = std::nullopt};
}

written write_array(const address& to, const expr& values, std::optional<dtype> type,
                    const target_options& options, executor& on) {
  if (to.array.empty())
    throw error(errc::invalid_argument, fmt::format("'{}' does not say which array", to.text),
                {fmt::format("write {}:NAME", to.file)});
  dtype element = values.dtype();
  const std::uint64_t generation = change_container(to.file, [&](transaction& change) {
    const std::optional<array> before = change.find(to.array);
    if (before && !options.force)
      throw error(errc::already_exists, fmt::format("'{}' exists", to.label()), {"-f replaces it"});
    element = type ? *type : options.kept_dtype(values.dtype(), values.shape(), before);
    const array_spec spec = options.spec(element, values.shape(), before);
    const std::vector<std::pair<std::string, std::string>> attributes =
        before ? before->attributes() : std::vector<std::pair<std::string, std::string>>();
    if (before) change.remove(to.array);
    change.create(to.array, spec).write(values, &on);
    for (const auto& [key, value] : attributes) change.set_attribute(to.array, key, value);
    throw_if_interrupted();
  });
  return {.type = element,
          .stored_bytes = container::open(to.file).latest().at(to.array).stored_bytes(),
          .generation = generation};
}

}  // namespace

void target_options::add_to(CLI::App& command) {
  command.add_flag("-f,--force", force,
                   "Replace what exists, keeping its dtype, kind, chunks and codec unless told "
                   "otherwise");
  CLI::Option* chunks = command.add_flag("--chunked", chunked, "Store in compressed chunks");
  command.add_flag("--dense", dense, "Store as mappable bytes [the default]")->excludes(chunks);
  command.add_option("--chunk", chunk, "Extents of a chunk, as in 128,2048 [about 1 MiB]")
      ->type_name("N,M,..");
  command
      .add_option("--codec", codec,
                  "Stages for chunks: bitround:N, delta, shuffle or bitshuffle, zstd:LEVEL; raw "
                  "for none [shuffle,zstd:1]")
      ->type_name("STAGES");
}

dtype target_options::kept_dtype(shale::dtype type, const dims& shape,
                                 const std::optional<array>& before) const {
  if (!before || !(before->shape() == shape)) return type;
  const shale::dtype present = before->dtype();
  // An array that was made for the purpose says what it wants to hold; rounding it may mean.
  const bool rounds = kind(present) == dtype_kind::floating && kind(type) != dtype_kind::complex;
  if (promote(present, type) == present || rounds || kind(present) == dtype_kind::complex)
    return present;
  throw error(errc::invalid_argument,
              fmt::format("'{}' holds {}, the new values are {}", before->name(), name(present),
                          name(type)),
              {"not all of them may be represented there",
               fmt::format("--dtype (convert: --as) {} keeps that dtype, {} changes it",
                           name(present), name(type))});
}

array_spec target_options::spec(shale::dtype type, const dims& shape,
                                const std::optional<array>& before) const {
  if (dense && wants_chunks())
    throw error(errc::invalid_argument, "--dense arrays have neither --chunk nor --codec");
  array_spec result{.dtype = type, .shape = shape};
  const bool keeps = before && before->shape() == shape && before->kind() == array_kind::chunked;
  if (!dense && (wants_chunks() || keeps)) result.kind = array_kind::chunked;
  if (result.kind == array_kind::dense) return result;
  if (keeps) {
    result.chunk_shape = before->chunk_shape();
    result.codec = before->codec();
    if (before->fill_value().fits(type)) result.fill_value = before->fill_value();
  }
  if (!chunk.empty()) {
    result.chunk_shape = parse_shape(chunk);
    if (result.chunk_shape->size() != shape.size())
      throw error(
          errc::invalid_argument, "--chunk needs one extent an axis",
          {fmt::format("got {} for shape {}", to_string(*result.chunk_shape), to_string(shape))});
  }
  if (!codec.empty()) result.codec = parse_codec(codec);
  return result;
}

// Refused before the work is done rather than after it.
void require_replaceable(const std::string& file, const target_options& options) {
  if (!options.force && file_exists(file))
    throw error(errc::already_exists, fmt::format("'{}' exists", file), {"-f replaces it"});
}

void require_no_other_members(const address& target) {
  if (target.format != file_format::npz || target.array.empty() || !file_exists(target.file))
    return;
  constexpr std::size_t most_named = 8;
  std::string others;
  std::size_t count = 0;
  const npz_file archive = npz_file::open(target.file);
  for (const std::string& each : archive.names()) {
    if (each == target.array) continue;
    if (++count <= most_named) others += (others.empty() ? "" : ", ") + each;
  }
  if (count == 0) return;
  if (count > most_named) others += ", …";
  throw error(errc::already_exists, fmt::format("'{}' holds other arrays: {}", target.file, others),
              {"an archive is written whole, they would be gone",
               fmt::format("-f replaces all of it if the target is {} alone", target.file),
               "arrays can be added one by one to a .shale container"});
}

std::uint64_t change_container(const std::string& file,
                               const std::function<void(transaction&)>& change) {
  const auto changed = [&](container handle) {
    transaction next = handle.begin();
    change(next);
    const std::uint64_t generation = next.commit();
    handle.close();
    return generation;
  };
  if (std::optional<container> present = container::open_if_exists(file, open_mode::write))
    return changed(*std::move(present));
  // A new container is filled under another name, so that a failure leaves none behind.
  partial_file partial(file, replacing::refuse);
  try {
    const std::uint64_t generation = changed(container::create(partial.path()));
    partial.publish();
    return generation;
  } catch (const error& failure) {
    throw renamed(failure, partial.path(), file);
  }
}

written write_target(const address& to, const expr& values, std::optional<dtype> type,
                     const target_options& options, executor& on) {
  if (to.raw_dtype) {
    if (type && *type != *to.raw_dtype)
      throw error(errc::invalid_argument,
                  fmt::format("'{}' is to hold {}, the elements are to be {}", to.text,
                              name(*to.raw_dtype), name(*type)));
    type = to.raw_dtype;
  }
  if (to.raw_shape && !(*to.raw_shape == values.shape()))
    throw error(errc::invalid_argument,
                fmt::format("'{}' is to have another shape than the elements", to.text),
                {fmt::format("they have {}", to_string(values.shape()))});
  const expr converted = type && *type != values.dtype() ? cast(values, *type) : values;
  if (to.format != file_format::shale &&
      (options.chunked || !options.chunk.empty() || !options.codec.empty()))
    throw error(errc::invalid_argument, "only .shale containers have chunks and codecs",
                {"got " + to.text});
  switch (to.format) {
    case file_format::shale:
      return write_array(to, converted, type, options, on);
    case file_format::npy:
      return write_npy_file(to, converted, options, on);
    case file_format::npz:
      return write_npz_file(to, converted, options, on);
    case file_format::raw:
      return write_raw_file(to, converted, options, on);
  }
  throw error(errc::unsupported, "no such format");
}

}  // namespace shale::tools
