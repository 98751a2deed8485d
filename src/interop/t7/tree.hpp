// The tree of a .t7 file as flat lists, so that neither its depth nor its cycles need a recursion.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "shale/dtype.hpp"
#include "shale/t7.hpp"

namespace shale::interop::t7 {

inline constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

/// A value, or a reference to an object.
struct node {
  t7_kind kind = t7_kind::nil;

  /// Whether the bytes of a string are in `tree::texts`. Keys are held there; other strings may be
  /// large, and stay in the file.
  bool is_held = false;
  std::uint32_t text_bytes = 0;  ///< of a string
  std::uint64_t place = 0;       ///< of an object in `tree::objects`, or of the bytes of a string
  double number = 0;             ///< of a number or a boolean
};

/// An entry of a table. An object or a function has one entry: what it holds.
struct entry {
  node key;
  node value;
  std::size_t next = none;  ///< the next entry of the same table
};

struct object {
  t7_kind kind = t7_kind::table;
  shale::dtype dtype = shale::dtype::uint8;  ///< of a tensor or a storage
  std::uint32_t class_bytes = 0;             ///< the name of its class, in `tree::texts`
  std::size_t class_place = 0;
  std::uint64_t begin = 0;     ///< its offset in the file, for messages
  std::size_t first = none;    ///< the first entry; of a tensor: its sizes in `tree::extents`
  std::size_t storage = none;  ///< of a tensor: its storage, if it has one
  std::int64_t rank = 0;       ///< of a tensor; its strides follow the sizes
  std::int64_t offset = 0;     ///< of a tensor: the position of its first element
  std::int64_t count = 0;      ///< of a storage: its elements
  std::uint64_t data = 0;      ///< of a storage: the offset of the first element in the file
};

struct tree {
  t7_encoding encoding = t7_encoding::binary;
  node root;
  std::vector<object> objects;
  std::vector<entry> entries;
  std::vector<std::int64_t> extents;
  std::string texts;
};

}  // namespace shale::interop::t7
