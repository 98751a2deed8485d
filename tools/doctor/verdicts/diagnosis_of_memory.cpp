// The verdicts on memory and on the memory pool.
#include <fmt/format.h>

#include <algorithm>

#include "doctor/verdicts/diagnosis.hpp"
#include "terminal/units.hpp"

namespace shale::tools {

namespace {

constexpr std::uint64_t mib = std::uint64_t{1} << 20;

// ---- memory ---------------------------------------------------------------------------------

void judge_available(findings& list, const memory_facts& facts) {
  if (!facts.available_bytes) return list.unknown("available", facts.available_bytes.why);
  std::string value = format_bytes(*facts.available_bytes);
  if (facts.total_bytes) value += fmt::format(" of {}", format_bytes(*facts.total_bytes));
  if (*facts.available_bytes < 128 * mib)
    list.problem("available", value, "Almost no memory is free. End processes that use it.");
  else list.ok("available", value);
}

void judge_group(findings& list, const memory_facts& facts) {
  if (!facts.group_limit_bytes) return list.unknown("control group", facts.group_limit_bytes.why);
  const std::uint64_t limit = *facts.group_limit_bytes;
  if (limit == no_limit<std::uint64_t>) return list.ok("control group", "no limit");
  std::string value = format_bytes(limit);
  if (facts.group_used_bytes)
    value += fmt::format(", {} in use", format_bytes(*facts.group_used_bytes));
  if (limit < 128 * mib)
    list.problem("control group", value,
                 "The kernel ends processes of the group that need more. Raise memory.max (in "
                 "Docker: --memory).");
  else list.ok("control group", value);
}

void judge_budget(findings& list, const memory_facts& facts) {
  const std::string value =
      fmt::format("{} for a command without --mem", format_bytes(facts.budget_bytes));
  const std::uint64_t throttle = facts.group_throttle_bytes.value.value_or(no_limit<std::uint64_t>);
  if (remainder_of(throttle, facts.budget_bytes) < 64 * mib)
    list.note("budget", value,
              fmt::format("The group's memory.high is {}, and beyond it the kernel stops processes "
                          "again and again. Give commands a --mem below it.",
                          format_bytes(throttle)));
  else if (facts.budget_bytes < 256 * mib)
    list.note("budget", value,
              "Operands larger than the budget are processed in small pieces. This is slow for "
              "transposed "
              "operands.");
  else list.ok("budget", value);
}

void judge_pressure(findings& list, const memory_facts& facts) {
  if (!facts.pressure) return list.unknown("pressure", facts.pressure.why);
  const memory_pressure& now = *facts.pressure;
  const double some = std::max(now.some_10, now.some_60);
  const double full = std::max(now.full_10, now.full_60);
  const std::string value =
      fmt::format("a process waits {:.1f} % of the time, all processes {:.1f} %", some, full);
  if (full >= 10)
    list.problem("pressure", value,
                 "Processes wait for memory instead of working. End processes that use it, or give "
                 "commands a lower --mem.");
  else if (some >= 10 || full >= 1)
    list.note("pressure", value, "Processes wait for memory. A lower --mem may be faster.");
  else list.ok("pressure", value);
}

void judge_overcommit(findings& list, const memory_facts& facts) {
  if (!facts.overcommit) return list.unknown("overcommit", facts.overcommit.why);
  if (*facts.overcommit != 2)
    return list.ok("overcommit", *facts.overcommit == 1 ? "1, always" : "0, by estimate");
  const char* const advice =
      "The kernel counts memory when it is reserved, not when it is used. Allocations may fail "
      "while much memory is free. As root:";
  const char* const command = "sysctl vm.overcommit_memory=0";
  if (!facts.commit_limit_bytes || !facts.committed_bytes)
    return list.note("overcommit", "2, never", advice, command);
  const std::uint64_t left = remainder_of(*facts.commit_limit_bytes, *facts.committed_bytes);
  const std::string value = fmt::format("2, never; {} of {} left", format_bytes(left),
                                        format_bytes(*facts.commit_limit_bytes));
  if (left < 256 * mib) list.problem("overcommit", value, advice, command);
  else list.note("overcommit", value, advice, command);
}

// ---- memory pool ------------------------------------------------------------------------------

void judge_setting(findings& list, const huge_page_facts& facts) {
  if (!facts.enabled) return list.unknown("huge pages", facts.enabled.why);
  if (*facts.enabled == "never")
    list.note("huge pages", *facts.enabled,
              "First touches of memory take up to ten times as long. As root:",
              "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled");
  else if (facts.disabled_for_process)
    list.note("huge pages", *facts.enabled + ", but not for this process",
              "A parent process has disabled them (prctl PR_SET_THP_DISABLE). First touches of "
              "memory take up to ten times as long.");
  else list.ok("huge pages", *facts.enabled);
  if (!facts.defrag) return list.unknown("defrag", facts.defrag.why);
  if (*facts.defrag == "never" || *facts.defrag == "defer")
    list.note("defrag", *facts.defrag, "The kernel makes no huge page where none is free. As root:",
              "echo madvise > /sys/kernel/mm/transparent_hugepage/defrag");
  else list.ok("defrag", *facts.defrag);
}

void judge_huge_bytes(findings& list, const huge_page_facts& facts, const pool_trial& trial) {
  if (!trial.huge_bytes) return list.unknown("on huge pages", trial.huge_bytes.why);
  const std::string value = share_of(*trial.huge_bytes, trial.bytes) + " from the pool";
  const bool is_off = facts.disabled_for_process || (facts.enabled && *facts.enabled == "never");
  if (*trial.huge_bytes >= trial.bytes - trial.bytes / 10) list.ok("on huge pages", value);
  else if (is_off) list.note("on huge pages", value, "They are disabled, see above.");
  else
    list.note("on huge pages", value,
              "Memory is fragmented or scarce. As root:", "echo 1 > /proc/sys/vm/compact_memory");
}

void judge_trial(findings& list, const huge_page_facts& facts, const pool_trial& trial) {
  if (!trial.failure.empty())
    return list.problem("trial", trial.failure, "No memory can be taken: see memory and limits.");
  if (trial.bytes == 0) return list.unknown("trial", "too little memory to take some");
  const auto describe = [&](double seconds) {
    return fmt::format("{} in {:.1f} ms", format_bytes(trial.bytes), seconds * 1e3);
  };
  judge_huge_bytes(list, facts, trial);
  list.ok("first touch", describe(trial.first_seconds));
  list.ok("from the cache", describe(trial.again_seconds));
  if (trial.all_clear) list.ok("all clear", "all memory has been returned");
  else
    list.problem("all clear", "some memory has not been returned",
                 "This is a mistake in Shale. Please report it.");
}

}  // namespace

std::vector<check> diagnose(const memory_facts& facts) {
  findings list("memory");
  judge_available(list, facts);
  judge_group(list, facts);
  judge_budget(list, facts);
  judge_pressure(list, facts);
  judge_overcommit(list, facts);
  return list.done();
}

std::vector<check> diagnose(const huge_page_facts& facts, const pool_trial& trial) {
  findings list("memory pool");
  judge_setting(list, facts);
  judge_trial(list, facts, trial);
  return list.done();
}

}  // namespace shale::tools
