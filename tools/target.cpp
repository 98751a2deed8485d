#include "target.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>

#include "container_change.hpp"
#include "interrupt.hpp"
#include "shale/mapped_file.hpp"
#include "shale/npy.hpp"
#include "shale/npz.hpp"
#include "source.hpp"

namespace shale::tools {

namespace {

bool file_exists(const std::string& path) {
  std::error_code unknown;  // whoever opens or makes the file says what is wrong
  return std::filesystem::exists(path, unknown);
}

existing_file existing(const target_options& options) {
  return options.force ? existing_file::replace : existing_file::refuse;
}

// An array of the same shape is filled: it keeps its dtype, or the values are not for it. One of
// another shape is replaced, and keeps what it can.
dtype chosen_dtype(const contents& what, const std::optional<array>& before) {
  if (what.type) return *what.type;
  const dtype type = what.values.dtype();
  if (!before) return type;
  const dtype present = before->dtype();
  if (stands_for(present, type)) return present;
  if (!(before->shape() == what.values.shape())) return type;
  throw error(errc::invalid_argument,
              fmt::format("'{}' holds {}, the new values are {}", before->name(), name(present),
                          name(type)),
              {"not all of them may be represented there",
               fmt::format("--dtype (convert: --as) {} keeps that dtype, {} changes it",
                           name(present), name(type))});
}

// A row-major tensor in a file that is mapped for writing.
tensor map_new_file(const unfinished_file& file, dtype type, const dims& shape) {
  const layout whole(shape);
  const auto bytes = checked_mul(static_cast<std::size_t>(whole.size()), item_bytes(type));
  if (!bytes) throw error(errc::invalid_argument, "the array is too large for a file");
  const storage made =
      file.create([&] { return create_file(file.path(), *bytes, {.mode = 0666}); });
  return tensor(made, type, whole);
}

written write_npy_file(const address& to, const expr& values, const target_options& options,
                       executor& on) {
  require_replaceable(to.file, options);
  npy_writer writer(to.file, values.dtype(), values.shape(), existing(options));
  eval_into(writer.elements(), values, &on);
  throw_if_interrupted();
  writer.finish();
  return {.type = values.dtype(), .stored_bytes = writer.elements().size_bytes()};
}

written write_raw_file(const address& to, const expr& values, const target_options& options,
                       executor& on) {
  unfinished_file file(to.file, existing(options));
  const tensor elements = map_new_file(file, values.dtype(), values.shape());
  eval_into(elements, values, &on);
  elements.storage().check();
  throw_if_interrupted();
  file.publish();
  return {.type = elements.dtype(), .stored_bytes = elements.size_bytes()};
}

// A ZIP member's checksum stands in front of its bytes, so these are computed into a file of their
// own first, whatever their size.
written write_npz_file(const address& to, const expr& values, const target_options& options,
                       executor& on) {
  require_replaceable(to.file, options);
  const unfinished_file scratch(to.file, existing_file::replace);
  const tensor elements = map_new_file(scratch, values.dtype(), values.shape());
  eval_into(elements, values, &on);
  elements.storage().check();
  const std::pair<std::string, tensor> member{to.array.empty() ? "arr_0" : to.array, elements};
  throw_if_interrupted();
  write_npz(to.file, std::span(&member, 1), {.existing = existing(options), .on = &on});
  return {.type = elements.dtype(), .stored_bytes = elements.size_bytes()};
}

written write_array(const address& to, const contents& what, const target_options& options,
                    executor& on) {
  if (to.array.empty())
    throw error(errc::invalid_argument, fmt::format("'{}' does not say which array", to.text),
                {fmt::format("write {}:NAME", to.file)});
  written done;
  const std::uint64_t generation = change_container(to.file, [&](transaction& change) {
    done = put_array(change, to.file, to.array, what, options, on);
  });
  done.generation = generation;
  return done;
}

}  // namespace

void target_options::add_to(CLI::App& command) {
  command.add_flag("-f,--force", force,
                   "Replace what exists; an array keeps its dtype, kind, chunks, codec, fill value "
                   "and attributes unless told otherwise");
  form.add_to(command);
}

std::optional<origin> origin_of(const operand& source) {
  if (!source.stored) return std::nullopt;
  origin from{spec_of(*source.stored), source.stored->attributes()};
  if (source.where.index) from.spec = sliced(from.spec, *source.where.index);
  return from;
}

written put_array(transaction& change, const std::string& file, const std::string& name,
                  const contents& what, const target_options& options, executor& on) {
  const std::optional<array> before = change.find(name);
  if (before && !options.force)
    throw error(errc::already_exists, fmt::format("'{}' exists", label(file, name)),
                {"-f replaces it"});
  std::optional<array_spec> model;
  attribute_list attributes;
  if (before) {
    model = spec_of(*before);
    attributes = before->attributes();
  } else if (what.from) {
    model = what.from->spec;
  }
  written done{.type = chosen_dtype(what, before)};
  array_form form = form_for(done.type, what.values.shape(), model, options.form);
  if (before && !what.type && done.type != before->dtype())
    done.not_kept.push_back(fmt::format("dtype {}: the new values are {}",
                                        shale::name(before->dtype()), shale::name(done.type)));
  std::move(form.not_kept.begin(), form.not_kept.end(), std::back_inserter(done.not_kept));
  if (what.from)
    attributes.insert(attributes.end(), what.from->attributes.begin(), what.from->attributes.end());
  if (before) change.remove(name);
  change.create(name, form.spec).write(what.values, &on);
  for (const auto& [key, value] : attributes) change.set_attribute(name, key, value);
  done.stored_bytes = change.find(name)->stored_bytes();
  throw_if_interrupted();
  return done;
}

std::string not_kept_lines(const written& done) {
  std::string lines;
  for (const std::string& each : done.not_kept) lines += "\n  not kept: " + each;
  return lines;
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

written write_target(const address& to, const contents& what, const target_options& options,
                     executor& on) {
  contents wanted = what;
  if (to.raw_dtype) {
    if (wanted.type && *wanted.type != *to.raw_dtype)
      throw error(errc::invalid_argument,
                  fmt::format("'{}' is to hold {}, the elements are to be {}", to.text,
                              name(*to.raw_dtype), name(*wanted.type)));
    wanted.type = to.raw_dtype;
  }
  if (to.raw_shape && !(*to.raw_shape == what.values.shape()))
    throw error(errc::invalid_argument,
                fmt::format("'{}' is to have another shape than the elements", to.text),
                {fmt::format("they have {}", to_string(what.values.shape()))});
  if (wanted.type && *wanted.type != what.values.dtype())
    wanted.values = cast(what.values, *wanted.type);
  if (to.format != file_format::shale && options.form.wants_chunks())
    throw error(errc::invalid_argument, "only .shale containers have chunks and codecs",
                {"got " + to.text});
  switch (to.format) {
    case file_format::shale:
      return write_array(to, wanted, options, on);
    case file_format::npy:
      return write_npy_file(to, wanted.values, options, on);
    case file_format::npz:
      return write_npz_file(to, wanted.values, options, on);
    case file_format::raw:
      return write_raw_file(to, wanted.values, options, on);
  }
  throw error(errc::unsupported, "no such format");
}

}  // namespace shale::tools
