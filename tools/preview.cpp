#include "preview.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <memory>

#include "shale/error.hpp"

namespace shale::tools {

namespace {

// Pages that nobody touches take no memory, and without a reservation no promise of any.
storage untouched_pages(std::size_t bytes) {
  void* pages = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED)
    throw error::from_errno(errc::out_of_memory, "address space for a preview", errno);
  return storage::adopt(pages, bytes, [bytes](void* address) { ::munmap(address, bytes); });
}

// Computes every combination of the long axes' ends.
void fill_corners(const tensor& stage, const expr& values, index_t axis, index_t edge,
                  executor& on) {
  if (axis == stage.rank()) {
    eval_into(stage, values, &on);
    return;
  }
  const index_t length = stage.shape(axis);
  if (length <= 2 * edge) {
    fill_corners(stage, values, axis + 1, edge, on);
    return;
  }
  for (const index_t start : {index_t{0}, length - edge})
    fill_corners(stage.narrow(axis, start, edge), values.narrow(axis, start, edge), axis + 1, edge,
                 on);
}

}  // namespace

tensor preview(const expr& values, const print_options& options, executor& on) {
  if (values.size() <= options.threshold) return eval(values, &on);
  const layout whole(values.shape());
  const auto bytes =
      checked_mul(static_cast<std::size_t>(whole.size()), item_bytes(values.dtype()));
  if (!bytes) throw error(errc::invalid_argument, "the array is too large to be shown");
  const tensor stage(untouched_pages(*bytes), values.dtype(), whole);
  // One more than is printed, so that nothing depends on how exactly the printer counts.
  fill_corners(stage, values, 0, options.edge_items + 1, on);
  return stage;
}

}  // namespace shale::tools
