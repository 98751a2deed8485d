// Storages on disks that become full or fail, in a process with private mounts:
// `hostile_disk_peer VERB ARGUMENT…`. Each verb checks a guarantee of docs/storage.md.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "shale/mapped_file.hpp"
#include "shale/shared_memory.hpp"
#include "storage/files/file_copy.hpp"
#include "storage/peer_support.hpp"
#include "support/faulty_disk.hpp"
#include "support/private_mounts.hpp"

namespace {

using namespace shale;
using namespace shale::test;

constexpr std::size_t mib = std::size_t{1} << 20;

// ---- full disks ---------------------------------------------------------------------------------

// Uses up all free space.
void use_up(const std::string& path) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  const std::vector<char> piece(64 << 10, 'x');
  for (std::size_t bytes = piece.size(); bytes > 0; bytes /= 2)
    while (::write(file, piece.data(), bytes) > 0) {
    }
  ::fsync(file);
  ::close(file);
}

void use_full_disk(const std::string& disk) {
  const std::string path = disk + "/file";
  const std::string sparse = disk + "/sparse";
  const std::size_t hole_bytes = 64 * page;
  storage bytes = create_file(path, mib, {.reserve_bytes = 64 * mib});
  fill(bytes);
  { std::ofstream make(sparse); }
  require(::truncate(sparse.c_str(), hole_bytes) == 0, "a sparse file can be made");
  storage holes = map_file(sparse, {.access = access::read_write});

  const std::string big = disk + "/big";
  require_failure([&] { create_file(big, 64 * mib); }, errc::out_of_space, big, "a large file");
  require(!exists(big), "no large file is left");
  require_failure([&] { bytes.grow(64 * mib); }, errc::out_of_space, path, "growth");

  use_up(disk + "/rest");
  require_failure([&] { bytes.grow(2 * mib); }, errc::out_of_space, path, "growth on a full disk");
  require_equal(bytes.size_bytes(), mib, "size after failed growth");
  require_equal(size_of(path), mib, "file size after failed growth");
  require_failure([&] { create_file(big, mib); }, errc::out_of_space, big, "creation");
  require(!exists(big), "no file is left on the full disk");
  require_failure([&] { create_file(path, mib, {.existing = existing_file::replace}); },
                  errc::out_of_space, path, "replacement");
  require_equal(filled_bytes(bytes), mib, "bytes after failed growth");

  // Stores into holes: populating reports the full disk in advance; without it the process
  // survives.
  require_failure(
      [&] {
        holes.populate({0, hole_bytes}, populate_for::store);
      },
      errc::out_of_space, place(sparse, 0), "populating holes");
  require(!holes.failed(), "populating leaves the mark alone");
  for (std::size_t offset = 0; offset < hole_bytes; offset += page) put(holes, offset, 1);
  require(holes.failed(), "stores into holes leave a mark");
  require_failure([&] { holes.check(); }, errc::io, place(sparse, 0), "a check");
  require_failure([&] { holes.flush(); }, errc::io, place(sparse, 0), "a flush");
  require(code_of([&] { bytes.check(); }) == errc{}, "the neighbour is sound");
  require(code_of([&] { bytes.flush(); }) == errc{}, "the neighbour can be flushed");

  // When there is space again, everything works again, except for marked storages.
  require(::unlink((disk + "/rest").c_str()) == 0, "space can be made");
  bytes.grow(2 * mib);
  fill(bytes, mib);
  bytes.flush();
  require_equal(filled_bytes(bytes), 2 * mib, "bytes after growth");
  require(holes.failed(), "a mark stays");
  storage again = map_file(sparse, {.access = access::read_write});
  require_equal(load(again, 0), 0, "a store that found no space");
  again.populate({0, hole_bytes}, populate_for::store);
  fill(again);
  again.flush();
  require_equal(filled_bytes(again), hole_bytes, "bytes of what had been holes");
  bytes = {};
  holes = {};
  again = {};
  for (const auto& name : {path, sparse}) ::unlink(name.c_str());
}

void full_disk(const words& arguments) {
  const std::string& kind = arguments.at(0);
  const std::string& directory = arguments.at(1);
  enter_private_mounts();
  const std::string disk = make_directory(directory + "/disk");
  if (kind == "ext4") mount_ext4(directory + "/image", disk, 16 * mib);
  else mount_tmpfs(disk, 16 * mib);
  const bystander elsewhere(directory + "/elsewhere");
  require_no_leak([&] { use_full_disk(disk); });
  elsewhere.require_sound();
  require(unmount(disk), "nothing holds on to the disk");
}

