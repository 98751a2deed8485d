// Reading what an address names: as an operand of expressions, or as facts about it.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "address.hpp"
#include "shale/container.hpp"
#include "shale/expr.hpp"
#include "shale/npz.hpp"

namespace CLI {
class App;
}

namespace shale::tools {

/// How to read raw files whose address does not say it.
struct raw_options {
  std::string type;
  std::string shape;

  /// Adds --dtype and --shape.
  void add_to(CLI::App& command);
};

/// Fills in what the address of a raw file leaves open.
/// Throws   invalid_argument for options that contradict the address or meet no raw file
address with_raw_options(address which, const raw_options& options);

/// Something to compute with.
struct operand {
  address where;

  /// The elements, sliced; reading happens when an expression over them is evaluated.
  expr values;

  /// The same where they can be addressed without reading them first: mapped or in memory.
  std::optional<tensor> elements;

  /// The array of a container that `values` are, or are a slice of.
  std::optional<array> stored = std::nullopt;
};

/// What is known about an array without reading it.
struct array_facts {
  std::string name;  ///< empty for files that hold one nameless array
  shale::dtype type = shale::dtype::float32;
  dims shape;
  std::string kind;  ///< "dense", "chunked", "mapped", "deflated", …
  std::optional<dims> chunk_shape;
  std::string codec;  ///< "" where nothing encodes
  std::uint64_t stored_bytes = 0;
  std::uint64_t logical_bytes = 0;
  std::optional<std::string> fill_value;
  std::optional<std::uint64_t> modified;
  std::vector<std::pair<std::string, std::string>> attributes;

  /// Why nothing but the name is known.
  std::optional<error> problem;

  /// "2.17" or "-" where nothing is stored.
  std::string ratio() const;

  nlohmann::json to_json() const;
};

/// Opens files, each once: operands from one container come from one generation of it.
class library {
 public:
  /// Throws   not_found (file or array, with the names there are), corrupt, unsupported, io,
  ///          invalid_argument (a file with several arrays and no name, a slice that does not fit)
  operand open(const address& which);

  /// Facts about the array that `which` names, or about every one in the file. Members of an archive
  /// that are no arrays, or damaged, are there with their problem unless `which` names one.
  std::vector<array_facts> describe(const address& which);

  /// The generation that operands of this container come from.
  const snapshot& generation_of(const std::string& file);
  const container& container_of(const std::string& file);

  /// An archive that stays open.
  const npz_file& archive_at(const std::string& file);

 private:
  struct opened {
    container file;
    snapshot generation;
  };
  opened& container_at(const std::string& file);

  // The name that `which` leaves out, if the file holds one array only.
  std::string name_in(const address& which, const std::vector<std::string>& names);
  operand open_shale(const address& which);

  std::map<std::string, opened> containers_;
  std::map<std::string, npz_file> archives_;
};

/// Throws   not_found, access_denied, io
std::uint64_t file_bytes(const std::string& path);

/// Notes what is wrong with those of `arrays` that have a problem.
/// Returns  the exit code of the first, 0 if none has any
int note_problems(const std::vector<array_facts>& arrays);

/// A number for JSON: integers exact, NaN and infinities as null, complex as [re, im].
nlohmann::json to_json(const scalar& value);
nlohmann::json to_json(const dims& values);

}  // namespace shale::tools
