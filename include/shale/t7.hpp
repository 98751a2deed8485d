// Reads and writes the .t7 files of Torch7, which hold a tree of tables, tensors and other values
// of Lua. docs/foreign-formats.md lists what is mapped, copied and refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shale/dtype.hpp"
#include "shale/existing_file.hpp"
#include "shale/layout.hpp"
#include "shale/tensor.hpp"

namespace [[gnu::visibility("default")]] shale {

/// The two forms of a file. Readers recognise them by the first byte.
enum class t7_encoding : std::uint8_t {
  binary,  ///< little-endian, with 8 bytes for a `long`
  ascii,   ///< numbers as text; strings and 8-bit elements as they are
};

/// The kind of a value in a file.
enum class t7_kind : std::uint8_t {
  nil,
  number,
  boolean,
  string,
  table,
  tensor,
  storage,
  function,  ///< byte code of Lua, which is never run
  object,    ///< an object of any other class that is stored as a table
};

/// A value in the tree of a file.
struct t7_value {
  t7_kind kind = t7_kind::nil;

  /// The value of a number; 1 or 0 for a boolean.
  double number = 0;

  /// The bytes of a string; the class of a tensor, a storage or an object ("torch.FloatTensor").
  std::string text = {};

  /// The number of a table, a tensor, a storage, a function or an object in its file. Two values
  /// with the same number are the same object.
  std::size_t object = 0;
};

/// An entry of a table.
struct t7_pair {
  t7_value key;
  t7_value value;
};

/// The description of a tensor or a storage in a file.
struct t7_array {
  std::string name;  ///< its path; empty if it was asked for by its value
  t7_kind kind = t7_kind::tensor;
  shale::dtype dtype = shale::dtype::float32;

  /// The elements in the storage. A tensor without axes is empty in Torch, and has the shape (0).
  shale::layout layout = shale::layout(dims{0});

  /// The bytes that the storage's elements take in memory; in a binary file they take as many.
  /// Several tensors may share them.
  std::uint64_t storage_bytes = 0;

  /// Whether the elements can be mapped.
  bool is_mappable = false;
};

/// Numbers of values that are no arrays.
struct t7_other_values {
  std::uint64_t numbers = 0;
  std::uint64_t booleans = 0;
  std::uint64_t strings = 0;
  std::uint64_t functions = 0;
};

/// An open file. Its tree may have cycles and shared parts, so callers ask each table for its
/// pairs.
/// Throws   invalid_argument from every member function, if it was moved from; out_of_memory
/// Threads  every member function may be called from any thread
/// Lifetime tensors from it stay valid after it was destroyed
class t7_file {
 public:
  /// Opens a file and reads its tree, without the elements of binary storages.
  /// Cost     one pass over the bytes that are no elements, or over the whole of an ASCII file. The
  ///          tree takes memory in proportion to these bytes
  /// Throws   corrupt (no object of Torch, incomplete, a reference to an object of another kind,
  ///          tensors that reach outside their storage, bytes after the object); unsupported (CUDA
  ///          tensors, classes that are not stored as a table, big-endian files, rank above 32);
  ///          not_found, access_denied, invalid_argument (no regular file), out_of_memory, io
  static t7_file open(const std::string& path);

  /// The form of the file.
  t7_encoding encoding() const;

  /// The value that was saved.
  t7_value root() const;

  /// The entries of a table, or of an object, in the order of the file.
  /// Cost     memory for each entry, and for the name of its class, which has at most 128 bytes
  /// Throws   invalid_argument (neither, or a value of another file), io, out_of_memory
  std::vector<t7_pair> pairs(const t7_value& table) const;

  /// The paths of the tensors and storages in the tree: the keys from the root to them, joined by
  /// '/', as in "weights/1". Integers are written in decimal. The root itself has the empty path.
  /// Each table is entered once, at the first place that leads to it. Each entry of a table gives a
  /// path, even if several entries hold the same tensor. Values inside functions have no path, and
  /// neither have keys.
  const std::vector<std::string>& names() const;

  /// The number of other values in the same tables.
  t7_other_values other_values() const;

  /// Whether a tensor or a storage has that path.
  bool contains(std::string_view name) const;

  /// The description of the array with that path, or of a tensor or a storage.
  /// Throws   not_found; unsupported (several arrays have the path, so that only their values tell
  ///          them apart); invalid_argument (no tensor or storage of this file)
  t7_array inspect(std::string_view name) const;
  t7_array inspect(const t7_value& array) const;

  /// A tensor with the strides of the file, or a storage as a tensor with one axis. Tensors that
  /// share their storage in the file share it here, as long as one of them exists. They cannot be
  /// written; `clone` gives a copy that can.
  /// Cost     O(1) by mapping, if the file is binary and its elements are aligned. Otherwise the
  ///          whole storage is copied, or converted from text, into pool memory. The file keeps
  ///          storages that were read last for later calls, also if no tensor uses them: about a
  ///          quarter of the current executor's budget
  /// Throws   as inspect; corrupt (text that is no number of the dtype), cancelled,
  ///          out_of_memory, io
  tensor read(std::string_view name) const;
  tensor read(const t7_value& array) const;

 private:
  struct implementation;
  explicit t7_file(std::shared_ptr<const implementation> opened) noexcept;
  const implementation& state() const;
  std::shared_ptr<const implementation> implementation_;
};

/// Refuses dtypes that Torch does not have: bool, uint16 to uint64, bfloat16, float8 and complex.
/// Throws   unsupported; the error names the dtypes that Torch has
void require_t7_dtype(dtype type);

/// Options of `write_t7` and `t7_writer`.
struct t7_write_options {
  existing_file existing = existing_file::replace;
};

/// Writes one tensor as a binary file that torch.load reads, row-major, with a storage of its own.
/// Its elements are aligned, so that they can be mapped. A tensor of rank 0 gets the shape (1),
/// because Torch has no scalars.
/// Cost     as write_npy
/// Throws   as require_t7_dtype and write_npy
void write_t7(const std::string& path, const tensor& values, const t7_write_options& options = {});

/// Writes a table that has the tensors under their names.
/// Throws   invalid_argument (a name that is empty, occurs twice, is not UTF-8, has a zero byte or
///          is longer than 65,000 bytes), and as above. The names are checked before anything is
///          written
void write_t7(const std::string& path, std::span<const std::pair<std::string, tensor>> members,
              const t7_write_options& options = {});

/// A table that is written tensor by tensor, so that the tensors need not exist together.
/// Threads  one at a time
/// Lifetime without `finish` no file appears under the name
class t7_writer {
 public:
  /// Makes the file under a temporary name beside `path`.
  /// Throws   as unfinished_file
  explicit t7_writer(const std::string& path, const t7_write_options& options = {});
  ~t7_writer();
  t7_writer(t7_writer&&) noexcept;
  t7_writer& operator=(t7_writer&&) noexcept;

  /// Writes one more tensor, as `write_t7` does. After a failure the file cannot be finished; a
  /// name or a dtype that is refused changes nothing.
  /// Throws   invalid_argument (the name; `finish` was called, a tensor has failed, or the writer
  ///          was moved from), and as write_t7
  void add(std::string_view name, const tensor& values);

  /// Completes the table, makes the file durable and gives it its name. Call it once.
  /// Throws   invalid_argument (a second call, a tensor has failed, or the writer was moved from),
  ///          and as unfinished_file::publish
  void finish();

 private:
  struct implementation;
  std::unique_ptr<implementation> implementation_;
};

}  // namespace shale
