// Runs a harness over the files and folders that are named as arguments. It stands in for libFuzzer
// in builds without it, so that every build replays the committed inputs.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes);

// Custom mutators call this function. A replay mutates nothing.
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t*, std::size_t bytes, std::size_t) {
  return bytes;
}

namespace {

void replay(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> content{std::istreambuf_iterator<char>(file), {}};
  // The name is printed before the run, so that it is known if the run crashes.
  std::printf("%s\n", path.c_str());
  std::fflush(stdout);
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(content.data()), content.size());
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::filesystem::path> inputs;
  for (int i = 1; i < argc; ++i) {
    if (!std::filesystem::is_directory(argv[i])) {
      inputs.emplace_back(argv[i]);
      continue;
    }
    for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[i]))
      if (entry.is_regular_file()) inputs.push_back(entry.path());
  }
  std::sort(inputs.begin(), inputs.end());
  for (const auto& path : inputs) replay(path);
  std::printf("%zu inputs\n", inputs.size());
  return inputs.empty() ? 1 : 0;  // a corpus that went missing is not success
}
