#include "parallel/mapped/file_stage.hpp"

#include <span>

#include "parallel/blocks/block_copy.hpp"
#include "parallel/mapped/part_pieces.hpp"
#include "storage/blocks/backing.hpp"
#include "storage/system/pages.hpp"

namespace shale::parallel {

// A tensor in the stage that has the part's shape and the order of its elements in the file. Inside
// a piece, elements have the same distances as in the file.
tensor file_stage::staged(const tensor& part, index_t gap_bytes) {
  const auto item = static_cast<index_t>(part.item_bytes());
  if (!room_)
    room_ = tensor::empty({static_cast<index_t>(bytes_max_) / item}, part.dtype(), &pool_);
  const memory_pieces pieces = pieces_of_part(part, gap_bytes);
  dims strides = part.strides();
  index_t step = pieces.bytes / item;
  for (index_t k = pieces.axes.size() - 1; k >= 0; --k) {
    const index_t axis = pieces.axes[k];
    strides[axis] = strides[axis] < 0 ? -step : step;
    step *= part.shape()[axis];
  }
  index_t origin = room_->offset();
  for (index_t axis = 0; axis < strides.size(); ++axis)
    if (strides[axis] < 0) origin -= strides[axis] * (part.shape()[axis] - 1);
  return tensor(room_->storage(), part.dtype(), layout(part.shape(), strides, origin));
}

bool file_stage::read(const tensor& part, const tensor& into) {
  const auto gap_bytes = static_cast<index_t>(detail::system_page_bytes());
  const tensor read_part = staged(part, gap_bytes);
  std::byte* to = room_->data();
  bool all = true;
  for_each_piece(part, gap_bytes, [&](byte_range piece) {
    all = all && detail::read_file(part.storage(), piece.offset, {to, piece.bytes});
    to += piece.bytes;
  });
  if (all) copy_elements_here(into, read_part);
  return all;
}

bool file_stage::write(const tensor& part, const tensor& from) {
  const auto page = static_cast<index_t>(detail::system_page_bytes());
  const memory_pieces pieces = pieces_of_part(part, 0);
  if (pieces.bytes < page && pieces.bytes != pieces_of_part(part, page).bytes) return false;
  copy_elements_here(staged(part, 0), from);
  const std::byte* bytes = room_->data();
  bool all = true;
  for_each_piece(part, 0, [&](byte_range piece) {
    all = all && detail::write_file(part.storage(), piece.offset, {bytes, piece.bytes});
    bytes += piece.bytes;
  });
  return all;
}

}  // namespace shale::parallel
