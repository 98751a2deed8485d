// What the handles `array` and `writable_array` share with their copies.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "array/chunk_tiles.hpp"
#include "array/transaction_state.hpp"
#include "format/container_file.hpp"
#include "shale/array.hpp"
#include "shale/storage.hpp"

namespace shale {

struct array::implementation {
  /// An array of a pinned generation.
  implementation(std::string path, format::array_record record, format::generation_view view);

  /// An array as a transaction found it.
  implementation(arrays::transaction_state& owner, arrays::transaction_state::found_array found);

  std::string path;
  format::array_record record;

  // Chunked: where its chunks are read.
  std::shared_ptr<const arrays::chunk_tiles> tiles;

  // Dense: of a generation, mapped at the first call; or mapped already, by a transaction.
  std::optional<format::generation_view> view;
  std::mutex mapping;
  storage mapped;

  std::string label() const;

  /// All elements of a dense array, over the file's own bytes.
  tensor dense();
};

struct writable_array::implementation {
  std::shared_ptr<arrays::transaction_state> owner;
  std::shared_ptr<arrays::written_array> what;

  /// Throws   invalid_argument (the transaction has ended), not_found (removed)
  void require_writable() const { owner->require_writable(*what); }
  bool is_dense() const noexcept { return what->record.is_dense(); }
  std::string frame(const char* doing) const;
  tensor dense() const;
};

}  // namespace shale