// ---- full shared memory -------------------------------------------------------------------------

std::size_t free_blocks(const std::string& place) {
  struct statvfs about {};
  require(::statvfs(place.c_str(), &about) == 0, "free blocks can be counted");
  return about.f_bfree;
}

void use_full_shared_memory(const std::string& disk) {
  const std::size_t free_before = free_blocks(disk);
  require_failure([&] { create_shared("big", 64 * mib); }, errc::out_of_space, disk,
                  "a large segment");
  require_equal(free_blocks(disk), free_before, "blocks after failed creation");
  storage bytes = create_shared("kept", mib, {.reserve_bytes = 64 * mib});
  fill(bytes);
  require_failure([&] { bytes.grow(64 * mib); }, errc::out_of_space, disk, "growth");
  use_up(disk + "/rest");
  require_failure([&] { create_shared("small", 1); }, errc::out_of_space, disk, "a small segment");
  require_failure([&] { bytes.grow(2 * mib); }, errc::out_of_space, disk, "growth when full");
  require_equal(list_shared().size(), 1u, "segments");
  require_equal(filled_bytes(open_shared("kept")), mib, "bytes of the other segment");
  ::unlink((disk + "/rest").c_str());
  bytes.grow(2 * mib);
  fill(bytes, mib);
  require_equal(filled_bytes(bytes), 2 * mib, "bytes after growth");
  bytes = {};
  require_equal(list_shared().size(), 0u, "segments");
  require_equal(free_blocks(disk), free_before, "blocks at the end");
}

void full_shared_memory(const words&) {
  enter_private_mounts();
  const std::string disk = "/dev/shm";
  mount_tmpfs(disk, 8 * mib);
  require_no_leak([&] { use_full_shared_memory(disk); });
  require(unmount(disk), "nothing holds on to the memory");
  // No inodes are left, but there is space: the directory is one inode, a segment the other.
  mount_tmpfs(disk, 8 * mib, "nr_inodes=2");
  storage bytes = create_shared("kept", mib);
  require_failure([&] { create_shared("more", 1); }, errc::out_of_space, disk, "another segment");
  bytes = {};
  bytes = create_shared("more", mib);
  bytes = {};
  require(unmount(disk), "nothing holds on to the memory");
}

// ---- failing devices ----------------------------------------------------------------------------

const std::size_t file_bytes = 64 * page;
constexpr std::size_t bad = 40;  // the number of the failing page

// A file with the values of `fill` that is no longer in the page cache.
std::string cold_file(const faulty_disk& disk, const std::string& name) {
  const std::string path = disk.folder() + "/" + name;
  ::unlink(path.c_str());
  storage made = create_file(path, file_bytes);
  fill(made);
  made.flush();
  made.evict({0, file_bytes}, eviction::system);
  require_equal(made.resident_bytes(), 0u, "cached bytes");
  return path;
}

// The faulty disk, and a storage on an intact one.
struct laboratory {
  explicit laboratory(const words& arguments)
      : disk((enter_private_mounts(), arguments.at(0)), arguments.at(1) + "/faulty"),
        elsewhere(arguments.at(1) + "/sound") {}

  void examine(const std::function<void()>& body) {
    require_no_leak([&] {
      disk.heal();
      body();
    });
    elsewhere.require_sound();
  }

  faulty_disk disk;
  bystander elsewhere;
};

