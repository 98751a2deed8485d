// The verdicts on versions and on the processor.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string_view>

#include "doctor/verdicts/diagnosis.hpp"

namespace shale::tools {

namespace {

// "Linux 6.1.0-13-amd64 x86_64".
void judge_kernel(findings& list, const std::string& kernel) {
  int major = 0;
  int minor = 0;
  if (std::sscanf(kernel.c_str(), "Linux %d.%d", &major, &minor) != 2)
    return list.unknown("kernel", fmt::format("{} does not have a version of Linux", kernel));
  if (major < 5 || (major == 5 && minor < 14))
    list.note("kernel", kernel,
              "Before Linux 5.14, Shale loads a mapping by touching its pages one by one.");
  else list.ok("kernel", kernel);
}

void judge_kernels(findings& list, const processor_facts& facts) {
  if (!facts.kernels)
    list.problem("kernels", facts.kernels.why, "Commands that compute fail.", "unset SHALE_ISA");
  else if (!facts.forced.empty())
    list.note("kernels", fmt::format("{}, asked for by SHALE_ISA", *facts.kernels),
              "Without it, Shale takes the best kernels that the processor runs.",
              "unset SHALE_ISA");
  else list.ok("kernels", *facts.kernels);
}

// The library takes the best kernels, unless the environment asks for others.
void judge_blas(findings& list, const processor_facts& facts) {
  const auto has = [&](std::string_view feature) {
    return std::find(facts.features.begin(), facts.features.end(), feature) != facts.features.end();
  };
  if (!facts.blas)
    return list.problem("matrix products", facts.blas.why,
                        "Products of floats and complex numbers fail.", "unset OPENBLAS_CORETYPE");
  const bool is_asked_for = facts.blas->find("OPENBLAS_CORETYPE") != std::string::npos;
  if (!is_asked_for || !has("avx2")) return list.ok("matrix products", *facts.blas);
  list.note("matrix products", *facts.blas,
            "Without the variable, Shale takes the best kernels that the processor runs.",
            "unset OPENBLAS_CORETYPE");
}

void judge_processors(findings& list, const processor_facts& facts) {
  const std::string usable = fmt::format("{} of {}, {} thread{}", facts.usable, facts.online,
                                         facts.threads, facts.threads == 1 ? "" : "s");
  if (facts.usable < facts.online)
    list.note("processors", usable, "This process may not use the others (taskset, cpuset).");
  else list.ok("processors", usable);
  if (!facts.starts_threads)
    list.note("threads", "none can be started",
              "The limit of processes is reached (ulimit -u, or pids.max of the control group). "
              "Commands run in one thread.");
  if (!facts.quota) return list.unknown("processor time", facts.quota.why);
  if (*facts.quota == no_limit<double>) return list.ok("processor time", "no limit");
  if (*facts.quota >= static_cast<double>(facts.threads))
    return list.ok("processor time", fmt::format("of {:.4g} processors", *facts.quota));
  list.note("processor time", fmt::format("of {:.4g} processors", *facts.quota),
            fmt::format("The control group (in Docker: --cpus) stops all threads when it is used "
                        "up. Try --threads {}.",
                        std::max(1, static_cast<int>(std::ceil(*facts.quota)))));
}

}  // namespace

std::vector<check> diagnose(const version_facts& facts) {
  findings list("versions");
  list.ok("shale", fmt::format("{}, container format {}", facts.shale, facts.format));
  judge_kernel(list, facts.kernel);
  list.ok("compiler", facts.compiler);
  std::string libraries;
  for (const auto& [library, number] : facts.libraries)
    libraries += fmt::format("{}{} {}", libraries.empty() ? "" : ", ", library, number);
  list.ok("libraries", libraries);
  return list.done();
}

std::vector<check> diagnose(const processor_facts& facts) {
  findings list("processor");
  if (facts.model) list.ok("model", *facts.model);
  else list.unknown("model", facts.model.why);
  std::string features;
  for (const std::string& feature : facts.features)
    features += (features.empty() ? "" : " ") + feature;
  if (!features.empty()) list.ok("instructions", features);
  judge_kernels(list, facts);
  judge_blas(list, facts);
  judge_processors(list, facts);
  return list.done();
}

}  // namespace shale::tools
