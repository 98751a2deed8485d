// Opens the files that addresses name, as operands of expressions or as facts about their arrays.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "data/array_facts.hpp"
#include "notation/address.hpp"
#include "shale/container.hpp"
#include "shale/executor.hpp"
#include "shale/functions.hpp"
#include "shale/logical_dtype.hpp"
#include "shale/npz.hpp"
#include "shale/t7.hpp"

namespace shale::tools {

/// An array, or a slice of one, as an operand of expressions.
struct operand {
  tools::address location;

  /// The elements. They are read when an expression over them is evaluated.
  expr values;

  /// The elements as a tensor, if they are mapped or in memory.
  std::optional<tensor> elements;

  /// The container's array that the elements belong to.
  std::optional<array> stored = std::nullopt;

  /// What the integers stand for.
  std::optional<logical_dtype> logical = std::nullopt;
};

/// The files that a command reads. Each is opened once, so that all operands from a container come
/// from one generation.
class input_files {
 public:
  /// `mode` is the one that containers are opened in: read, or salvage. `checksums` says whether
  /// mapped members of .npz files are compared with their checksums.
  explicit input_files(open_mode mode = open_mode::read,
                       checksum_use checksums = checksum_use::trusted)
      : mode_(mode), checksums_(checksums) {}

  /// Throws   not_found (the file, or the array with a list of names), corrupt, unsupported, io,
  ///          invalid_argument (a slice that does not fit, or no name for a file of several arrays)
  operand open(const address& source);

  /// Facts about the array that `source` names, or about every array of the file. A member of an
  /// archive that is damaged or not an array appears with its problem, unless `source` names it:
  /// then the problem is thrown.
  std::vector<array_facts> describe(const address& source);

  /// The generation that operands of this container come from.
  const snapshot& generation_of(const std::string& file);
  const container& container_of(const std::string& file);

  /// The archive, which stays open.
  const npz_file& archive_at(const std::string& file);

  /// The file of Torch7, which stays open.
  const t7_file& torch_file_at(const std::string& file);

 private:
  struct opened_container {
    container file;
    snapshot generation;
  };
  opened_container& container_at(const std::string& file);
  operand open_array(const address& source);
  std::vector<array_facts> describe_container(const address& source);
  std::vector<array_facts> describe_archive(const address& source);
  std::vector<array_facts> describe_torch_file(const address& source);

  open_mode mode_;
  checksum_use checksums_;
  std::map<std::string, opened_container> containers_;
  std::map<std::string, npz_file> archives_;
  std::map<std::string, t7_file> torch_files_;
};

}  // namespace shale::tools
