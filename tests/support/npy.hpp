// An independent writer of .npy files, version 1.0, so that test data for NumPy does not pass
// through the tested code.
// Source   NumPy's format specification (numpy.lib.format)
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <fstream>
#include <string>

#include "support/index_oracle.hpp"

namespace shale::test {

/// Writes row-major `bytes` as an array of `shape` with the NumPy dtype `descr` ("<f4").
inline void write_npy(const std::string& path, const std::string& descr, const index_list& shape,
                      const void* bytes, std::size_t count) {
  std::string header = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (";
  for (const auto extent : shape) header += std::to_string(extent) + ",";
  header += "), }";
  // Magic, version and length take 10 bytes; the header is padded to a multiple of 64 bytes and
  // ends with a line break.
  while ((10 + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::ofstream file(path, std::ios::binary);
  file << std::string("\x93NUMPY\x01\x00", 8) << static_cast<char>(header.size() & 0xff)
       << static_cast<char>(header.size() >> 8) << header;
  file.write(static_cast<const char*>(bytes), static_cast<std::streamsize>(count));
  ASSERT_TRUE(file.good()) << path;
}

}  // namespace shale::test
