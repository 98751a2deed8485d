// What a transaction, its writable arrays and their tile sources share.
//
// Invariants
//   change.1  the format's transaction is used by one thread at a time (`books_`), except that
//             chunks and dense bytes are read and written outside that lock
//   change.2  commit waits for writes that have begun, commit and abort for chunk operations, and
//             none begins after them: nothing is written once the writer lock may have gone
//   change.3  writable mappings are read-only before their checksums are taken, and stay so
//   change.4  a mapping that outlives its transaction either holds a pin on the generation that
//             owns its bytes, or is cut off from the file
//   change.5  no lock that a chunk operation takes is held while a loop runs: the loop may need
//             the very threads that wait for that lock
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "array/chunk_tiles.hpp"
#include "array/operation_gate.hpp"
#include "array/reader_file.hpp"
#include "format/container_file.hpp"
#include "shale/storage.hpp"
#include "storage/file_descriptor.hpp"

namespace shale::arrays {

/// What keeps a transaction's mapping usable: the descriptor it was made from, and, once the
/// transaction is committed, a pin on the generation.
struct mapping_owner {
  detail::file_descriptor descriptor;
  std::optional<format::generation_view> pin;
};

/// An array that the transaction made or changes.
struct written_array {
  std::string name;             ///< as of now: `rename` follows
  format::array_record record;  ///< as when it was opened: dtype, shape, layout
  bool removed = false;

  // Dense.
  storage bytes;
  std::shared_ptr<mapping_owner> owner;

  // Chunked.
  std::shared_ptr<chunk_tiles> tiles;
};

class transaction_state : public std::enable_shared_from_this<transaction_state> {
 public:
  transaction_state(std::shared_ptr<reader_file> readers, format::transaction inner,
                    format::generation_view base);
  ~transaction_state();

  std::uint64_t generation() const noexcept { return generation_; }
  const std::string& path() const noexcept { return readers_->path(); }
  std::string label(std::string_view name) const;

  /// Adds an array; what it needs on the device is reserved.
  std::shared_ptr<written_array> create(format::array_record record);
  std::shared_ptr<written_array> update(std::string_view name);

  /// What `find` found: the record as changed so far; `written` if it was created or updated here,
  /// else its data is that of `base`.
  struct found_array {
    format::array_record record;
    std::shared_ptr<written_array> written;
    std::optional<format::generation_view> base;
  };
  std::optional<found_array> find(std::string_view name) const;

  void remove(std::string_view name);
  void rename(std::string_view from, std::string_view to);
  void set_attribute(std::string_view array, std::string_view key, std::string_view value);
  void remove_attribute(std::string_view array, std::string_view key);

  /// A write, of many chunks or of a mapping's bytes, that is in the commit as a whole or throws.
  operation_gate::visit begin_write() noexcept { return operation_gate::visit(writes_); }

  /// Throws   invalid_argument once the transaction ends, not_found if the array is removed
  void require_writable(const written_array& array) const;

  /// The same, and a share in what is written to: the transaction may end, or the array be removed,
  /// in the middle of a write.
  storage bytes_of(const written_array& array) const;
  std::shared_ptr<chunk_tiles> tiles_of(const written_array& array) const;

  std::uint64_t commit();
  void abort() noexcept;
  std::uint64_t metadata_bytes_written() const noexcept;

  // ---- for the chunks of `array`; any thread --------------------------------------------------

  std::optional<format::chunk_entry> find_chunk(const written_array& array,
                                                std::uint64_t number) const;
  void read_chunk(const format::chunk_entry& entry, format::bytes_span into) const;
  void put_chunk(const written_array& array, std::uint64_t number,
                 const format::encoded_chunk& chunk);
  void erase_chunk(const written_array& array, std::uint64_t number);
  int descriptor() const noexcept;

  /// A handle to the chunks that reads only.
  std::shared_ptr<const chunk_tiles> read_tiles(const std::shared_ptr<written_array>& array);

 private:
  void require_open(const operation_gate& gate) const;
  void require_active() const { require_open(writes_); }
  void require_chunks(const written_array& array) const;
  [[noreturn]] void throw_no_array(std::string_view name) const;
  void open_dense(written_array& array);
  std::shared_ptr<written_array> adopt(format::array_record record);
  void cut_off(written_array& array) noexcept;
  void give_back(const format::dense_layout& unused) noexcept;
  void checksum(written_array& array);
  void check_mappings() const;
  void keep_mappings() noexcept;
  void close(operation_gate& gate) noexcept;
  void publish();
  void end() noexcept;

  const std::shared_ptr<reader_file> readers_;
  const std::uint64_t generation_;
  const pid_t process_ = ::getpid();

  // Changes of which arrays there are, and the end, take turns; `turn_` is taken before `books_`.
  mutable std::mutex turn_;
  mutable std::mutex books_;
  operation_gate writes_;  // closed: the transaction ends
  mutable operation_gate chunks_;
  std::optional<format::transaction> inner_;
  std::optional<format::generation_view> base_;
  std::map<std::string, std::shared_ptr<written_array>, std::less<>> written_;
  std::uint64_t metadata_bytes_ = 0;
};

}  // namespace shale::arrays
