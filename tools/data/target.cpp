#include "data/target.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "data/array_target.hpp"
#include "data/container_change.hpp"
#include "data/foreign_target.hpp"
#include "data/input_files.hpp"
#include "data/logical.hpp"
#include "data/lost_properties.hpp"
#include "data/name_advice.hpp"
#include "notation/codec_text.hpp"
#include "shale/npz.hpp"
#include "shale/t7.hpp"
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

}  // namespace

void throw_exists(const std::string& shown) {
  throw error(errc::already_exists, fmt::format("'{}' exists", shown), {"-f replaces it"});
}

void target_options::add_to(CLI::App& command) {
  command.add_flag(
      "-f,--force", force,
      "Replace an existing target; an array keeps its dtype, kind, chunks, codec, fill "
      "value and attributes unless other options change them");
  form.add_to(command);
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
  written done = write_foreign_file(target, wanted.values, logical, options);
  done.not_kept = lost_properties(wanted, logical);
  return done;
}

}  // namespace shale::tools