void device_read(const words& arguments) {
  laboratory in(arguments);
  in.examine([&] {
    const std::string path = cold_file(in.disk, "data");
    in.disk.fail("read", bad * page, bad * page + 10, EIO);
    const std::string damaged = place(path, bad * page);

    // populate comes first: it throws an error that names the page, and sets no mark.
    const storage asked = map_file(path);
    require_failure([&] { asked.populate({0, file_bytes}); }, errc::io, damaged, "populating");
    require(!asked.failed(), "populating leaves the mark alone");
    require_failure([&] { map_file(path, {.populate = true}); }, errc::io, damaged,
                    "mapping and populating");
    // The file is read instead of mapped.
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    const detail::file_extent all{0, file_bytes};
    require_failure(
        [&] {
          detail::copy_extents(file, {&all, 1}, access::read_only, path);
        },
        errc::io, damaged, "reading");
    ::close(file);
    // Access without populate: zeros from there on, and a mark.
    for (const auto how : {access::read_only, access::copy_on_write, access::read_write}) {
      const storage bytes = map_file(path, {.access = how});
      for (std::size_t offset = 0; offset < bad * page; ++offset)
        require_equal(load(bytes, offset), value_at(offset), "a byte before the damage");
      require(!bytes.failed(), "sound so far");
      require_equal(load(bytes, bad * page), 0, "a damaged byte");
      require(bytes.failed(), "a mark");
      require_equal(load(bytes, file_bytes - 1), 0, "a byte after the damage");
      require_failure([&] { bytes.check(); }, errc::io, damaged, "a check");
      require(!asked.failed(), "another storage of the file has no mark");
      require_equal(load(asked, 0), value_at(0), "another storage's byte");
    }
    in.disk.heal();
    require_equal(filled_bytes(map_file(path)), file_bytes, "bytes of the healed file");
    require_equal(filled_bytes(asked), file_bytes, "bytes of the storage without a mark");
  });
}

// A store first needs to read its page.
void device_read_for_store(const words& arguments) {
  laboratory in(arguments);
  in.examine([&] {
    const std::string path = cold_file(in.disk, "data");
    in.disk.fail("read", bad * page, bad * page + 10, EIO);
    storage bytes = map_file(path, {.access = access::read_write});
    require_failure(
        [&] {
          bytes.populate({0, file_bytes}, populate_for::store);
        },
        errc::io, place(path, bad * page), "populating for stores");
    for (std::size_t i = 0; i < file_bytes / page; ++i) put(bytes, i * page, 200);
    require(bytes.failed(), "a mark");
    require_failure([&] { bytes.check(); }, errc::io, place(path, bad * page), "a check");
    require_failure([&] { bytes.flush(); }, errc::io, place(path, bad * page), "a flush");
    bytes = {};
    in.disk.heal();
    const storage again = map_file(path);
    for (std::size_t i = 0; i < file_bytes / page; ++i) {
      require_equal(load(again, i * page), i < bad ? 200 : value_at(i * page), "a stored byte");
      require_equal(load(again, i * page + 1), value_at(i * page + 1), "a byte beside it");
    }
  });
}

void device_write(const words& arguments) {
  laboratory in(arguments);
  in.examine([&] {
    const std::string path = cold_file(in.disk, "data");
    storage bytes;
    const storage other = map_file(path, {.bytes = page});
    const auto store = [&] { std::fill_n(bytes.data(), file_bytes, std::byte{5}); };
    // The failure is permanent for the storage that received it, but not for later ones.
    const auto begin_anew = [&] {
      bytes = {};  // its close may fail too, which affects all that have the file open then
      bytes = map_file(path, {.access = access::read_write});
      require(!bytes.failed(), "a new storage is sound");
      store();
    };
    const auto require_final = [&](errc code, const std::string& text) {
      require(bytes.failed(), "stores may be lost");
      store();
      require_failure([&] { bytes.flush(); }, code, text, "a later flush");
      require_failure([&] { bytes.check(); }, code, text, "a later check");
    };

    begin_anew();
    in.disk.fail("write", bad * page, bad * page + 10, EIO);
    const std::string somewhere =
        place(path, 0) + fmt::format("\n  somewhere in the {} bytes from there", file_bytes);
    require_failure([&] { bytes.flush(); }, errc::io, somewhere, "a flush");
    require_final(errc::io, somewhere);
    begin_anew();
    require_failure(
        [&] {
          bytes.flush({bad * page, page});
        },
        errc::io, place(path, bad * page), "a flush of the page");
    begin_anew();
    const storage beside = map_file(path, {.access = access::read_write});
    bytes.flush(flush_mode::async);
    require_failure(
        [&] {
          bytes.finish_writeback({0, file_bytes});
        },
        errc::io, somewhere, "waiting for writes");
    in.disk.heal();
    require_final(errc::io, somewhere);
    require_failure([&] { beside.flush(); }, errc::io, somewhere,
                    "a flush through another storage");
    in.disk.fail("write", ENOSPC);
    begin_anew();
    require_failure([&] { bytes.flush(); }, errc::out_of_space, place(path, 0),
                    "a flush to a full device");
    in.disk.heal();
    in.disk.fail("sync", EIO);
    begin_anew();
    require_failure([&] { bytes.flush(); }, errc::io, place(path, 0), "a flush that cannot sync");
    in.disk.heal();
    require_final(errc::io, place(path, 0));
    begin_anew();
    bytes.flush();
    require(code_of([&] { other.check(); }) == errc{}, "another storage of the file is sound");
    require_equal(load(other, 0), 5, "another storage's byte");
    // Destroys a storage whose stores cannot be written: no report, no signal.
    in.disk.fail("write", EIO);
    store();
    bytes = {};
    in.disk.heal();
  });
}

