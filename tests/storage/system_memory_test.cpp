// Reads invented versions of the system's files about memory.
#include "storage/system/system_memory.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "support/scratch_directory.hpp"

namespace shale::detail {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t mib = std::size_t{1} << 20;

class made_up_system {
 public:
  void put(const std::string& name, const std::string& text) const {
    const std::filesystem::path path = root_ / name;
    std::filesystem::create_directories(path.parent_path());
    test::write_file(path, text);
  }
  system_memory read() const { return read_system_memory(root_.path()); }

 private:
  test::scratch_directory root_;
};

TEST(SystemMemory, ReadsTheMachineAndItsPressure) {
  const made_up_system system;
  system.put("proc/meminfo",
             "MemTotal:  2048 kB\nMemFree: 5 kB\nMemAvailable:     1024 kB\nX: 1\n");
  system.put("proc/pressure/memory",
             "some avg10=1.50 avg60=0.00 avg300=0.00 total=123456789012\n"
             "full avg10=0.00 avg60=0.00 avg300=0.00 total=7\n");
  const system_memory read = system.read();
  EXPECT_EQ(read.total_bytes, 2 * mib);
  EXPECT_EQ(read.available_bytes, mib);
  EXPECT_EQ(read.limit_bytes, std::nullopt);
  EXPECT_EQ(read.stalled, 123456789012us);
}

TEST(SystemMemory, OfAGroupIsBoundByAllAboveIt) {
  const made_up_system system;
  system.put("proc/self/cgroup", "0::/a/b/c\n");
  system.put("sys/fs/cgroup/a/b/c/memory.max", "max\n");
  system.put("sys/fs/cgroup/a/b/memory.max", "3145728\n");
  system.put("sys/fs/cgroup/a/memory.max", "9145728\n");
  system.put("sys/fs/cgroup/a/b/c/memory.pressure", "some avg10=0.00 total=5\nfull total=1\n");
  system.put("proc/pressure/memory", "some avg10=1.50 total=900\n");
  EXPECT_EQ(system.read().limit_bytes, 3 * mib);
  EXPECT_EQ(system.read().stalled, 5us) << "the group's, not the machine's";
}

TEST(SystemMemory, KnowsTheFirstVersionOfGroups) {
  const made_up_system system;
  system.put("proc/self/cgroup", "5:devices:/x\n4:memory:/a\n0::/\n");
  system.put("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "4194304\n");
  system.put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(system.read().limit_bytes, 4 * mib);
}

TEST(SystemMemory, IsUnknownWhereNothingIsSaid) {
  const made_up_system system;
  const auto expect_nothing = [&] {
    const system_memory read = system.read();
    EXPECT_EQ(read.total_bytes, std::nullopt);
    EXPECT_EQ(read.available_bytes, std::nullopt);
    EXPECT_EQ(read.limit_bytes, std::nullopt);
    EXPECT_EQ(read.stalled, std::nullopt);
  };
  expect_nothing();
  system.put("proc/meminfo", "MemTotal: many\n");
  system.put("proc/self/cgroup", "rubbish\n7:memory\n0:\n");
  system.put("proc/pressure/memory", "");
  expect_nothing();
}

TEST(SystemMemory, OfThisMachineIsThere) {
  const system_memory read = read_system_memory();
  ASSERT_TRUE(read.total_bytes && read.available_bytes);
  EXPECT_LE(*read.available_bytes, *read.total_bytes);
}

}  // namespace
}  // namespace shale::detail
