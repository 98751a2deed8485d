// Gathers facts about the machine and about this process's share of it, without verdicts.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "doctor/system/system_text.hpp"

namespace shale::tools {

struct processor_facts {
  known<std::string> model;
  known<std::string> kernels;         ///< the chosen instruction set
  std::string forced;                 ///< SHALE_ISA; empty if it is not set
  std::vector<std::string> features;  ///< instructions of the processor that kernels use
  known<std::string> blas;            ///< the library, ", ", the processor that its kernels are for
  std::uint64_t online = 0;           ///< processors of the machine
  std::uint64_t usable = 0;           ///< processors that the affinity mask allows
  known<double> quota;                ///< processor time of the control group, in processors
  std::uint64_t threads = 0;          ///< default number of threads of an executor
  bool starts_threads = true;         ///< whether a thread could be started
};

struct memory_facts {
  known<std::uint64_t> total_bytes;
  known<std::uint64_t> available_bytes;
  known<std::uint64_t> group_limit_bytes;     ///< lowest memory.max of the group and its parents
  known<std::uint64_t> group_throttle_bytes;  ///< lowest memory.high of the group and its parents
  known<std::uint64_t> group_used_bytes;      ///< use of the group with the lowest memory.max
  std::uint64_t budget_bytes = 0;             ///< default memory budget of an executor
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
  known<std::string> defrag;          ///< when the kernel compacts memory to get a huge page
  bool disabled_for_process = false;  ///< by prctl, which processes inherit
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

/// Cost     reads about ten small files
machine_facts look_at_machine(const system_tree& system = system_tree());

}  // namespace shale::tools
