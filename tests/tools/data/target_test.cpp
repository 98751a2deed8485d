#include "data/target.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "notation/address.hpp"
#include "shale/functions.hpp"
#include "shale/tensor.hpp"
#include "shale/tile_source.hpp"
#include "support/failures.hpp"
#include "support/scratch_directory.hpp"

namespace shale::tools {
namespace {

// Another process that truncates all unfinished files of a folder while elements are loaded.
class truncating_tiles final : public tile_source {
 public:
  explicit truncating_tiles(std::string folder) : folder_(std::move(folder)) {}
  shale::dtype dtype() const noexcept override { return shale::dtype::int32; }
  const dims& shape() const noexcept override { return shape_; }
  const dims& tile_shape() const noexcept override { return shape_; }
  std::uint64_t stored_bytes(const dims&) const override { return 1; }
  void load(const dims&, const tensor& values) const override {
    for (const auto& entry : std::filesystem::directory_iterator(folder_))
      if (entry.path().extension() == ".partial") std::filesystem::resize_file(entry.path(), 0);
    std::ranges::fill(tensor(values).elements<std::int32_t>(), 1);
  }

 private:
  std::string folder_;
  dims shape_{100000};
};

// The temporary file is gone when somebody reads the message.
TEST(Target, IsNamedByErrorsOfItsMapping) {
  for (const char* const name : {"x.npy", "x.npz", "x.npz:a", "x.t7", "x.t7:a", "x.raw"}) {
    SCOPED_TRACE(name);
    const test::scratch_directory files;
    const address target = parse_address(files / name);
    const expr values(std::make_shared<truncating_tiles>(files.path()));
    const test::outcome went =
        test::outcome_of([&] { write_target(target, {.values = values + 1}, {}); });
    EXPECT_EQ(went.code, errc::io) << went.text;
    EXPECT_NE(went.text.find("file " + target.file), std::string::npos) << went.text;
    EXPECT_EQ(went.text.find("partial"), std::string::npos) << went.text;
    EXPECT_EQ(files.names(), std::vector<std::string>{});
  }
}

}  // namespace
}  // namespace shale::tools
