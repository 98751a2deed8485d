// Runs a harness over the files and folders named as arguments: libFuzzer's place where there is no
// libFuzzer, so that every build replays the committed inputs.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes);

// Custom mutators refer to it; replay mutates nothing.
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t*, std::size_t bytes, std::size_t) {
  return bytes;
}

namespace {

void replay(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> content{std::istreambuf_iterator<char>(file), {}};
  // Named before it runs, so that a crash has a name.
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
  return inputs.empty() ? 1 : 0;  // a corpus that went missing is no success
}
