// Containers, and a mapped file, on disks that lose bytes and report it once:
// `write_back_peer VERB ARGUMENT… DIRECTORY`. Bytes that may be lost must not be committed.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "shale/container.hpp"
#include "shale/evaluate.hpp"
#include "shale/executor.hpp"
#include "shale/functions.hpp"
#include "shale/mapped_file.hpp"
#include "support/failures.hpp"
#include "support/faulty_disk.hpp"
#include "support/scratch_directory.hpp"
#include "support/thin_disk.hpp"

namespace {

using namespace shale;
using namespace shale::test;

constexpr index_t elements = 1 << 20;  // 4 MiB of float32

void store(const writable_array& into, double value) { into.write(expr(value)); }

writable_array create(transaction& change, const std::string& name) {
  return change.create(name, {.dtype = dtype::float32, .shape = {elements}});
}

// The bytes of a container of one generation with an array `kept` of ones.
std::string sound_bytes(const std::string& directory) {
  const std::string path = directory + "/sound.shale";
  {
    container file = container::create(path);
    transaction change = file.begin();
    store(create(change, "kept"), 1);
    change.commit();
  }
  std::string bytes = read_file(path);
  std::remove(path.c_str());
  return bytes;
}

void require_refused(const std::function<void()>& body, const std::string& description) {
  const outcome ended = outcome_of(body);
  require(ended.code == errc::io || ended.code == errc::out_of_space,
          description + " is refused, got: " + (ended.code ? ended.text : "no error"));
}

void require_later(const std::string& path) {
  container file = container::open(path);
  const tensor later = file.latest().at("later").read();
  require(later.elements<const float>()[elements - 1] == 3, "what is written later is there");
  require_equal(file.verify().findings.size(), 0u, "findings after it");
}

// The container refuses to write until it is opened again, and has its old content. What is then
// committed is there.
void require_kept(container file, const std::string& path) {
  require_refused([&] { file.begin(); }, "another transaction of the same handle");
  file.close();
  container again = container::open(path, open_mode::write);
  require(again.latest().names() == std::vector<std::string>{"kept"}, "only `kept` is there");
  require_equal(again.verify().findings.size(), 0u, "findings");
  transaction change = again.begin();
  store(create(change, "later"), 3);
  change.commit();
  require_later(path);
}

// A call that receives the error before the commit does.
struct meeting {
  const char* name;
  void (*meet)(const tensor& values);
};

void flush_sync(const tensor& values) {
  require_refused([&] { values.storage().flush(); }, "the flush");
}

void write_behind(const tensor& values) {
  executor small({.threads = 2, .memory_bytes = 1 << 20});
  const executor::scope within(small);
  require_refused([&] { eval_into(values, expr(4.0)); }, "a streaming call");
}

constexpr meeting at_flush{"flush", flush_sync};
constexpr meeting at_write_behind{"write-behind", write_behind};

// Writes `lost` while the disk fails, receives the error once, repairs the disk, and ends by `end`.
void lose(const std::string& path, const meeting& how, const std::function<void()>& break_disk,
          const std::function<void()>& heal,
          const std::function<void(container&, transaction&)>& end) {
  container file = container::open(path, open_mode::write);
  std::optional<transaction> change = file.begin();
  const writable_array lost = create(*change, "lost");
  const writable_array other = create(*change, "other");
  const tensor values = lost.map();
  store(other, 5);
  break_disk();
  if (how.meet == flush_sync) store(lost, 2);
  how.meet(values);
  heal();
  end(file, *change);
  change.reset();
  require_kept(file, path);
}

void commit_at_once(container&, transaction& change) {
  require_refused([&] { change.commit(); }, "the commit");
}

// The array whose flush failed is removed, but pages of other arrays were lost too.
void commit_without_it(container&, transaction& change) {
  change.remove("lost");
  require_refused([&] { change.commit(); }, "the commit without the array");
}

void each_way(const std::string& sound, const std::string& directory,
              const std::vector<meeting>& meetings,
              const std::function<void(const std::string&)>& fail,
              const std::function<void()>& heal, const std::function<void()>& restart) {
  for (const auto& how : meetings)
    for (const auto& end : {commit_at_once, commit_without_it}) {
      const std::string path = directory + "/file.shale";
      write_file(path, sound);
      lose(
          path, how, [&] { fail(path); }, heal, end);
      restart();
      require_later(path);
      std::remove(path.c_str());
    }
}

// The file system reports once that bytes were not written.
void forgetful(const words& arguments) {
  enter_private_mounts();
  const std::string sound = sound_bytes(arguments.back());
  faulty_disk disk(arguments.at(0), arguments.at(2) + "/faulty");
  const auto meetings = arguments.at(1) == "sync" ? std::vector<meeting>{at_flush}
                                                  // write-behind syncs nothing
                                                  : std::vector<meeting>{at_flush, at_write_behind};
  each_way(
      sound, disk.folder(), meetings, [&](const std::string&) { disk.fail(arguments.at(1), EIO); },
      [&] { disk.heal(); }, [] {});
}

// A block device has no space for reserved blocks when they are written.
void thin(const words& arguments) {
  enter_private_mounts();
  const std::string sound = sound_bytes(arguments.back());
  constexpr std::size_t mib = std::size_t{1} << 20;
  thin_disk disk(arguments.at(0), 128 * mib);
  // All bytes after the container's first generation.
  each_way(
      sound, disk.folder(), {at_flush, at_write_behind},
      [&](const std::string& path) { disk.run_out_under(path, 5 * mib, 6 * mib); },
      [&] { disk.heal(); }, [&] { disk.mount_again(); });
}

// A block device has no space for blocks that are first written, those of the catalog too.
void unbacked(const words& arguments) {
  enter_private_mounts();
  const std::string sound = sound_bytes(arguments.back());
  thin_disk disk(arguments.at(0), std::size_t{128} << 20, false);
  const std::string path = disk.folder() + "/file.shale";
  write_file(path, sound);
  container file = container::open(path, open_mode::write);
  {
    // It takes the places that the next transaction takes, too.
    transaction change = file.begin();
    store(create(change, "other"), 2);
    disk.run_out();
    require_refused([&] { change.commit(); }, "the commit");
  }
  disk.heal();
  require_kept(std::move(file), path);
  disk.mount_again();
  require_later(path);
}

// The same for chunks, which take parts of the places of larger ones. The failed pages may be in
// one large page of the cache together with others.
void unbacked_chunks(const words& arguments) {
  enter_private_mounts();
  const std::string sound = sound_bytes(arguments.back());
  const auto spec = [](index_t bytes) {
    return array_spec{.dtype = dtype::uint8,
                      .shape = {bytes},
                      .kind = array_kind::chunked,
                      .chunk_shape = dims{bytes},
                      .codec = {.compression = std::nullopt}};
  };
  for (const index_t bytes : {index_t{40} << 10, index_t{5} << 10, index_t{300} << 10}) {
    // A fresh disk, because blocks that were written once have their space.
    const std::string folder = arguments.at(0) + "/" + std::to_string(bytes);
    thin_disk disk(make_directory(folder), std::size_t{128} << 20, false);
    const std::string path = disk.folder() + "/file.shale";
    write_file(path, sound);
    {
      container file = container::open(path, open_mode::write);
      transaction change = file.begin();
      change.create("large", spec(1 << 20)).write(expr(1));
      disk.run_out();
      require_refused([&] { change.commit(); }, "the commit");
    }
    disk.heal();
    {
      container file = container::open(path, open_mode::write);
      transaction change = file.begin();
      change.create("small", spec(bytes)).write(expr(2));
      store(create(change, "later"), 3);
      change.commit();
    }
    disk.mount_again();
    require_later(path);
    const tensor small = container::open(path).latest().at("small").read();
    require(small.elements<const std::uint8_t>()[bytes - 1] == 2, "the small chunk is there");
    std::remove(path.c_str());
  }
}

// The advice of `flush`: destroy the mapping, map the file again, store the bytes again.
void mapped_again(const words& arguments) {
  enter_private_mounts();
  thin_disk disk(arguments.at(0), std::size_t{128} << 20, false);
  const std::string path = disk.folder() + "/bytes";
  constexpr std::size_t bytes = std::size_t{4} << 20;
  const auto filled = [](const storage& mapped, int value) {
    std::memset(const_cast<std::byte*>(mapped.data()), value, bytes);
  };
  {
    const storage first = create_file(path, bytes);
    first.flush();
    disk.run_out();
    filled(first, 1);
    require_refused([&] { first.flush(); }, "the flush");
  }
  disk.heal();
  {
    const storage second = map_file(path, {.access = access::read_write});
    filled(second, 2);
    second.flush();
  }
  disk.mount_again();
  require(read_file(path) == std::string(bytes, 2), "what was flushed is there");
}

}  // namespace

int main(int count, char** arguments) {
  return run_verb({{"forgetful", forgetful},
                   {"thin", thin},
                   {"unbacked", unbacked},
                   {"unbacked-chunks", unbacked_chunks},
                   {"mapped-again", mapped_again}},
                  count, arguments);
}
