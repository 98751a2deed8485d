// Facts about places: real folders, and /proc, where no files can be stored.
#include "doctor/facts/place.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "shale/container.hpp"
#include "shale/error.hpp"
#include "shale/npy.hpp"
#include "shale/tensor.hpp"
#include "support/failures.hpp"
#include "support/ordinary_user.hpp"
#include "support/scratch_directory.hpp"

namespace shale::tools {
namespace {

// In a chroot whose root is not a mount point, its files lie on no mount that the kernel names.
bool is_on_a_listed_mount(const std::string& path) {
  std::ifstream lines("/proc/self/mountinfo");
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string point;
    for (int field = 0; field < 5; ++field) fields >> point;
    if (path.starts_with(point == "/" ? point : point + '/')) return true;
  }
  return false;
}

TEST(Place, IsTriedWithoutLeavingAnything) {
  const test::scratch_directory directory;
  const place_facts facts = look_at_place(directory.path());
  EXPECT_EQ(facts.folder, directory.path());
  EXPECT_GT(facts.size_bytes, 0u);
  EXPECT_EQ(static_cast<bool>(facts.mount), is_on_a_listed_mount(directory.path()))
      << facts.mount.why;
  ASSERT_TRUE(facts.reading);
  EXPECT_EQ(*facts.reading, mapping_support_at(directory.path()));
  ASSERT_TRUE(facts.leftovers);
  EXPECT_TRUE(facts.leftovers->empty());
  EXPECT_TRUE(directory.names().empty());
  EXPECT_TRUE(!facts.failure.empty() || facts.trial.locks) << facts.trial.locks.why;
}

TEST(Place, OfAFileIsWhatItLiesIn) {
  const test::scratch_directory directory;
  std::ofstream(directory / "x") << "x";
  std::ofstream(directory / ".x.0123456789abcdef.partial") << "x";
  std::ofstream(directory / ".y.0123456789abcdef.partial") << "y";
  const place_facts facts = look_at_place(directory / "x");
  EXPECT_EQ(facts.folder, directory.path());
  ASSERT_TRUE(facts.leftovers);
  ASSERT_EQ(facts.leftovers->size(), 1u);
  EXPECT_EQ(facts.leftovers->front().name.target, "x");
}

TEST(Place, OfAFileTellsWhetherItCanBeOpened) {
  const test::scratch_directory directory;
  container::create(directory / "good.shale").close();
  std::filesystem::copy_file(directory / "good.shale", directory / "cut.shale");
  std::filesystem::resize_file(directory / "cut.shale", 3000);
  write_npy(directory / "good.npy", tensor::of<std::int32_t>({1, 2, 3}));
  std::ofstream(directory / "bad.npy") << "what was there";
  std::ofstream(directory / "bad.npz") << "what was there";
  std::ofstream(directory / "text") << "x";
  ASSERT_EQ(::mkfifo((directory / "pipe.shale").c_str(), 0600), 0);
  const auto reason = [&](const char* name) {
    const place_facts facts = look_at_place(directory / name);
    EXPECT_TRUE(facts.file) << name;
    return facts.file ? facts.file->not_opened : "";
  };
  for (const char* const good : {"good.shale", "good.npy", "text"}) EXPECT_EQ(reason(good), "");
  for (const char* const bad : {"cut.shale", "bad.npy", "bad.npz"})
    EXPECT_NE(reason(bad).find("[corrupt]"), std::string::npos) << bad << ": " << reason(bad);
  EXPECT_EQ(reason("pipe.shale"), "it is a pipe, a socket or a device");
  EXPECT_FALSE(look_at_place(directory.path()).file);
}

TEST(Place, OfAFileOfAnotherUserSaysSo) {
  const test::scratch_directory directory;
  const std::string path = directory / "x.shale";
  container::create(path).close();
  ::chmod(directory.path().c_str(), 0755);
  for (const mode_t mode : {0444, 0}) {
    ::chmod(path.c_str(), mode);
    const test::ordinary_user nobody;
    const place_facts facts = look_at_place(path);
    ASSERT_TRUE(facts.file);
    EXPECT_EQ(facts.file->not_written, "Permission denied");
    EXPECT_EQ(facts.file->not_opened.find("[access_denied]") == std::string::npos, mode != 0)
        << facts.file->not_opened;
  }
}

TEST(Place, InSharedMemoryIsATmpfs) {
  const auto mount = mount_of("/dev/shm");
  ASSERT_TRUE(mount) << mount.why;
  EXPECT_EQ(mount->type, "tmpfs");
}

TEST(Place, MadeUpByTheKernelIsNotTried) {
  const place_facts facts = look_at_place("/proc/self");
  EXPECT_EQ(*facts.reading, mapping_support::refused);
  EXPECT_EQ(*facts.writing, mapping_support::refused);
  EXPECT_NE(facts.failure, "");
  EXPECT_EQ(facts.trial.mapped_bytes, 0u);
}

TEST(Place, ThatMayNotBeWrittenSaysSo) {
  const test::scratch_directory directory;
  ::chmod(directory.path().c_str(), 0555);
  {
    const test::ordinary_user nobody;
    EXPECT_EQ(look_at_place(directory.path()).failure, "Permission denied");
  }
  ::chmod(directory.path().c_str(), 0700);
}

TEST(Place, ThatIsNotThereIsAnError) {
  EXPECT_EQ(test::code_of([] { look_at_place("/nosuch/place"); }), errc::not_found);
}

TEST(Place, WithoutProcHasNoNamedFileSystem) {
  const test::scratch_directory directory;
  const place_facts facts = look_at_place(directory.path(), system_tree(directory.path()));
  EXPECT_EQ(facts.mount.why, "/proc/self/mountinfo: No such file or directory");
}

}  // namespace
}  // namespace shale::tools