void device_growth(const words& arguments) {
  laboratory in(arguments);
  in.examine([&] {
    const std::string path = cold_file(in.disk, "data");
    const std::string fresh = in.disk.folder() + "/fresh";
    storage bytes = map_file(path, {.access = access::read_write, .reserve_bytes = 4 * mib});
    for (const auto& [number, code] : {std::pair(EIO, errc::io), {ENOSPC, errc::out_of_space}}) {
      in.disk.fail("allocate", number);
      require_failure([&] { bytes.grow(mib); }, code, path, "growth");
      require_equal(size_of(path), file_bytes, "file size after failed growth");
      require_equal(bytes.size_bytes(), file_bytes, "size after failed growth");
      require_failure([&] { create_file(fresh, mib); }, code, fresh, "creation");
      require(!exists(fresh), "no new file is left");
    }
    // If the file system cannot allocate, zeros are written. After a failure half-way the added
    // bytes stay, because another process may have stored into them.
    in.disk.fail("allocate", EOPNOTSUPP);
    in.disk.fail("write", mib / 2, mib / 2 + page, EIO);
    require_failure([&] { bytes.grow(mib); }, errc::io, path, "growth by writing");
    require_equal(size_of(path), mib / 2, "file size after growth that failed half-way");
    require_equal(bytes.size_bytes(), file_bytes, "size after growth that failed half-way");
    const storage longer = map_file(path, {.offset = file_bytes});
    require(std::all_of(longer.data(), longer.data() + longer.size_bytes(),
                        [](std::byte value) { return value == std::byte{0}; }),
            "what was added is zeros");
    require_equal(filled_bytes(bytes), file_bytes, "bytes after failed growth");
    in.disk.fail("write", std::size_t{1} << 40, std::size_t{1} << 40, EIO);
    bytes.grow(mib);
    fill(bytes, file_bytes);
    bytes.flush();
    require_equal(filled_bytes(map_file(path)), mib, "bytes after growth");
  });
}

void device_gone(const words& arguments) {
  laboratory in(arguments);
  const std::string path = cold_file(in.disk, "data");
  const auto before = process_footprint::now();
  {
    storage reading = map_file(path, {.reserve_bytes = 4 * mib});
    storage writing = map_file(path, {.access = access::read_write, .reserve_bytes = 4 * mib});
    storage asked = map_file(path, {.offset = 5 * page});
    in.disk.vanish();
    require_failure(
        [&] {
          asked.populate({page, 10 * page});
        },
        errc::io, place(path, 6 * page), "populating");
    require_failure([&] { asked.check(); }, errc::io, path, "a check without a fault");
    require_failure([&] { writing.grow(mib); }, errc::io, path, "growth");
    for (std::size_t i = bad; i < file_bytes / page; ++i) {
      require_equal(load(reading, i * page), 0, "a lost byte");
      put(writing, i * page, 1);
    }
    require(reading.failed() && writing.failed(), "marks");
    require_failure([&] { reading.check(); }, errc::io, place(path, bad * page), "a check");
    require_failure([&] { writing.flush(); }, errc::io, place(path, bad * page), "a flush");
    require_failure([&] { map_file(path); }, errc::io, path, "mapping");
    require_failure([&] { create_file(path + "2", 1); }, errc::io, path + "2", "creation");
  }
  const auto after = process_footprint::now();
  require(after.descriptors <= before.descriptors && after.files <= before.files,
          "nothing leaks: " + to_string(before) + ", then " + to_string(after));
  require_equal(mappings_of(in.disk.folder()), 0u, "mappings of the lost disk");
  in.elsewhere.require_sound();
}

}  // namespace

int main(int count, char** arguments) {
  return run_verb({{"full-disk", full_disk},
                   {"full-shared-memory", full_shared_memory},
                   {"device-read", device_read},
                   {"device-read-for-store", device_read_for_store},
                   {"device-write", device_write},
                   {"device-growth", device_growth},
                   {"device-gone", device_gone}},
                  count, arguments);
}
