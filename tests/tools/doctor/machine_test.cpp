// Facts from made-up texts of /proc and /sys, and without these texts.
#include "doctor/facts/machine.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "doctor/verdicts/diagnosis.hpp"
#include "shale/executor.hpp"
#include "support/scratch_directory.hpp"

namespace shale::tools {
namespace {

class Machine : public testing::Test {
 protected:
  void put(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root.path() + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  machine_facts look() const { return look_at_machine(system_tree(root.path())); }

  test::scratch_directory root;
};

TEST_F(Machine, IsAsItsTextsSay) {
  put("/proc/cpuinfo", "processor\t: 0\nmodel name\t: Abacus\n");
  put("/proc/meminfo",
      "MemTotal: 8192 kB\nMemAvailable: 4096 kB\nCommitLimit: 3 kB\nCommitted_AS: 2 kB\n");
  put("/proc/pressure/memory", "some avg10=1.00 avg60=2.00\nfull avg10=3.00 avg60=4.00\n");
  put("/proc/sys/vm/overcommit_memory", "2\n");
  put("/proc/sys/vm/max_map_count", "1234\n");
  put("/proc/self/status", "Name: x\nVmSize: 20 kB\nVmData: 10 kB\n");
  put("/proc/self/maps", "one\ntwo\nthree\n");
  put("/proc/self/fd/0", "");
  put("/proc/self/fd/1", "");
  put("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
  put("/sys/kernel/mm/transparent_hugepage/defrag", "always defer [never]\n");
  const machine_facts facts = look();
  EXPECT_EQ(*facts.processor.model, "Abacus");
  EXPECT_EQ(*facts.memory.total_bytes, 8192u * 1024);
  EXPECT_EQ(*facts.memory.available_bytes, 4096u * 1024);
  EXPECT_EQ(*facts.memory.commit_limit_bytes, 3u * 1024);
  EXPECT_EQ(*facts.memory.committed_bytes, 2u * 1024);
  EXPECT_EQ(facts.memory.pressure->full_60, 4.0);
  EXPECT_EQ(*facts.memory.overcommit, 2u);
  EXPECT_EQ(*facts.limits.mappings_max, 1234u);
  EXPECT_EQ(*facts.limits.mappings_used, 3u);
  EXPECT_EQ(*facts.limits.descriptors_used, 2u);
  EXPECT_EQ(*facts.limits.address_space_used_bytes, 20u * 1024);
  EXPECT_EQ(*facts.limits.data_used_bytes, 10u * 1024);
  EXPECT_EQ(*facts.huge_pages.enabled, "madvise");
  EXPECT_EQ(*facts.huge_pages.defrag, "never");
}

TEST_F(Machine, HasTheLowestLimitsOfItsControlGroups) {
  put("/proc/self/cgroup", "0::/outer/inner\n");
  put("/sys/fs/cgroup/outer/inner/memory.max", "max\n");
  put("/sys/fs/cgroup/outer/inner/memory.current", "1\n");
  put("/sys/fs/cgroup/outer/memory.max", "5000\n");
  put("/sys/fs/cgroup/outer/memory.current", "2000\n");
  put("/sys/fs/cgroup/outer/memory.high", "4000\n");
  put("/sys/fs/cgroup/outer/inner/cpu.max", "250000 100000\n");
  put("/sys/fs/cgroup/outer/cpu.max", "max 100000\n");
  const machine_facts facts = look();
  EXPECT_EQ(*facts.memory.group_limit_bytes, 5000u);
  EXPECT_EQ(*facts.memory.group_used_bytes, 2000u);
  EXPECT_EQ(*facts.memory.group_throttle_bytes, 4000u);
  EXPECT_EQ(*facts.processor.quota, 2.5);
}

TEST_F(Machine, KnowsTheFirstVersionOfControlGroups) {
  put("/proc/self/cgroup", "5:memory:/docker/abc\n3:cpu,cpuacct:/docker/abc\n0::/\n");
  // Only the container's group is mounted, and it is mounted as the root.
  put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "6000\n");
  put("/sys/fs/cgroup/memory/memory.usage_in_bytes", "7\n");
  put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "50000\n");
  put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  machine_facts facts = look();
  EXPECT_EQ(*facts.memory.group_limit_bytes, 6000u);
  EXPECT_EQ(*facts.memory.group_used_bytes, 7u);
  EXPECT_FALSE(facts.memory.group_throttle_bytes);
  EXPECT_EQ(*facts.processor.quota, 0.5);
  put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  facts = look();
  EXPECT_EQ(*facts.memory.group_limit_bytes, no_limit<std::uint64_t>);
  EXPECT_EQ(*facts.processor.quota, no_limit<double>);
}

TEST_F(Machine, MayLeaveHugePagesToTheSettingOfTheirSize) {
  const std::string folder = "/sys/kernel/mm/transparent_hugepage";
  put(folder + "/enabled", "[always] madvise never\n");
  put(folder + "/hugepages-2048kB/enabled", "always [inherit] madvise never\n");
  EXPECT_EQ(*look().huge_pages.enabled, "always");
  put(folder + "/hugepages-2048kB/enabled", "always inherit madvise [never]\n");
  EXPECT_EQ(*look().huge_pages.enabled, "never");
}

TEST_F(Machine, WithoutTextsIsUnknownForAReason) {
  const machine_facts facts = look();
  EXPECT_EQ(facts.processor.model.why, "/proc/cpuinfo: No such file or directory");
  EXPECT_EQ(facts.memory.group_limit_bytes.why, "/proc/self/cgroup: No such file or directory");
  EXPECT_EQ(facts.memory.budget_bytes, executor::shared().memory_bytes());
  EXPECT_GT(facts.processor.usable, 0u);
  put("/proc/meminfo", "nothing of interest\n");
  put("/proc/self/cgroup", "0::/\n");
  EXPECT_EQ(look().memory.total_bytes.why, "/proc/meminfo does not say");
  EXPECT_EQ(look().memory.group_limit_bytes.why, "no control group says it");
  for (const auto& checks : {diagnose(facts.processor), diagnose(facts.memory),
                             diagnose(facts.limits), diagnose(facts.huge_pages, pool_trial())})
    for (const check& item : checks) EXPECT_NE(item.value, "nobody asked") << item.name;
}

}  // namespace
}  // namespace shale::tools
