// Facts about the machine and this process's share of it. Gathers; judges nothing.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "doctor/system_text.hpp"

namespace shale::tools {

struct processor_facts {
  known<std::string> model;
  known<std::string> kernels;         ///< the instruction set that was chosen
  std::string forced;                 ///< SHALE_ISA, or ""
  std::vector<std::string> features;  ///< of the CPU, as far as kernels ask for them
  std::uint64_t online = 0;
  std::uint64_t usable = 0;   ///< by affinity
  known<double> quota;        ///< processors' worth of time, of the control group
  std::uint64_t threads = 0;  ///< of an executor by default
};

struct memory_facts {
  known<std::uint64_t> total_bytes;
  known<std::uint64_t> available_bytes;
  known<std::uint64_t> group_limit_bytes;     ///< memory.max: the lowest of all groups above
  known<std::uint64_t> group_throttle_bytes;  ///< memory.high, likewise
  known<std::uint64_t> group_used_bytes;      ///< in the group with that limit
  std::uint64_t budget_bytes = 0;             ///< of an executor by default
  known<memory_pressure> pressure;
  known<std::uint64_t> overcommit;  ///< vm.overcommit_memory: 0, 1 or 2
  known<std::uint64_t> commit_limit_bytes;
  known<std::uint64_t> committed_bytes;
};

struct limit_facts {
  std::uint64_t address_space_bytes = 0;  ///< RLIMIT_AS
  std::uint64_t data_bytes = 0;           ///< RLIMIT_DATA
  std::uint64_t file_bytes = 0;           ///< RLIMIT_FSIZE
  std::uint64_t descriptors = 0;          ///< RLIMIT_NOFILE
  std::uint64_t descriptors_hard = 0;
  known<std::uint64_t> address_space_used_bytes;
  known<std::uint64_t> data_used_bytes;
  known<std::uint64_t> descriptors_used;
  known<std::uint64_t> mappings_used;
  known<std::uint64_t> mappings_max;  ///< vm.max_map_count
};

struct huge_page_facts {
  known<std::string> enabled;         ///< "always", "madvise" or "never", for pages of 2 MiB
  known<std::string> defrag;          ///< how hard the kernel tries to make one
  bool disabled_for_process = false;  ///< by prctl, inherited from a parent
};

struct version_facts {
  std::string shale;
  std::uint64_t format = 0;
  std::string compiler;
  std::vector<std::pair<std::string, std::string>> libraries;
  std::string kernel;  ///< "Linux 6.1.0 x86_64"
};

struct machine_facts {
  version_facts versions;
  processor_facts processor;
  memory_facts memory;
  limit_facts limits;
  huge_page_facts huge_pages;
};

/// Cost     some ten small files
machine_facts look_at_machine(const system_tree& system = system_tree());

}  // namespace shale::tools
