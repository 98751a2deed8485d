#include "data/foreign_target.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <random>

#include "shale/evaluate.hpp"
#include "shale/mapped_file.hpp"
#include "shale/npy.hpp"
#include "shale/npz.hpp"
#include "shale/raw.hpp"
#include "shale/t7.hpp"
#include "shale/unfinished_file.hpp"
#include "terminal/interrupt.hpp"

namespace shale::tools {

namespace {

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

}  // namespace

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

namespace {

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

}  // namespace

written write_foreign_file(const address& target, const expr& values,
                           const std::optional<logical_dtype>& logical,
                           const target_options& options) {
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

}  // namespace shale::tools
