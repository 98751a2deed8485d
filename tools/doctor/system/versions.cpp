#include "doctor/system/versions.hpp"

#include <fmt/format.h>
#include <lz4.h>
#include <oneapi/tbb/version.h>
#include <png.h>
#include <xxhash.h>
#include <zlib.h>
#include <zstd.h>
#include <CLI/Version.hpp>

#include <boost/version.hpp>
#include <nlohmann/json.hpp>

namespace shale::tools {

namespace {

std::string dotted(int major, int minor, int patch) {
  return fmt::format("{}.{}.{}", major, minor, patch);
}

}  // namespace

std::string compiler() {
#if defined(__clang__)
  return fmt::format("clang {}", __clang_version__);
#elif defined(__GNUC__)
  return fmt::format("gcc {}", __VERSION__);
#else
  return "unknown";
#endif
}

std::vector<std::pair<std::string, std::string>> libraries() {
  return {
      {"Boost", dotted(BOOST_VERSION / 100000, BOOST_VERSION / 100 % 1000, BOOST_VERSION % 100)},
      {"oneTBB", TBB_runtime_version()},
      {"zstd", ZSTD_versionString()},
      {"lz4", LZ4_versionString()},
      {"xxHash", dotted(XXH_VERSION_MAJOR, XXH_VERSION_MINOR, XXH_VERSION_RELEASE)},
      {"zlib", zlibVersion()},
      {"libpng", png_get_libpng_ver(nullptr)},
      {"fmt", dotted(FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100)},
      {"CLI11", CLI11_VERSION},
      {"nlohmann-json", dotted(NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR,
                               NLOHMANN_JSON_VERSION_PATCH)},
  };
}

}  // namespace shale::tools
