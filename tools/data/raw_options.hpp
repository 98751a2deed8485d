// The options --dtype and --shape, which describe a raw file whose address does not.
#pragma once

#include <string>

#include "notation/address.hpp"
#include "shale/tensor.hpp"

namespace CLI {
class App;
}

namespace shale::tools {

struct raw_options {
  std::string type;
  std::string shape;

  /// Adds --dtype and --shape.
  void add_to(CLI::App& command);
};

/// Returns `source` with the dtype and the shape that the options give.
/// Throws   invalid_argument: an option contradicts the address, or the address names no raw file
address with_raw_options(address source, const raw_options& options);

/// Throws   invalid_argument (the address gives no dtype), what `read_raw` throws
tensor read_raw_file(const address& source);

}  // namespace shale::tools
