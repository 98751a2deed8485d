// The facts in texts of /proc and /sys, and the reason for a missing text.
#include "doctor/system/system_text.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "support/scratch_directory.hpp"

namespace shale::tools {
namespace {

TEST(SystemTree, GivesTextsOrTheReason) {
  const test::scratch_directory root;
  ::mkdir((root / "proc").c_str(), 0700);
  std::ofstream(root / "proc/x") << std::string(100'000, 'x');
  const system_tree system(root / "");
  EXPECT_EQ(system.text("/proc/x")->size(), 100'000u);
  EXPECT_EQ(*system.entries("/proc"), 1u);
  EXPECT_EQ(system.text("/proc/y").why, "/proc/y: No such file or directory");
  EXPECT_EQ(system.text("/proc").why, "/proc: Is a directory");
  EXPECT_EQ(system.entries("/proc/y").why, "/proc/y: No such file or directory");
}

TEST(Known, HandsItsReasonOn) {
  const auto twice = [](int number) { return 2.0 * number; };
  EXPECT_EQ(*known<int>(4).then(twice), 8.0);
  EXPECT_EQ(known<int>::unknown("nobody knows").then(twice).why, "nobody knows");
}

TEST(SystemText, Counts) {
  EXPECT_EQ(parse_count("65530\n"), 65530u);
  EXPECT_EQ(parse_count("max\n"), no_limit<std::uint64_t>);
  EXPECT_EQ(parse_count("-1\n"), no_limit<std::uint64_t>);
  for (const char* text : {"", "\n", "x", "12 13", "-2", "99999999999999999999"})
    EXPECT_EQ(parse_count(text), std::nullopt) << text;
}

TEST(SystemText, Fields) {
  const char* const text = "MemTotal:       24668560 kB\nMemAvailable:        7 kB\nPages:  12\n";
  EXPECT_EQ(parse_field(text, "MemTotal"), 24668560ull * 1024);
  EXPECT_EQ(parse_field(text, "MemAvailable"), 7ull * 1024);
  EXPECT_EQ(parse_field(text, "Pages"), std::nullopt);  // not in kB
  EXPECT_EQ(parse_field(text, "Mem"), std::nullopt);
  EXPECT_EQ(parse_field("", "MemTotal"), std::nullopt);
  EXPECT_EQ(parse_field("MemTotal: 99999999999999999 kB", "MemTotal"), std::nullopt);
}

TEST(SystemText, Lines) {
  const char* const text = "processor\t: 0\nmodel name\t: A: B\n\nflags\n";
  EXPECT_EQ(parse_line(text, "model name"), "A: B");
  EXPECT_EQ(parse_line(text, "flags"), std::nullopt);
}

TEST(SystemText, Choices) {
  EXPECT_EQ(parse_choice("always [madvise] never\n"), "madvise");
  EXPECT_EQ(parse_choice("always defer defer+madvise madvise [never]"), "never");
  for (const char* text : {"", "always", "[madvise", "madvise]"})
    EXPECT_EQ(parse_choice(text), std::nullopt) << text;
}

TEST(SystemText, Pressure) {
  const auto found = parse_pressure(
      "some avg10=1.53 avg60=0.87 avg300=0.00 total=123\n"
      "full avg10=0.50 avg60=0.25 avg300=0.00 total=45\n");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->some_10, 1.53);
  EXPECT_EQ(found->some_60, 0.87);
  EXPECT_EQ(found->full_10, 0.50);
  EXPECT_EQ(found->full_60, 0.25);
  EXPECT_TRUE(parse_pressure("some avg10=1.53 avg60=0.87"));
  for (const char* text : {"", "some", "some avg10=x avg60=1", "full avg10=0.5 avg60=0.5"})
    EXPECT_FALSE(parse_pressure(text)) << text;
}

TEST(SystemText, ControlGroups) {
  const auto unified = parse_groups("0::/a/b\n", "memory");
  ASSERT_EQ(unified.size(), 1u);
  EXPECT_TRUE(unified[0].unified);
  EXPECT_EQ(unified[0].folders,
            (std::vector<std::string>{"/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup"}));
  const auto both = parse_groups("9:name=systemd:/\n3:cpu,cpuacct:/x\n2:memory:/\n0::/\n", "cpu");
  ASSERT_EQ(both.size(), 2u);
  EXPECT_FALSE(both[0].unified);
  EXPECT_EQ(both[0].folders, (std::vector<std::string>{"/sys/fs/cgroup/cpu,cpuacct/x",
                                                       "/sys/fs/cgroup/cpu,cpuacct"}));
  EXPECT_EQ(both[1].folders, std::vector<std::string>{"/sys/fs/cgroup"});
  EXPECT_TRUE(parse_groups("", "cpu").empty());
  EXPECT_TRUE(parse_groups("4:cpuset:/\n", "cpu").empty());
}

TEST(SystemText, Quotas) {
  EXPECT_EQ(parse_quota("150000 100000\n"), 1.5);
  EXPECT_EQ(parse_quota("max 100000\n"), no_limit<double>);
  EXPECT_EQ(parse_quota("-1 100000"), no_limit<double>);
  for (const char* text : {"", "150000", "150000 0", "x 100000"})
    EXPECT_EQ(parse_quota(text), std::nullopt) << text;
}

TEST(SystemText, HugeBytesOfARange) {
  const char* const smaps =
      "10000000-10400000 rw-p 00000000 00:00 0 \n"
      "Size:               4096 kB\nAnonHugePages:      2048 kB\n"
      "ShmemPmdMapped:        0 kB\nFilePmdMapped:         0 kB\nVmFlags: rd wr\n"
      "10400000-10800000 r--s 00000000 fe:00 12 /a-b c\n"
      "AnonHugePages:         0 kB\nShmemPmdMapped:        0 kB\nFilePmdMapped:      4096 kB\n"
      "20000000-20400000 rw-s 00000000 00:1b 3 /dev/shm/x\n"
      "AnonHugePages:         0 kB\nShmemPmdMapped:     4096 kB\nFilePmdMapped:         0 kB\n";
  constexpr std::size_t mib = 1 << 20;
  EXPECT_EQ(parse_huge_bytes(smaps, 0x10000000, 4 * mib), 2 * mib);
  EXPECT_EQ(parse_huge_bytes(smaps, 0x10000000, 8 * mib), 6 * mib);
  EXPECT_EQ(parse_huge_bytes(smaps, 0x20000000, 4 * mib), 4 * mib);
  EXPECT_EQ(parse_huge_bytes(smaps, 0x20000000, mib), mib);  // a part of a mapping
  EXPECT_EQ(parse_huge_bytes(smaps, 0x30000000, mib), std::nullopt);
  EXPECT_EQ(parse_huge_bytes("", 0x10000000, mib), std::nullopt);
}

TEST(SystemText, Mounts) {
  const char* const text =
      "28 1 254:0 / / rw,relatime shared:1 master:2 - ext4 /dev/vda rw\n"
      "29 28 0:26 / /mnt/a\\040b ro,nosuid - tmpfs tmpfs rw,size=1024k\n"
      "30 28 0:27 / /back\\134slash rw - overlay overlay ro,lowerdir=/x\n"
      "31 28 0:28 / /cut";
  const auto root = parse_mount(text, 28);
  ASSERT_TRUE(root);
  EXPECT_EQ(root->folder, "/");
  EXPECT_EQ(root->type, "ext4");
  EXPECT_EQ(root->source, "/dev/vda");
  EXPECT_FALSE(root->read_only);
  const auto blank = parse_mount(text, 29);
  ASSERT_TRUE(blank);
  EXPECT_EQ(blank->folder, "/mnt/a b");
  EXPECT_TRUE(blank->read_only);
  const auto overlay = parse_mount(text, 30);
  ASSERT_TRUE(overlay);
  EXPECT_EQ(overlay->folder, "/back\\slash");
  EXPECT_TRUE(overlay->read_only);
  EXPECT_FALSE(parse_mount(text, 31));
  EXPECT_FALSE(parse_mount(text, 2));
}

}  // namespace
}  // namespace shale::tools
