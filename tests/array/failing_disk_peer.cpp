// A container on a disk that fails on command: `failing_disk_peer VERB FILE_SYSTEM DIRECTORY`.
// Every read is right or an error, and every commit is complete or absent.
#include <cerrno>
#include <functional>
#include <string>

#include "shale/container.hpp"
#include "shale/functions.hpp"
#include "support/failures.hpp"
#include "support/faulty_disk.hpp"
#include "support/scratch_directory.hpp"

namespace {

using namespace shale;
using namespace shale::test;

constexpr std::size_t page = 4096;
constexpr index_t elements = 6000;

// The content of generation `g`: element i of `dense` and of `chunked` is i + g.
void write_generation(container& file, std::uint64_t generation) {
  transaction change = file.begin();
  const expr values = arange(0, elements, 1, dtype::float32) + static_cast<float>(generation);
  if (!change.find("dense")) change.create("dense", {.dtype = dtype::float32, .shape = {elements}});
  if (!change.find("chunked"))
    change.create("chunked", {.dtype = dtype::float32,
                              .shape = {elements},
                              .kind = array_kind::chunked,
                              .chunk_shape = dims{1500}});
  for (const char* name : {"dense", "chunked"}) change.update(name).write(values);
  change.commit();
}

// The number that both arrays were written with.
std::uint64_t read_generation(const container& file) {
  const snapshot now = file.latest();
  float found[2] = {};
  int number = 0;
  for (const char* name : {"dense", "chunked"}) {
    const tensor values = now.at(name).read();
    const auto all = values.elements<const float>();
    require_equal(static_cast<index_t>(all.size()), elements, "elements");
    found[number++] = all[0];
    for (index_t i = 0; i < elements; ++i)
      require(all[static_cast<std::size_t>(i)] == all[0] + static_cast<float>(i),
              std::string(name) + " is whole");
  }
  require(found[0] == found[1], "both arrays are of one generation");
  return static_cast<std::uint64_t>(found[0]);
}

struct laboratory {
  explicit laboratory(const words& arguments)
      : disk((enter_private_mounts(), arguments.at(0)), arguments.at(1) + "/faulty") {
    const std::string made = arguments.at(1) + "/made.shale";
    container file = container::create(made);
    write_generation(file, 1);
    write_generation(file, 2);
    file.close();
    pristine = read_file(made);
  }

  void begin() {
    disk.heal();
    write_file(path, pristine);
  }

  faulty_disk disk;
  const std::string path = disk.folder() + "/file.shale";
  std::string pristine;
};

// The text of the failure, which must come from the device and name the file; "" if there is none.
std::string device_failure(const laboratory& in, errc code, const std::function<void()>& body) {
  try {
    body();
  } catch (const error& failure) {
    const std::string text = failure.what();
    require(failure.code() == code && text.find(in.path) != std::string::npos, text);
    return text;
  }
  return {};
}

void reads(const words& arguments) {
  laboratory in(arguments);
  in.begin();
  int told = 0;
  int whole = 0;
  for (std::size_t offset = 0; offset < in.pristine.size(); offset += page) {
    in.disk.fail("read", offset, offset + page - 1, EIO);
    const std::string text = device_failure(in, errc::io, [&] {
      require_equal(read_generation(container::open(in.path)), 2u, "the generation");
    });
    ++(text.empty() ? whole : told);
    if (!text.empty()) require(text.find("byte ") != std::string::npos, text);
    in.disk.heal();
    require_equal(read_generation(container::open(in.path)), 2u, "the generation, healed");
  }
  require(told > 0 && whole > 0, "some pages matter, and some do not");
}

void writes(const words& arguments) {
  laboratory in(arguments);
  const auto attempt = [&](errc code, const std::function<void()>& break_disk) {
    in.begin();
    bool failed = false;
    {
      container file = container::open(in.path, open_mode::write);
      break_disk();
      failed = !device_failure(in, code, [&] { write_generation(file, 3); }).empty();
      in.disk.heal();
      // A reader at the same time sees the old or the new generation.
      const auto seen = read_generation(container::open(in.path));
      require(seen == 3 || (failed && seen == 2), "the old generation or the new one");
    }
    container file = container::open(in.path, open_mode::write);
    const auto seen = read_generation(file);
    require(seen == 3 || (failed && seen == 2), "the old generation or the new one, reopened");
    require_equal(file.verify().findings.size(), 0u, "findings");
    write_generation(file, 4);
    require_equal(read_generation(container::open(in.path)), 4u, "the generation after it");
    return failed;
  };
  int failures = 0;
  for (std::size_t offset = 0; offset < in.pristine.size() + 32 * page; offset += page)
    failures += attempt(errc::io, [&] { in.disk.fail("write", offset, offset + page - 1, EIO); });
  require(failures > 0, "some pages are written");
  require(attempt(errc::io, [&] { in.disk.fail("sync", EIO); }), "a failed sync is told");
  require(attempt(errc::io, [&] { in.disk.fail("allocate", EIO); }), "a failed allocation is told");
  require(attempt(errc::out_of_space, [&] { in.disk.fail("allocate", ENOSPC); }),
          "a full disk is told");
  require(attempt(errc::out_of_space, [&] { in.disk.fail("write", ENOSPC); }),
          "a full disk is told");
  require(!attempt(errc::io, [] {}), "a sound disk is not a failure");
}

}  // namespace

int main(int count, char** arguments) {
  return run_verb({{"reads", reads}, {"writes", writes}}, count, arguments);
}
