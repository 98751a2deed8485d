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
#include "support/failing_calls.hpp"
#include "support/failures.hpp"
#include "support/scratch_directory.hpp"
#include "support/temporary_folder.hpp"

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

// Looks at all unfinished files of a folder while elements are loaded.
class watching_tiles final : public tile_source {
 public:
  using seen_permissions = std::vector<std::filesystem::perms>;

  watching_tiles(std::string folder, seen_permissions& seen)
      : folder_(std::move(folder)), seen_(seen) {}
  shale::dtype dtype() const noexcept override { return shale::dtype::int32; }
  const dims& shape() const noexcept override { return shape_; }
  const dims& tile_shape() const noexcept override { return shape_; }
  std::uint64_t stored_bytes(const dims&) const override { return 1; }
  void load(const dims&, const tensor& values) const override {
    for (const auto& entry : std::filesystem::directory_iterator(folder_))
      seen_.push_back(entry.status().permissions());
    std::ranges::fill(tensor(values).elements<std::int32_t>(), 1);
  }

 private:
  std::string folder_;
  seen_permissions& seen_;
  dims shape_{100};
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

// Computed elements need a mapping that can be written, which network file systems do not have.
class NetworkTarget : public testing::Test {
 protected:
  NetworkTarget() { test::imitate_network_files(network_.path()); }
  ~NetworkTarget() override { test::imitate_network_files(""); }

  test::scratch_directory network_, local_;
  const expr values_ = arange(300000) * 3 - 7;
};

TEST_F(NetworkTarget, HoldsTheBytesOfALocalOne) {
  const test::scratch_directory temporary;
  const test::temporary_folder chosen(temporary.path().c_str());
  for (const char* const name : {"x.npy", "x.npz", "x.npz:a", "x.t7", "x.t7:a", "x.raw"}) {
    SCOPED_TRACE(name);
    const address target = parse_address(network_ / name), usual = parse_address(local_ / name);
    for (const bool replaces : {false, true}) {
      const written done =
          write_target(target, {.values = values_}, {.force = replaces, .form = {}});
      EXPECT_EQ(done.type, dtype::int64);
      EXPECT_EQ(done.stored_bytes, 2'400'000u);
    }
    write_target(usual, {.values = values_}, {.force = true, .form = {}});
    EXPECT_TRUE(test::read_file(target.file) == test::read_file(usual.file));
    const test::outcome again =
        test::outcome_of([&] { write_target(target, {.values = values_}, {}); });
    EXPECT_EQ(again.code, errc::already_exists) << again.text;
    EXPECT_EQ(temporary.names(), std::vector<std::string>{});
    std::filesystem::remove(target.file);
    EXPECT_EQ(network_.names(), std::vector<std::string>{});
  }
}

// Others may not read them, even if the target is new and open to everybody.
TEST_F(NetworkTarget, HasItsElementsComputedWhereOnlyTheirOwnerReads) {
  using std::filesystem::perms;
  const test::scratch_directory temporary;
  const test::temporary_folder chosen(temporary.path().c_str());
  for (const char* const name : {"x.npy", "x.npz", "x.t7", "x.raw"}) {
    watching_tiles::seen_permissions seen;
    const expr values(std::make_shared<watching_tiles>(temporary.path(), seen));
    write_target(parse_address(network_ / name), {.values = values + 1}, {});
    EXPECT_EQ(seen, watching_tiles::seen_permissions{perms::owner_read | perms::owner_write});
  }
}

TEST_F(NetworkTarget, IsRefusedWithoutALocalFolder) {
  const test::temporary_folder chosen(network_.path().c_str());
  for (const char* const name : {"x.npy", "x.npz", "x.t7:a", "x.raw"}) {
    const test::outcome went = test::outcome_of(
        [&] { write_target(parse_address(network_ / name), {.values = values_}, {}); });
    EXPECT_EQ(went.code, errc::unsupported) << went.text;
    EXPECT_NE(went.text.find("TMPDIR"), std::string::npos) << went.text;
    EXPECT_EQ(network_.names(), std::vector<std::string>{});
  }
}

}  // namespace
}  // namespace shale::tools
