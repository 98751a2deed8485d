// Fuzzes containers. The harness makes a sound container. An input is a list of changes to it, so
// inputs are small and every byte of them has an effect: one byte of mode, and then the changes
// that container_changes.hpp describes.
//
// The mode has two bits:
//   1  corrects every checksum afterwards, from the data up to the superblock
//   2  also writes a generation
//
// Properties: A reader throws corrupt or unsupported, or it gets a result, and the same result when
// it reads again. Without bit 1, the result is the content of some generation.
#include <string>
#include <vector>

#include "format/small_history.hpp"
#include "fuzz/container_changes.hpp"
#include "fuzz/require.hpp"
#include "support/recording_file_system.hpp"

namespace {

using namespace shale;
using fuzz::content;
using fuzz::require;
using fuzz::require_refusal;
using test::plain_state;

const std::string path = "/box/fuzzed.shale";
constexpr std::chrono::milliseconds at_once{0};

// ---- the sound container
// ----------------------------------------------------------------------------

struct sound_container {
  fuzz::original file;
  std::vector<plain_state> states;  // by generation
};

sound_container make_sound() {
  std::vector<plain_state> states{{}, {}};
  test::recording_file_system files;
  {
    auto file = format::container_file::create(files, path, {.id = format::uuid{}});
    for (int step = 0; step < test::history_steps; ++step) {
      states.push_back(states.back());
      test::commit_step(file, step, states.back());
    }
  }
  return {fuzz::original(files.now().at(path)), std::move(states)};
}

const sound_container& sound() {
  static const sound_container made = make_sound();
  return made;
}

// ---- what a reader and a writer make of it
// --------------------------------------------------------------

void read(test::recording_file_system& files, bool is_corrected) {
  try {
    auto file = format::container_file::open(files, path, format::open_access::read);
    const format::generation_view view = file.latest();
    // Damage becomes a finding, and the check of the other parts continues.
    const verification report = format::verify(view);
    const plain_state seen = test::observe(view);
    require(seen == test::observe(view), "one generation, one content");
    require(seen.size() == view.list().size(), "names are there once");
    if (is_corrected) return;
    const auto& states = sound().states;
    require(view.generation() < states.size(), "a generation that was committed");
    require(seen == states[view.generation()], "no wrong value");
    (void)report;
  } catch (const error& failure) {
    require_refusal(failure);
  }
}

void write(test::recording_file_system& files) {
  try {
    auto file = format::container_file::open(files, path, format::open_access::write);
    auto next = file.begin(at_once);
    plain_state told;
    test::storyteller story(next, told);
    story.create_chunked("new");
    story.chunk("new", 3, 4);
    story.dense("newer", 9000, 6);
    next.commit();
    const auto view = file.latest();
    require(view.find("newer").has_value(), "what was committed is there");
  } catch (const error& failure) {
    // A hostile catalog may have an array of that name already, or the largest generation number.
    if (failure.code() == errc::already_exists || failure.code() == errc::out_of_space) return;
    require_refusal(failure);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const bool is_corrected = (data[0] & 1) != 0;
  const bool writes = (data[0] & 2) != 0;
  content bytes = sound().file.bytes();
  sound().file.change(bytes, {data + 1, size - 1}, is_corrected);
  test::recording_file_system files({{path, bytes}});
  read(files, is_corrected);
  if (writes) {
    write(files);
    if (is_corrected) read(files, true);
  }
  return 0;
}
