#include "data/target.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>

#include "data/container_change.hpp"
#include "data/input_files.hpp"
#include "data/logical.hpp"
#include "data/lost_properties.hpp"
#include "data/name_advice.hpp"
#include "notation/attribute.hpp"
#include "notation/codec_text.hpp"
#include "shale/dimension_names.hpp"
#include "shale/executor.hpp"
#include "shale/logical_arrays.hpp"
#include "shale/mapped_file.hpp"
#include "shale/npy.hpp"
#include "shale/npz.hpp"
#include "shale/raw.hpp"
#include "shale/rechunk.hpp"
#include "shale/t7.hpp"
#include "shale/unfinished_file.hpp"
#include "terminal/interrupt.hpp"
#include "terminal/units.hpp"

namespace shale::tools {

namespace {

bool file_exists(const std::string& path) {
  std::error_code ignored;  // opening or creating the file reports the error
  return std::filesystem::exists(path, ignored);
}

// Files of other kinds are refused when the target is created, even with -f.
bool is_regular_file(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

// An array of the same shape keeps its dtype, and a dtype that cannot hold the values is an error.
// An array of another shape keeps its dtype if it can hold the values, or else takes the dtype of
// the values.
dtype chosen_dtype(const contents& source, const std::optional<array>& before) {
  if (source.type) return *source.type;
  const dtype type = source.values.dtype();
  if (!before) return type;
  const dtype present = before->dtype();
  if (can_take(present, type)) return present;
  if (!(before->shape() == source.values.shape())) return type;
  throw error(errc::invalid_argument,
              fmt::format("'{}' holds {}, the new values are {}", name_in_address(before->name()),
                          name(present), name(type)),
              {"that dtype cannot represent all of them",
               fmt::format("--dtype (convert: --as) {} keeps that dtype, {} changes it",
                           name(present), name(type))});
}

// Creates the file and maps it for writing as a row-major tensor. The file is made empty and grows
// afterwards: reserving its space may take long, and a second Ctrl-C does not wait for it.
tensor map_new_file(const unfinished_file& file, unsigned mode, dtype type, const dims& shape) {
  const layout whole(shape);
  const auto bytes = checked_mul(static_cast<std::size_t>(whole.size()), item_bytes(type));
  if (!bytes) throw error(errc::invalid_argument, "the array is too large for a file");
  storage made = file.create(
      [&] { return create_file(file.path(), 0, {.mode = mode, .reserve_bytes = *bytes}); });
  file.naming_target([&] { made.grow(*bytes); });
  return tensor(made, type, whole);
}

// Whether the file can be mapped for writing. On network file systems it cannot.
bool can_be_mapped(const unfinished_file& file) {
  const std::filesystem::path folder = std::filesystem::path(file.path()).parent_path();
  return mapping_support_at(folder.string(), access::read_write) == mapping_support::mapped;
}

// A file for elements that are computed before `file` is written. It is never published. It lies
// beside that file, or in the folder for temporary files if files beside it cannot be mapped. There
// nobody can guess its name: other users may also make files in that folder.
unfinished_file scratch_for(const std::string& file) {
  unfinished_file beside(file, existing_file::replace);
  if (can_be_mapped(beside)) return beside;
  const char* const wanted = std::getenv("TMPDIR");
  const std::string folder = wanted != nullptr && *wanted != '\0' ? wanted : "/var/tmp";
  std::random_device random;
  unfinished_file elsewhere(fmt::format("{}/shale-{:08x}{:08x}", folder, random(), random()),
                            existing_file::refuse);
  if (!can_be_mapped(elsewhere))
    throw error(errc::unsupported, "computed elements need a file that can be mapped for writing",
                {fmt::format("neither those beside {} nor those in {} can", file, folder),
                 "the variable TMPDIR names another folder for temporary files"});
  return elsewhere;
}

written write_npy_file(const address& target, const expr& values,
                       const std::optional<logical_dtype>& logical, const target_options& options) {
  require_replaceable(target.file, options);
  const npy_write_options how{.existing = options.existing(), .logical = logical};
  if (!can_be_mapped(unfinished_file(target.file, how.existing))) {
    // Refuses, before the work, what npy files cannot hold.
    format_npy_header({.dtype = values.dtype(), .shape = values.shape(), .logical = logical});
    return add_computed(target.file, values, [&](const tensor& elements) {
      replace_target([&] { write_npy(target.file, elements, how); });
    });
  }
  npy_writer writer(target.file, values.dtype(), values.shape(), how);
  try {
    eval_into(writer.elements(), values);
  } catch (error& failure) {
    // The temporary file no longer exists when somebody reads the text.
    failure.replace_in_text(writer.elements().storage().path(), target.file);
    throw;
  }
  replace_target([&] { writer.finish(); });
  return {.type = values.dtype(), .stored_bytes = writer.elements().size_bytes()};
}

written write_raw_file(const address& target, const expr& values, const target_options& options) {
  unfinished_file file(target.file, options.existing());
  if (!can_be_mapped(file)) {
    return add_computed(target.file, values, [&](const tensor& elements) {
      replace_target([&] { write_raw(target.file, elements, {.existing = options.existing()}); });
    });
  }
  const tensor elements = map_new_file(file, file.mode(), values.dtype(), values.shape());
  file.naming_target([&] {
    eval_into(elements, values);
    elements.storage().check();
  });
  replace_target([&] { file.publish(); });
  return {.type = elements.dtype(), .stored_bytes = elements.size_bytes()};
}

written write_npz_file(const address& target, const expr& values,
                       const std::optional<logical_dtype>& logical, const target_options& options) {
  require_replaceable(target.file, options);
  npz_writer archive(target.file, {.existing = options.existing()});
  const std::string name = target.array.empty() ? "arr_0" : target.array;
  const written done = add_computed(
      target.file, values, [&](const tensor& elements) { archive.add(name, elements, logical); });
  replace_target([&] { archive.finish(); });
  return done;
}

// Writes one tensor: alone if the target has no name, or else in a table.
written write_t7_file(const address& target, const expr& values, const target_options& options) {
  require_t7_dtype(values.dtype());
  require_replaceable(target.file, options);
  if (target.array.empty()) {
    return add_computed(target.file, values, [&](const tensor& elements) {
      replace_target([&] { write_t7(target.file, elements, {.existing = options.existing()}); });
    });
  }
  t7_writer file(target.file, {.existing = options.existing()});
  const written done = add_computed(
      target.file, values, [&](const tensor& elements) { file.add(target.array, elements); });
  replace_target([&] { file.finish(); });
  return done;
}

// Writes a file that is no container.
written write_file(const address& target, const expr& values,
                   const std::optional<logical_dtype>& logical, const target_options& options) {
  switch (target.format) {
    case file_format::npy:
      return write_npy_file(target, values, logical, options);
    case file_format::npz:
      return write_npz_file(target, values, logical, options);
    case file_format::t7:
      return write_t7_file(target, values, options);
    case file_format::raw:
      return write_raw_file(target, values, options);
    case file_format::shale:
      break;
  }
  throw error(errc::unsupported, fmt::format("'{}' has an unknown format", target.text));
}

// The values for a part of an array. The array keeps its dtype, which must be able to hold the
// dtype of the values; for a single number, it only has to hold the value.
expr fitting_part(const array& present, const contents& source, const target_options& options) {
  const std::string name = name_in_address(present.name());
  if (options.form.dense || options.form.wants_chunks())
    throw error(errc::invalid_argument, fmt::format("a part of '{}' cannot get another form", name),
                {"--dense, --chunked, --chunk and --codec are for whole arrays"});
  const dtype type = source.values.dtype();
  if (can_take(present.dtype(), type)) return source.values;
  if (source.values.rank() == 0) {
    const scalar number = eval(source.values).item();
    if (number.fits(present.dtype())) return number;
  }
  throw error(errc::invalid_argument,
              fmt::format("'{}' holds {}, the new values are {}", name,
                          shale::name(present.dtype()), shale::name(type)),
              {"that dtype cannot represent all of them",
               fmt::format("--dtype {} converts them", shale::name(present.dtype()))});
}

written write_part(const address& target, const contents& source, const target_options& options) {
  written done;
  done.generation = change_existing_container(target.file, [&](transaction& change) {
    explaining_names(target.file, target.array, [&] {
      const std::optional<array> present = change.find(target.array);
      const expr values = present ? fitting_part(*present, source, options) : source.values;
      const writable_array changed = change.update(target.array);
      changed.write_at(*target.index, values);
      done.type = changed.dtype();
      done.stored_bytes = change.find(target.array)->stored_bytes();
    });
    throw_if_interrupted();
  });
  return done;
}

// The chosen pipeline and its stored share of the sample, and the smallest pipeline if that is
// another one.
std::string reasons_of(const codec_choice& choice, dtype type) {
  const std::string chosen = format_codec(choice.codec, type);
  if (choice.trials.empty()) return chosen + ", as there are no elements to try others on";
  const auto share = [&](const codec_trial& trial) {
    return fmt::format("{:.1f} %", 100 * static_cast<double>(trial.stored_bytes) /
                                       static_cast<double>(choice.sample_bytes));
  };
  const auto smallest = std::min_element(
      choice.trials.begin(), choice.trials.end(),
      [](const auto& a, const auto& b) { return a.stored_bytes < b.stored_bytes; });
  const auto at = std::find_if(choice.trials.begin(), choice.trials.end(),
                               [&](const auto& trial) { return trial.codec == choice.codec; });
  std::string text = fmt::format("{} stores {} of a sample of {}", chosen, share(*at),
                                 format_bytes(choice.sample_bytes));
  if (smallest != at)
    text += fmt::format("; {} would store {}, but is slower", format_codec(smallest->codec, type),
                        share(*smallest));
  return text;
}

written write_array(const address& target, const contents& source, const target_options& options) {
  if (target.array.empty()) throw_no_array(target.text, fmt::format("write {}:NAME", target.file));
  written done;
  const std::uint64_t generation = change_container(target.file, [&](transaction& change) {
    done = put_array(change, target.file, target.array, source, options);
  });
  done.generation = generation;
  return done;
}

// The engine stores new chunks of the shape `chunk` in row-major order. This returns the bytes of
// decoded old chunks that it must keep to decode each one only once; 0 if every old chunk lies in
// one new chunk. New chunks cut old ones along some axes. Before the engine stores the next new
// chunk along the first of these axes, it stores all new chunks along the later axes, and each of
// them needs the old chunks under it.
std::uint64_t bytes_to_keep(const array& from, const dims& chunk) {
  const dims& shape = from.shape();
  const dims& old = from.chunk_shape();
  index_t cut = 0;
  while (cut < shape.size() && (chunk[cut] >= shape[cut] || chunk[cut] % old[cut] == 0)) ++cut;
  if (cut == shape.size()) return 0;
  std::uint64_t bytes = item_bytes(from.dtype());
  for (index_t axis = 0; axis < shape.size(); ++axis) {
    index_t extent = shape[axis];
    if (axis < cut) extent = std::min(extent, chunk[axis]);
    if (axis == cut) extent = std::min(extent, (ceil_div(chunk[axis], old[axis]) + 1) * old[axis]);
    bytes *= static_cast<std::uint64_t>(extent);
  }
  return bytes;
}

// While a call runs, its cache of decoded chunks takes a quarter of the budget at most.
bool is_better_rechunked(const array& from, const writable_array& to) {
  if (from.kind() == array_kind::dense || to.kind() == array_kind::dense) return false;
  return bytes_to_keep(from, to.chunk_shape()) > executor::current().memory_bytes() / 4;
}

// The transaction keeps a mapping of each dense array until it ends. The pages of the mapping are
// removed from resident memory here, so that many arrays need no more memory than one.
void write_whole(const writable_array& made, const contents& source) {
  const array* const whole =
      source.original && source.original->whole ? &*source.original->whole : nullptr;
  if (whole && is_better_rechunked(*whole, made)) {
    rechunk(*whole, made);
    return;
  }
  if (whole) made.copy_from(*whole);
  else made.write(source.values);
  if (made.kind() != array_kind::dense) return;
  const storage written_bytes = made.map().storage();
  written_bytes.evict({0, written_bytes.size_bytes()});
}

// Chooses the logical dtype of a new array. `attributes` are those of the array that it replaces,
// followed by those of the array that it copies.
void settle_logical_dtype(attribute_list& attributes, const contents& source, written& done) {
  const auto is_logical = [](const auto& item) { return item.first == logical_dtype_key; };
  const auto found = std::find_if(attributes.rbegin(), attributes.rend(), is_logical);
  const std::string before = found == attributes.rend() ? "" : attribute_text(found->second);
  const dims& shape = source.values.shape();
  if (source.logical) {
    std::erase_if(attributes, is_logical);
    if (can_stand_for(*source.logical, done.type, shape))
      attributes.emplace_back(logical_dtype_key, attribute_value(name(*source.logical)).stored());
    else done.not_kept.push_back(lost_logical_dtype(*source.logical, done.type));
    return;
  }
  const auto known = parse_logical_dtype(before);
  const bool is_copied =
      source.original && std::any_of(source.original->attributes.begin(),
                                     source.original->attributes.end(), is_logical);
  // If a copy has no logical dtype here, it has lost it, as a slice without the axis of characters
  // does. A logical dtype of a later version may fit the same integers.
  const bool stays = known ? !is_copied && can_stand_for(*known, done.type, shape)
                           : !source.original || done.type == source.original->spec.dtype;
  if (stays || before.empty()) return;
  std::erase_if(attributes, is_logical);
  done.not_kept.push_back(fmt::format("logical dtype {}: the elements are {} {}", before,
                                      name(done.type), to_string(shape)));
}

}  // namespace

void throw_exists(const std::string& shown) {
  throw error(errc::already_exists, fmt::format("'{}' exists", shown), {"-f replaces it"});
}

written add_computed(const std::string& file, const expr& values,
                     const std::function<void(const tensor&)>& add) {
  const unfinished_file scratch = scratch_for(file);
  // Others may have no right to read the target, so they get none to read the scratch file.
  constexpr unsigned only_owner = 0600;
  const tensor elements = map_new_file(scratch, only_owner, values.dtype(), values.shape());
  scratch.naming_target([&] {
    eval_into(elements, values);
    // The flush reports a write error before the elements are read back: the kernel may drop pages
    // that it could not write.
    elements.storage().flush();
    elements.storage().check();
    add(elements);
  });
  return {.type = elements.dtype(), .stored_bytes = elements.size_bytes()};
}

void target_options::add_to(CLI::App& command) {
  command.add_flag(
      "-f,--force", force,
      "Replace an existing target; an array keeps its dtype, kind, chunks, codec, fill "
      "value and attributes unless other options change them");
  form.add_to(command);
}

namespace {

bool names_dimensions(const std::pair<std::string, std::string>& attribute) {
  return attribute.first == dimension_names_key;
}

// Names the axes of a slice by those of the whole array; new axes have empty names. Names that do
// not fit the array stay as they are.
void slice_dimension_names(attribute_list& attributes, const array& whole, const dims& axes) {
  const auto found = std::find_if(attributes.begin(), attributes.end(), names_dimensions);
  if (found == attributes.end()) return;
  try {
    const std::vector<std::string> names = dimension_names(whole).value();
    std::vector<std::string> kept;
    for (const index_t axis : axes)
      kept.push_back(axis < 0 ? std::string() : names[static_cast<std::size_t>(axis)]);
    found->second = attribute_value(kept).stored();
  } catch (const error& failure) {
    if (failure.code() != errc::corrupt && failure.code() != errc::invalid_argument &&
        failure.code() != errc::unsupported)
      throw;
  }
}

// Drops the names of the axes of an array that gets another rank. A copy may bring its own.
void drop_dimension_names(attribute_list& attributes, const std::optional<origin>& original,
                          written& done) {
  const bool has_new_names = original && std::any_of(original->attributes.begin(),
                                                     original->attributes.end(), names_dimensions);
  if (std::erase_if(attributes, names_dimensions) > 0 && !has_new_names)
    done.not_kept.push_back("dimension names: the new array has another rank");
}

}  // namespace

std::optional<origin> origin_of(const operand& source) {
  if (!source.stored) return std::nullopt;
  origin from{spec_of(*source.stored), source.stored->attributes()};
  if (source.location.index) {
    const dims axes = axes_of_slice(source.stored->rank(), *source.location.index);
    from.spec = sliced(from.spec, axes);
    slice_dimension_names(from.attributes, *source.stored, axes);
  } else {
    from.whole = source.stored;
  }
  return from;
}

written put_array(transaction& change, const std::string& file, const std::string& name,
                  const contents& source, const target_options& options) {
  const std::optional<array> before = change.find(name);
  if (before && !options.force) throw_exists(label(file, name));
  std::optional<array_spec> model;
  attribute_list attributes;
  written done{.type = chosen_dtype(source, before)};
  if (before) {
    model = spec_of(*before);
    attributes = before->attributes();
    if (before->rank() != source.values.rank())
      drop_dimension_names(attributes, source.original, done);
  } else if (source.original) {
    model = source.original->spec;
  }
  chosen_form form = form_for(done.type, source.values.shape(), model, options.form);
  if (before && !source.type && done.type != before->dtype())
    done.not_kept.push_back(fmt::format("dtype {}: the new values are {}",
                                        shale::name(before->dtype()), shale::name(done.type)));
  if (options.form.chooses_codec()) {
    done.choice = choose_codec(source.values, form.spec);
    form.spec.codec = done.choice->codec;
  }
  std::move(form.not_kept.begin(), form.not_kept.end(), std::back_inserter(done.not_kept));
  if (source.original)
    attributes.insert(attributes.end(), source.original->attributes.begin(),
                      source.original->attributes.end());
  settle_logical_dtype(attributes, source, done);
  write_whole(before ? change.create_or_replace(name, form.spec) : change.create(name, form.spec),
              source);
  for (const auto& [key, value] : attributes) change.set_attribute(name, key, value);
  done.stored_bytes = change.find(name)->stored_bytes();
  throw_if_interrupted();
  return done;
}

std::string detail_lines(const written& done) {
  std::string lines;
  if (done.choice) lines += "\n  codec: " + reasons_of(*done.choice, done.type);
  for (const std::string& property : done.not_kept) lines += "\n  not kept: " + property;
  return lines;
}

void add_details(nlohmann::json& to, const written& done) {
  to["not_kept"] = done.not_kept;
  if (!done.choice) return;
  nlohmann::json trials = nlohmann::json::array();
  for (const codec_trial& trial : done.choice->trials)
    trials.push_back(
        {{"codec", format_codec(trial.codec, done.type)}, {"stored_bytes", trial.stored_bytes}});
  to["codec_choice"] = {{"codec", format_codec(done.choice->codec, done.type)},
                        {"sample_bytes", done.choice->sample_bytes},
                        {"trials", trials}};
}

// This is checked before the work, so that a refusal comes at once.
void require_replaceable(const std::string& file, const target_options& options) {
  if (!options.force && is_regular_file(file)) throw_exists(file);
}

void require_form(const address& target, const target_options& options) {
  if (target.format != file_format::shale && options.form.wants_chunks())
    throw error(errc::invalid_argument, "only .shale containers have chunks and codecs",
                {"got " + target.text});
}

void require_no_other_members(const address& target) {
  const bool is_archive = target.format == file_format::npz;
  if ((!is_archive && target.format != file_format::t7) || target.array.empty() ||
      !file_exists(target.file))
    return;
  const char* const kind = is_archive ? "an archive" : "a .t7 file";
  std::vector<std::string> others =
      is_archive ? npz_file::open(target.file).names() : t7_file::open(target.file).names();
  std::erase(others, target.array);
  if (others.empty()) return;
  throw error(errc::already_exists,
              fmt::format("'{}' holds other arrays: {}", target.file, list_of_names(others)),
              {fmt::format("{} is written whole, so they would be lost", kind),
               fmt::format("-f replaces the whole {} if the target is {} without a name",
                           is_archive ? "archive" : "file", target.file),
               "arrays can be added one by one to a .shale container"});
}

void require_room_for(const address& target, const target_options& options) {
  require_form(target, options);
  require_no_other_members(target);
  if (target.format != file_format::shale) {
    require_replaceable(target.file, options);
    return;
  }
  if (options.force || target.index || target.array.empty() || !is_regular_file(target.file))
    return;
  if (container::open(target.file).latest().find(target.array))
    throw_exists(label(target.file, target.array));
}

written write_target(const address& target, const contents& source, const target_options& options) {
  contents wanted = source;
  if (target.raw_dtype) {
    if (wanted.type && *wanted.type != *target.raw_dtype)
      throw error(errc::invalid_argument,
                  fmt::format("'{}' names the dtype {}, the options name {}", target.text,
                              name(*target.raw_dtype), name(*wanted.type)));
    wanted.type = target.raw_dtype;
  }
  if (target.raw_shape && !(*target.raw_shape == source.values.shape()))
    throw error(errc::invalid_argument,
                fmt::format("'{}' names another shape than the elements have", target.text),
                {fmt::format("the elements have {}", to_string(source.values.shape()))});
  if (wanted.type && *wanted.type != source.values.dtype())
    wanted.values = astype(source.values, *wanted.type);
  require_form(target, options);
  if (target.format == file_format::shale)
    return target.index ? write_part(target, wanted, options)
                        : write_array(target, wanted, options);
  const bool has_logical = target.format == file_format::npy || target.format == file_format::npz;
  const auto logical =
      has_logical ? kept_logical_dtype(wanted.logical, wanted.values) : std::nullopt;
  written done = write_file(target, wanted.values, logical, options);
  done.not_kept = lost_properties(wanted, logical);
  return done;
}

}  // namespace shale::tools
