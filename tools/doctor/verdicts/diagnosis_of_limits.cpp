// The verdicts on the limits of the process: address space, open files, mappings, sizes of files.
#include <fmt/format.h>

#include "doctor/verdicts/diagnosis.hpp"
#include "terminal/units.hpp"

namespace shale::tools {

namespace {

constexpr std::uint64_t gib = std::uint64_t{1} << 30;

void judge_size_limit(findings& list, const char* name, const char* option, std::uint64_t limit,
                      const known<std::uint64_t>& used) {
  if (limit == no_limit<std::uint64_t>) return list.ok(name, "no limit");
  std::string value = format_bytes(limit);
  if (used) value += fmt::format(", {} in use", format_bytes(*used));
  const char* const advice =
      "Shale reserves address space for mappings and growth. To limit memory, use --mem or a "
      "control group.";
  const std::string command = fmt::format("ulimit {} unlimited", option);
  if (remainder_of(limit, used.value.value_or(0)) < gib) list.problem(name, value, advice, command);
  else list.note(name, value, advice, command);
}

void judge_descriptors(findings& list, const limit_facts& facts) {
  if (facts.descriptors == no_limit<std::uint64_t>) return list.ok("open files", "no limit");
  std::string value = format_count(facts.descriptors);
  if (facts.descriptors_used)
    value += fmt::format(", {} in use", format_count(*facts.descriptors_used));
  const std::uint64_t left =
      remainder_of(facts.descriptors, facts.descriptors_used.value.value_or(0));
  std::string advice = "Each mapped file and each shared segment holds one or two.";
  std::string command;
  if (facts.descriptors_hard == no_limit<std::uint64_t>) command = "ulimit -n unlimited";
  else if (facts.descriptors_hard > facts.descriptors)
    command = fmt::format("ulimit -n {}", facts.descriptors_hard);
  else
    advice +=
        " The hard limit is as low: raise it with LimitNOFILE= of systemd, limits.conf or, in "
        "Docker, --ulimit nofile=.";
  if (left < 32) list.problem("open files", value, advice, command);
  else if (left < 200) list.note("open files", value, advice, command);
  else list.ok("open files", value);
}

void judge_mappings(findings& list, const limit_facts& facts) {
  if (!facts.mappings_max) return list.unknown("mappings", facts.mappings_max.why);
  const std::uint64_t most = *facts.mappings_max;
  std::string value = format_count(most);
  if (facts.mappings_used) value += fmt::format(", {} in use", format_count(*facts.mappings_used));
  const std::uint64_t left = remainder_of(most, facts.mappings_used.value.value_or(0));
  const char* const advice = "Each mapped array takes some. As root:";
  const char* const command = "sysctl vm.max_map_count=262144";
  if (left < 1000) list.problem("mappings", value, advice, command);
  else if (left < 30000) list.note("mappings", value, advice, command);
  else list.ok("mappings", value);
}

}  // namespace

std::vector<check> diagnose(const limit_facts& facts) {
  findings list("limits");
  judge_size_limit(list, "address space", "-v", facts.address_space_bytes,
                   facts.address_space_used_bytes);
  judge_size_limit(list, "data", "-d", facts.data_bytes, facts.data_used_bytes);
  judge_descriptors(list, facts);
  judge_mappings(list, facts);
  if (facts.file_bytes == no_limit<std::uint64_t>) list.ok("file size", "no limit");
  else
    list.note("file size", format_bytes(facts.file_bytes),
              "Writing a longer file fails with out_of_space.", "ulimit -f unlimited");
  return list.done();
}

}  // namespace shale::tools
