// All foreign formats and ways to write them, for tests of their common guarantees.
#pragma once

#include <cstring>
#include <functional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "shale/npy.hpp"
#include "shale/npz.hpp"
#include "shale/raw.hpp"
#include "shale/t7.hpp"

namespace shale::test {

/// One format: functions that read and write 16-bit integers, and its result for an empty file.
struct foreign {
  std::string name;
  std::function<tensor(const std::string&)> read;
  std::function<void(const std::string&, const tensor&)> write;
  errc empty_file;
};

inline std::ostream& operator<<(std::ostream& to, const foreign& format) {
  return to << format.name;
}

inline const std::vector<foreign>& foreign_formats() {
  using members = std::vector<std::pair<std::string, tensor>>;
  static const std::vector<foreign> all{
      {"npy", [](const std::string& path) { return read_npy(path); },
       [](const std::string& path, const tensor& values) { write_npy(path, values); },
       errc::corrupt},
      {"npz", [](const std::string& path) { return npz_file::open(path).read("a"); },
       [](const std::string& path, const tensor& values) {
         write_npz(path, members{{"a", values}});
       },
       errc::corrupt},
      {"deflated", [](const std::string& path) { return npz_file::open(path).read("a"); },
       [](const std::string& path, const tensor& values) {
         write_npz(path, members{{"a", values}}, {.compression = npz_compression::deflate});
       },
       errc::corrupt},
      {"t7", [](const std::string& path) { return t7_file::open(path).read(""); },
       [](const std::string& path, const tensor& values) { write_t7(path, values); },
       errc::corrupt},
      {"raw", [](const std::string& path) { return read_raw(path, dtype::int16); },
       [](const std::string& path, const tensor& values) { write_raw(path, values); }, errc{}},
      {"mapped", [](const std::string& path) { return read_npy(path); },
       [](const std::string& path, const tensor& values) {
         npy_writer writer(path, values.dtype(), values.shape());
         tensor elements = writer.elements();
         std::memcpy(elements.data(), values.data(), values.size_bytes());
         writer.finish();
       },
       errc::corrupt},
  };
  return all;
}

}  // namespace shale::test
