#include "support/private_mounts.hpp"

#include <fcntl.h>
#include <linux/loop.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include "support/child_process.hpp"
#include "support/helper_process.hpp"

namespace shale::test {

namespace {

[[noreturn]] void give_up(const std::string& reason) {
  throw unavailable(reason + ": " + std::strerror(errno));
}

void write_line(const char* path, const std::string& line) { std::ofstream(path) << line << "\n"; }

// The driver of loop devices reports a write that was cut short as a success (Linux 6.18). Requests
// of one page are written whole or fail. Where this cannot be set, tests of full devices may see
// losses that no file system would have caused.
void write_single_pages(int loop_number) {
  write_line(("/sys/block/loop" + std::to_string(loop_number) + "/queue/max_sectors_kb").c_str(),
             "4");
}

// Makes a loop device for the file; the device is freed when nothing uses it any more.
std::string attach_loop_device(int file) {
  const int control = ::open("/dev/loop-control", O_RDWR | O_CLOEXEC);
  if (control < 0) give_up("no loop devices");
  for (int attempt = 0; attempt < 100; ++attempt) {
    const int number = ::ioctl(control, LOOP_CTL_GET_FREE);
    if (number < 0) break;
    const std::string path = "/dev/loop" + std::to_string(number);
    const int device = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (device < 0) break;
    loop_config config{};
    config.fd = static_cast<__u32>(file);
    config.info.lo_flags = LO_FLAGS_AUTOCLEAR;
    // The device stays open while this process lives: if it were closed now, it would be freed.
    if (::ioctl(device, LOOP_CONFIGURE, &config) == 0) {
      ::close(control);
      write_single_pages(number);
      return path;
    }
    const int failure = errno;
    ::close(device);
    errno = failure;
    if (failure != EBUSY) break;  // EBUSY: another process was faster
  }
  ::close(control);
  give_up("no loop device");
}

}  // namespace

void enter_private_mounts() {
  const auto user = ::getuid();
  const auto group = ::getgid();
  if (::unshare(CLONE_NEWNS) != 0) {
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) give_up("no mounts of this process's own");
    write_line("/proc/self/setgroups", "deny");
    write_line("/proc/self/uid_map", "0 " + std::to_string(user) + " 1");
    write_line("/proc/self/gid_map", "0 " + std::to_string(group) + " 1");
  }
  if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    give_up("mounts cannot be made private");
}

void mount_tmpfs(const std::string& folder, std::size_t bytes, const std::string& options) {
  const std::string all = "size=" + std::to_string(bytes) + (options.empty() ? "" : ",") + options;
  if (::mount("tmpfs", folder.c_str(), "tmpfs", 0, all.c_str()) != 0)
    give_up("tmpfs cannot be mounted");
}

void mount_ext4(const std::string& image, const std::string& folder, std::size_t bytes) {
  const int file = ::open(image.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || ::ftruncate(file, static_cast<off_t>(bytes)) != 0) give_up("no image");
  const std::string program = "/sbin/mkfs.ext4";
  if (::access(program.c_str(), X_OK) != 0) give_up(program);
  child_process make(program, {"-q", "-F", "-m", "0", "-b", "4096", "-O", "^has_journal", image});
  if (make.wait() != 0) throw unavailable("mkfs.ext4 failed");
  ::close(file);
  mount_image(image, folder);
}

void mount_image(const std::string& image, const std::string& folder) {
  const int file = ::open(image.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) give_up("no image");
  const std::string device = attach_loop_device(file);
  ::close(file);
  if (::mount(device.c_str(), folder.c_str(), "ext4", 0, nullptr) != 0)
    give_up("ext4 cannot be mounted");
}

std::string make_directory(const std::string& path) {
  if (::mkdir(path.c_str(), 0755) != 0 && errno != EEXIST)
    throw std::runtime_error("no directory " + path);
  return path;
}

bool unmount(const std::string& folder) { return ::umount2(folder.c_str(), 0) == 0; }

}  // namespace shale::test
