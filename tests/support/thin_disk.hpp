// A disk that can run out of space under a file system, like a thinly provisioned volume: ext4 in
// an image whose own file system is full. Then blocks of chosen files cannot be written, although
// they were reserved. For helper processes with private mounts (support/private_mounts.hpp).
#pragma once

#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "support/helper_process.hpp"
#include "support/private_mounts.hpp"

namespace shale::test {

class thin_disk {
 public:
  /// An ext4 file system of `bytes` under `directory`. With `backed`, every block has its space;
  /// else a block gets it when it is first written. Throws unavailable.
  thin_disk(const std::string& directory, std::size_t bytes, bool backed = true)
      : backing_(make_directory(directory + "/backing")),
        folder_(make_directory(directory + "/disk")) {
    mount_tmpfs(backing_, bytes + spare_bytes);
    mount_ext4(image(), folder_, bytes);
    if (!backed) return;
    const int file = open_image();
    require(::posix_fallocate(file, 0, static_cast<off_t>(bytes)) == 0, "the image has its blocks");
    ::close(file);
  }

  const std::string& folder() const { return folder_; }

  /// Removes the space under the bytes [first, first + bytes) of a file, and all other free space.
  /// The bytes must have been reserved and never written.
  void run_out_under(const std::string& path, std::size_t first, std::size_t bytes) {
    const int image_file = open_image();
    for (const auto& piece : places_of(path, first, bytes))
      require(::fallocate(image_file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                          static_cast<off_t>(piece.offset), static_cast<off_t>(piece.bytes)) == 0,
              "room is taken away");
    ::close(image_file);
    run_out();
  }

  /// Removes all free space.
  void run_out() {
    const int filler = ::open(filler_path().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    const std::vector<char> block(4096, 1);
    while (::write(filler, block.data(), block.size()) > 0) {
    }
    ::close(filler);
  }

  /// Gives space back. Bytes whose writing failed are lost.
  void heal() { ::unlink(filler_path().c_str()); }

  /// Shows what is on the disk: the system's caches are lost, as in a restart. No file may be open.
  void mount_again() {
    require(unmount(folder_), "the disk can be unmounted");
    mount_image(image(), folder_);
  }

 private:
  static constexpr std::size_t spare_bytes = std::size_t{1} << 20;

  struct extent {
    std::uint64_t offset;
    std::uint64_t bytes;
  };

  std::string image() const { return backing_ + "/image"; }
  std::string filler_path() const { return backing_ + "/filler"; }
  int open_image() const {
    const int file = ::open(image().c_str(), O_RDWR | O_CLOEXEC);
    require(file >= 0, "the image can be opened");
    return file;
  }

  // The position of the file's bytes on the device.
  static std::vector<extent> places_of(const std::string& path, std::size_t first,
                                       std::size_t bytes) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    require(file >= 0, "the file can be opened");
    constexpr unsigned most = 64;
    std::vector<char> memory(sizeof(fiemap) + most * sizeof(fiemap_extent));
    auto* const map = reinterpret_cast<fiemap*>(memory.data());
    map->fm_start = first;
    map->fm_length = bytes;
    map->fm_extent_count = most;
    require(::ioctl(file, FS_IOC_FIEMAP, map) == 0, "the file's blocks are known");
    ::close(file);
    std::vector<extent> found;
    for (unsigned i = 0; i < map->fm_mapped_extents; ++i) {
      const fiemap_extent& mapped = map->fm_extents[i];
      const std::uint64_t begin = std::max<std::uint64_t>(mapped.fe_logical, first);
      const std::uint64_t to =
          std::min<std::uint64_t>(mapped.fe_logical + mapped.fe_length, first + bytes);
      found.push_back({mapped.fe_physical + (begin - mapped.fe_logical), to - begin});
    }
    return found;
  }

  const std::string backing_;
  const std::string folder_;
};

}  // namespace shale::test
