// Names that contain a zero byte: the system would end the path there, and read or replace another
// file than the named one.
#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "shale/container.hpp"
#include "shale/mapped_file.hpp"
#include "shale/npy.hpp"
#include "shale/npz.hpp"
#include "shale/raw.hpp"
#include "shale/shared_memory.hpp"
#include "shale/t7.hpp"
#include "shale/unfinished_file.hpp"
#include "storage/files/whole_path.hpp"
#include "support/failures.hpp"
#include "support/scratch_directory.hpp"

namespace shale {
namespace {

using test::code_of;
using test::text_of;

class ZeroByte : public testing::Test {
 protected:
  using call = std::function<void(const std::string&)>;

  // The call is refused, the message contains the whole name, and no file is made, read or changed.
  void expect_refused(const std::string& door, const std::string& victim, const call& open) {
    SCOPED_TRACE(door);
    const std::string before = test::read_file(victim);
    const auto names = directory_.names();
    for (const std::string& path :
         {victim + std::string("\0.npy", 5), victim + '\0', directory_ / std::string("\0", 1)}) {
      EXPECT_EQ(code_of([&] { open(path); }), errc::invalid_argument);
      const std::string text = text_of([&] { open(path); });
      EXPECT_NE(text.find("zero byte"), std::string::npos) << text;
      EXPECT_NE(text.find("\\0"), std::string::npos) << text;
    }
    EXPECT_EQ(test::read_file(victim), before);
    EXPECT_EQ(directory_.names().size(), names.size());
  }

  const tensor values_ = tensor::of<float>({1, 2, 3});
  test::scratch_directory directory_;
};

TEST_F(ZeroByte, IsRefusedInEveryPath) {
  const std::string npy = directory_ / "victim.npy";
  write_npy(npy, values_);
  const std::string npz = directory_ / "victim.npz";
  const std::pair<std::string, tensor> member{"a", values_};
  write_npz(npz, std::span(&member, 1));
  const std::string stored = directory_ / "victim.shale";
  container::create(stored).close();

  expect_refused("read_npy", npy, [](const std::string& path) { read_npy(path); });
  expect_refused("inspect_npy", npy, [](const std::string& path) { inspect_npy(path); });
  expect_refused("write_npy", npy, [&](const std::string& path) { write_npy(path, values_); });
  expect_refused("npy_writer", npy,
                 [](const std::string& path) { npy_writer(path, dtype::float32, {3}).finish(); });
  expect_refused("npz_file", npz, [](const std::string& path) { npz_file::open(path); });
  expect_refused("npz_writer", npz, [](const std::string& path) { npz_writer(path).finish(); });
  expect_refused("write_npz", npz,
                 [&](const std::string& path) { write_npz(path, std::span(&member, 1)); });
  expect_refused("t7_file", npy, [](const std::string& path) { t7_file::open(path); });
  expect_refused("t7_writer", npy, [](const std::string& path) { t7_writer(path).finish(); });
  expect_refused("write_t7", npy, [&](const std::string& path) { write_t7(path, values_); });
  expect_refused("read_raw", npy, [](const std::string& path) { read_raw(path, dtype::uint8); });
  expect_refused("write_raw", npy, [&](const std::string& path) { write_raw(path, values_); });
  expect_refused("unfinished_file", npy,
                 [](const std::string& path) { unfinished_file(path, existing_file::replace); });
  expect_refused("map_file", npy, [](const std::string& path) { map_file(path); });
  expect_refused("mapping_support_at", npy,
                 [](const std::string& path) { mapping_support_at(path); });
  for (const existing_file existing :
       {existing_file::replace, existing_file::refuse, existing_file::keep})
    expect_refused("create_file", npy, [&](const std::string& path) {
      create_file(path, 100, {.existing = existing});
    });
  expect_refused("container::create", stored,
                 [](const std::string& path) { container::create(path); });
  for (const open_mode mode : {open_mode::read, open_mode::write}) {
    expect_refused("container::open", stored,
                   [mode](const std::string& path) { container::open(path, mode); });
    expect_refused("container::open_if_exists", stored,
                   [mode](const std::string& path) { container::open_if_exists(path, mode); });
  }
  expect_refused("container::open_or_create", stored,
                 [](const std::string& path) { container::open_or_create(path); });
  expect_refused("require_whole_path", npy,
                 [](const std::string& path) { detail::require_whole_path(path); });
  detail::require_whole_path(npy);
  detail::require_whole_path("");
}

TEST_F(ZeroByte, IsRefusedInTheNamesOfSegments) {
  const std::string name = "zero-byte-test." + std::to_string(::getpid());
  const storage made = create_shared(name, 100);
  const std::string longer = name + std::string("\0x", 2);
  EXPECT_EQ(code_of([&] { create_shared(longer, 100); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { open_shared(longer); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { remove_shared(longer); }), errc::invalid_argument);
  EXPECT_TRUE(list_shared(longer).empty());
  EXPECT_EQ(reclaim_shared(longer), 0u);
  EXPECT_EQ(open_shared(name).size_bytes(), 100u);
}

TEST_F(ZeroByte, IsRefusedInTheNamesOfMembersAndArrays) {
  const std::string name("a\0b", 3);
  const std::pair<std::string, tensor> members[] = {{"a", values_}, {name, values_}};
  const std::string npz = directory_ / "x.npz";
  EXPECT_EQ(code_of([&] { write_npz(npz, members); }), errc::invalid_argument);
  write_npz(npz, std::span(members, 1));
  EXPECT_FALSE(npz_file::open(npz).contains(name));
  EXPECT_EQ(code_of([&] { npz_file::open(npz).read(name); }), errc::not_found);

  container file = container::create(directory_ / "x.shale");
  transaction change = file.begin();
  change.create("a", {.shape = {3}});
  EXPECT_EQ(code_of([&] { change.create(name, {.shape = {3}}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { change.rename("a", name); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { change.update(name); }), errc::not_found);
  EXPECT_EQ(code_of([&] { change.remove(name); }), errc::not_found);
  EXPECT_FALSE(change.find(name));
  change.commit();
  EXPECT_FALSE(file.latest().find(name));
  EXPECT_EQ(file.latest().names(), std::vector<std::string>{"a"});
}

// Attributes are not names of files: keys and values may be any bytes.
TEST_F(ZeroByte, IsKeptInAttributes) {
  const std::string key("k\0ey", 4), value("\0value\0", 7);
  container file = container::create(directory_ / "x.shale");
  transaction change = file.begin();
  change.create("a", {.shape = {3}});
  change.set_attribute("a", "k", "another");
  change.set_attribute("a", key, value);
  change.commit();
  using attributes = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(file.latest().at("a").attributes(), (attributes{{"k", "another"}, {key, value}}));
  transaction last = file.begin();
  last.remove_attribute("a", key);
  last.commit();
  EXPECT_EQ(file.latest().at("a").attributes(), (attributes{{"k", "another"}}));
}

}  // namespace
}  // namespace shale
