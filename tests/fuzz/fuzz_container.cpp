// Containers. An input is a list of changes to a sound one that is made here, so that inputs are
// small and every byte of them lands somewhere. One byte of mode, then the changes, as
// container_changes.hpp tells.
//
// Modes are bits: 1 corrects every checksum afterwards, from the data up to the superblock, so that
// the changes are met by whoever reads, not by the checksums; 2 also writes a generation.
//
// What must hold: a reader throws corrupt or unsupported, or sees something, and sees it again when
// it looks again. Without mode 1, what it sees is what some generation held: no wrong value, ever.
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
constexpr format::patience at_once{0};

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
    auto file = format::file::create(files, path, {.id = format::uuid{}});
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
    auto file = format::file::open(files, path, format::open_access::read);
    const format::generation_view view = file.latest();
    // Damage is a finding, and never stops the search for more.
    const format::verify_report report = format::verify(view);
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
    auto file = format::file::open(files, path, format::open_access::write);
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
    // A hostile catalog may have the name, or a number of a generation that has no next.
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
