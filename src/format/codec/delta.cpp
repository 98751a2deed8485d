#include "format/codec/delta.hpp"

#include "format/bytes/byte_order.hpp"
#include "format/codec/words.hpp"

namespace shale::format {
namespace {

// Goes from the end to the front, so that `from` may be `to`.
template <class Word>
void differences(const std::byte* from, std::byte* to, std::size_t count) noexcept {
  if (count == 0) return;
  for (std::size_t i = count - 1; i > 0; --i)
    store(to + i * sizeof(Word), static_cast<Word>(load<Word>(from + i * sizeof(Word)) -
                                                   load<Word>(from + (i - 1) * sizeof(Word))));
  store(to, load<Word>(from));
}

template <class Word>
void sums(std::byte* values, std::size_t count) noexcept {
  Word sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    sum = static_cast<Word>(sum + load<Word>(values + i * sizeof(Word)));
    store(values + i * sizeof(Word), sum);
  }
}

}  // namespace

void take_differences(bytes_view from, std::size_t item_bytes, bytes_span to) noexcept {
  with_word(item_bytes, [&](auto zero) {
    differences<decltype(zero)>(from.data(), to.data(), from.size() / item_bytes);
  });
}

void sum_differences(bytes_span elements, std::size_t item_bytes) noexcept {
  with_word(item_bytes, [&](auto zero) {
    sums<decltype(zero)>(elements.data(), elements.size() / item_bytes);
  });
}

}  // namespace shale::format
