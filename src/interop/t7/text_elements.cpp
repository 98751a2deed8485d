#include "interop/t7/text_elements.hpp"

#include <cstddef>
#include <cstring>

#include "interop/t7/cursor.hpp"
#include "parallel/executor/executor_state.hpp"
#include "shale/executor.hpp"
#include "shale/small_floats.hpp"

namespace shale::interop::t7 {

namespace {

constexpr std::int64_t elements_between_looks = 1 << 16;

template <class Take>
void fill_with(const storage& into, std::int64_t count, Take&& take) {
  const executor& on = executor::current();
  std::byte* next = into.data();
  for (std::int64_t i = 0; i < count; ++i) {
    if (i % elements_between_looks == 0) parallel::require_not_cancelled(on);
    const auto element = take();
    std::memcpy(next, &element, sizeof element);
    next += sizeof element;
  }
}

}  // namespace

storage read_text_elements(const input_file& file, const object& of) {
  // Each element is a word of the file, which has been counted.
  storage made = storage::allocate(static_cast<std::size_t>(of.count) * item_bytes(of.dtype));
  cursor from(file, t7_encoding::ascii, of.data);
  switch (of.dtype) {
    case dtype::int16:
      fill_with(made, of.count, [&] { return from.take_short(); });
      break;
    case dtype::int32:
      fill_with(made, of.count, [&] { return from.take_int(); });
      break;
    case dtype::int64:
      fill_with(made, of.count, [&] { return from.take_long(); });
      break;
    case dtype::float16:
      fill_with(made, of.count, [&] { return float16(from.take_float()); });
      break;
    case dtype::float32:
      fill_with(made, of.count, [&] { return from.take_float(); });
      break;
    case dtype::float64:
      fill_with(made, of.count, [&] { return from.take_double(); });
      break;
    default:
      // 8-bit elements are bytes in both encodings: they are mapped.
      break;
  }
  return made;
}

}  // namespace shale::interop::t7
