// Finds, reads and replaces the stored chunks of one array.
#pragma once

#include <cstdint>
#include <optional>

#include "array/elements/chunk_claims.hpp"
#include "format/chunks/chunk_entry.hpp"
#include "format/codec/codec.hpp"
#include "format/generations/generation_view.hpp"

namespace shale::arrays {

/// The stored chunks of one array, by number.
/// Threads  every member may be called from any thread; different chunks may be put at once
class chunk_store {
 public:
  virtual ~chunk_store() = default;

  virtual std::optional<format::chunk_entry> find(std::uint64_t number) const = 0;

  /// Reads the stored bytes and verifies them. `into` is entry.stored_bytes long. Throws corrupt,
  /// io.
  virtual void read(const format::chunk_entry& entry, format::bytes_span into) const = 0;

  /// If this number stays the same, so do the bytes of every entry that `find` has returned. In a
  /// generation they stay for ever.
  virtual std::uint64_t times_space_taken() const { return 0; }

  /// The descriptor for read-ahead hints to the kernel; -1 if there is none.
  virtual int descriptor() const noexcept = 0;

  virtual bool writable() const noexcept { return false; }

  /// Identifies the chunks: stores of the same chunks return the same address.
  virtual const void* identity() const noexcept { return this; }

  /// Gives the calling thread alone the right to replace a chunk, or to change a part of it. Waits
  /// while another thread has it. A store whose chunks no other thread can replace returns a claim
  /// on nothing.
  virtual chunk_claims::claim claim(std::uint64_t) { return {}; }

  /// Replaces a chunk. Throws out_of_space, io; access_denied unless writable.
  virtual void put(std::uint64_t number, const format::encoded_chunk& chunk);

  /// Makes a chunk read as the fill value.
  virtual void erase(std::uint64_t number);
};

/// The chunks of an array in one generation. It pins the generation.
class generation_chunks final : public chunk_store {
 public:
  generation_chunks(format::generation_view view, format::array_record record)
      : view_(std::move(view)), record_(std::move(record)) {}

  std::optional<format::chunk_entry> find(std::uint64_t number) const override;
  void read(const format::chunk_entry& entry, format::bytes_span into) const override;
  int descriptor() const noexcept override;

 private:
  format::generation_view view_;
  format::array_record record_;
};

}  // namespace shale::arrays
