#include "doctor/facts/machine.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <system_error>
#include <thread>

#include "doctor/system/versions.hpp"
#include "shale/error.hpp"
#include "shale/executor.hpp"
#include "shale/linalg.hpp"
#include "shale/version.hpp"

namespace shale::tools {

namespace {

// The value that `parse` finds in the file. It is unknown if the file or the value is missing.
template <class Parse>
auto read_as(const system_tree& system, const std::string& path, Parse parse) {
  using value = typename decltype(parse(std::string_view()))::value_type;
  const known<std::string> text = system.text(path);
  if (!text) return known<value>::unknown(text.why);
  auto found = parse(std::string_view(*text));
  return found ? known<value>(*std::move(found))
               : known<value>::unknown(fmt::format("{} does not say", path));
}

known<std::uint64_t> field_of(const system_tree& system, const std::string& path,
                              const std::string& key) {
  return read_as(system, path, [&](std::string_view text) { return parse_field(text, key); });
}

// A setting of one of this process's control groups, or of a group above it.
template <class Number>
struct group_setting {
  Number value{};
  std::string folder;
  bool unified = false;
};

// The lowest value that `read(folder, is_unified)` finds in the control groups.
template <class Number, class Read>
known<group_setting<Number>> lowest_of_groups(const system_tree& system,
                                              std::string_view controller, Read read) {
  using setting = group_setting<Number>;
  const known<std::string> groups = system.text("/proc/self/cgroup");
  if (!groups) return known<setting>::unknown(groups.why);
  auto lowest = known<setting>::unknown("no control group says it");
  for (const group_folders& group : parse_groups(*groups, controller))
    for (const std::string& folder : group.folders)
      if (const known<Number> here = read(folder, group.unified);
          here && (!lowest || *here < lowest->value))
        lowest = setting{*here, folder, group.unified};
  return lowest;
}

using group_bytes = group_setting<std::uint64_t>;

// `unified_file` is the name of the setting in version 2, `file` its name in version 1, which is
// empty if version 1 does not have the setting.
known<group_bytes> lowest_group_bytes(const system_tree& system, const std::string& unified_file,
                                      const std::string& file) {
  return lowest_of_groups<std::uint64_t>(
      system, "memory", [&](const std::string& folder, bool unified) {
        const std::string& name = unified ? unified_file : file;
        if (name.empty()) return known<std::uint64_t>::unknown("version 1 has none");
        auto found = read_as(system, fmt::format("{}/{}", folder, name), parse_count);
        // Version 1 writes an unreachable number of pages for a limit that is not set.
        constexpr std::uint64_t unreachable = std::uint64_t{1} << 62;
        if (found && *found >= unreachable) found = no_limit<std::uint64_t>;
        return found;
      });
}

std::uint64_t value_of(const group_bytes& setting) { return setting.value; }

known<std::uint64_t> bytes_used_in(const system_tree& system, const known<group_bytes>& group) {
  if (!group) return known<std::uint64_t>::unknown(group.why);
  const char* const file = group->unified ? "memory.current" : "memory.usage_in_bytes";
  return read_as(system, fmt::format("{}/{}", group->folder, file), parse_count);
}

known<double> group_quota(const system_tree& system) {
  const auto read = [&](const std::string& folder, bool unified) {
    if (unified) return read_as(system, folder + "/cpu.max", parse_quota);
    const known<std::string> quota = system.text(folder + "/cpu.cfs_quota_us");
    if (!quota) return known<double>::unknown(quota.why);
    return read_as(system, folder + "/cpu.cfs_period_us", [&](std::string_view period) {
      const std::string_view first(*quota);
      return parse_quota(fmt::format("{} {}", first.substr(0, first.find('\n')), period));
    });
  };
  return lowest_of_groups<double>(system, "cpu", read)
      .then([](const group_setting<double>& setting) { return setting.value; });
}

// What the library says of its kernels, or why it refuses those that the environment asks for.
template <class Ask>
known<std::string> unless_refused(Ask ask) {
  try {
    return std::string(ask());
  } catch (const error& refusal) {
    return known<std::string>::unknown(std::string(refusal.message()));
  }
}

std::vector<std::string> cpu_features() {
  std::vector<std::string> found;
#if defined(__x86_64__)
  const auto add = [&](const char* name, int is_there) {
    if (is_there != 0) found.emplace_back(name);
  };
  add("sse4.2", __builtin_cpu_supports("sse4.2"));
  add("avx", __builtin_cpu_supports("avx"));
  add("avx2", __builtin_cpu_supports("avx2"));
  add("fma", __builtin_cpu_supports("fma"));
  add("avx512f", __builtin_cpu_supports("avx512f"));
  add("avx512bw", __builtin_cpu_supports("avx512bw"));
  add("avx512dq", __builtin_cpu_supports("avx512dq"));
  add("avx512vl", __builtin_cpu_supports("avx512vl"));
#endif
  return found;
}

std::uint64_t usable_processors(std::uint64_t online) {
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return online;
  return static_cast<std::uint64_t>(CPU_COUNT(&allowed));
}

bool can_start_thread() {
  try {
    std::thread([] {}).join();
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

processor_facts look_at_processor(const system_tree& system) {
  processor_facts facts;
  facts.model = read_as(system, "/proc/cpuinfo",
                        [](std::string_view text) { return parse_line(text, "model name"); });
  facts.kernels = unless_refused(instruction_set);
  const char* const forced = std::getenv("SHALE_ISA");
  facts.forced = forced != nullptr ? forced : "";
  facts.features = cpu_features();
  facts.blas = unless_refused(blas_name);
  facts.online = static_cast<std::uint64_t>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
  facts.usable = usable_processors(facts.online);
  facts.quota = group_quota(system);
  facts.threads = static_cast<std::uint64_t>(executor::shared().threads());
  facts.starts_threads = can_start_thread();
  return facts;
}

memory_facts look_at_memory(const system_tree& system) {
  memory_facts facts;
  facts.total_bytes = field_of(system, "/proc/meminfo", "MemTotal");
  facts.available_bytes = field_of(system, "/proc/meminfo", "MemAvailable");
  const auto limit = lowest_group_bytes(system, "memory.max", "memory.limit_in_bytes");
  facts.group_limit_bytes = limit.then(value_of);
  facts.group_used_bytes = bytes_used_in(system, limit);
  facts.group_throttle_bytes = lowest_group_bytes(system, "memory.high", "").then(value_of);
  facts.budget_bytes = executor::shared().memory_bytes();
  facts.pressure = read_as(system, "/proc/pressure/memory", parse_pressure);
  facts.overcommit = read_as(system, "/proc/sys/vm/overcommit_memory", parse_count);
  facts.commit_limit_bytes = field_of(system, "/proc/meminfo", "CommitLimit");
  facts.committed_bytes = field_of(system, "/proc/meminfo", "Committed_AS");
  return facts;
}

std::uint64_t soft_limit(decltype(RLIMIT_AS) resource) {
  struct rlimit limit {};
  const bool is_unlimited = ::getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY;
  return is_unlimited ? no_limit<std::uint64_t> : limit.rlim_cur;
}

limit_facts look_at_limits(const system_tree& system) {
  limit_facts facts;
  facts.address_space_bytes = soft_limit(RLIMIT_AS);
  facts.data_bytes = soft_limit(RLIMIT_DATA);
  facts.file_bytes = soft_limit(RLIMIT_FSIZE);
  facts.descriptors = soft_limit(RLIMIT_NOFILE);
  struct rlimit files {};
  facts.descriptors_hard =
      ::getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_max == RLIM_INFINITY
          ? no_limit<std::uint64_t>
          : files.rlim_max;
  facts.address_space_used_bytes = field_of(system, "/proc/self/status", "VmSize");
  facts.data_used_bytes = field_of(system, "/proc/self/status", "VmData");
  facts.descriptors_used = system.entries("/proc/self/fd");
  facts.mappings_used = system.text("/proc/self/maps").then([](const std::string& maps) {
    return static_cast<std::uint64_t>(std::count(maps.begin(), maps.end(), '\n'));
  });
  facts.mappings_max = read_as(system, "/proc/sys/vm/max_map_count", parse_count);
  return facts;
}

huge_page_facts look_at_huge_pages(const system_tree& system) {
  const std::string folder = "/sys/kernel/mm/transparent_hugepage";
  huge_page_facts facts;
  facts.enabled = read_as(system, folder + "/enabled", parse_choice);
  // Newer kernels have a setting for each page size; "inherit" refers to the common setting.
  const auto own = read_as(system, folder + "/hugepages-2048kB/enabled", parse_choice);
  if (facts.enabled && own && *own != "inherit") facts.enabled = own;
  facts.defrag = read_as(system, folder + "/defrag", parse_choice);
  facts.disabled_for_process = ::prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) == 1;
  return facts;
}

version_facts look_at_versions() {
  version_facts facts;
  facts.shale = version();
  facts.format = static_cast<std::uint64_t>(format_version());
  facts.compiler = compiler();
  facts.libraries = libraries();
  struct utsname about {};
  ::uname(&about);
  facts.kernel = fmt::format("{} {} {}", about.sysname, about.release, about.machine);
  return facts;
}

}  // namespace

machine_facts look_at_machine(const system_tree& system) {
  return {.versions = look_at_versions(),
          .processor = look_at_processor(system),
          .memory = look_at_memory(system),
          .limits = look_at_limits(system),
          .huge_pages = look_at_huge_pages(system)};
}

}  // namespace shale::tools
