// Produces the bytes of an .npy file from a tensor: the header, then the elements in consecutive
// pieces.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "interop/elements.hpp"
#include "shale/npy.hpp"

namespace shale::interop {

class npy_stream {
 public:
  /// `logical` is what the integers stand for.
  /// Throws   unsupported for dtypes that NumPy has no code for; as format_npy_header
  npy_stream(const tensor& values, const std::optional<logical_dtype>& logical)
      : in_order_(values) {
    npy_header header{.dtype = values.dtype(), .shape = values.shape(), .logical = logical};
    const bool is_text = logical && has_character_axis(*logical);
    if (!is_text && !values.is_contiguous()) {
      dims reversed;
      for (index_t axis = values.rank() - 1; axis >= 0; --axis) reversed.push_back(axis);
      const tensor columns = values.permute_dims(reversed);
      header.fortran_order = columns.is_contiguous();
      if (header.fortran_order) in_order_ = columns;
    }
    header_ = format_npy_header(header);
  }

  const std::string& header() const noexcept { return header_; }
  std::uint64_t bytes() const noexcept { return header_.size() + in_order_.size_bytes(); }

  /// Passes the elements, which follow the header, to `sink`.
  void for_each_piece(executor& on,
                      const std::function<void(std::span<const std::byte>)>& sink) const {
    stream_elements(in_order_, std::endian::little, on, sink);
  }

 private:
  tensor in_order_;  // its row-major order is that of the file
  std::string header_;
};

}  // namespace shale::interop
