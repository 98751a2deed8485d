#include "storage/files/file_system_kind.hpp"

#include <sys/vfs.h>

#include <cerrno>

namespace shale::detail {

file_system_kind classify_file_system(std::uint64_t magic) noexcept {
  // The numbers come from the kernel (its header linux/magic.h lists most of them).
  switch (static_cast<std::uint32_t>(magic)) {
    case 0x794C7630:  // overlayfs
      return file_system_kind::overlay;
    case 0x6969:      // NFS
    case 0x517B:      // SMB
    case 0xFF534D42:  // CIFS
    case 0xFE534D42:  // SMB 2
    case 0x00C36400:  // Ceph
    case 0x5346414F:  // AFS (OpenAFS)
    case 0x6B414653:  // AFS (of the kernel)
    case 0x73757245:  // Coda
    case 0x01021997:  // 9P
    case 0x0BD00BD0:  // Lustre
    case 0x564C:      // NCP
    case 0x19830326:  // BeeGFS
      return file_system_kind::network;
    case 0x9FA0:      // proc
    case 0x62656572:  // sysfs
    case 0x64626720:  // debugfs
    case 0x74726163:  // tracefs
    case 0x27E0EB:    // cgroup
    case 0x63677270:  // cgroup 2
    case 0x73636673:  // securityfs
      return file_system_kind::virtual_;
    default:
      return file_system_kind::local;
  }
}

bool copies_on_write(std::uint64_t magic) noexcept {
  switch (static_cast<std::uint32_t>(magic)) {
    case 0x9123683E:  // btrfs
    case 0xCA451A4E:  // bcachefs
    case 0x2FC12FC1:  // ZFS
    case 0x3434:      // NILFS
      return true;
    default:
      return false;
  }
}

file_system_kind file_system_of(int descriptor) noexcept {
  struct statfs status {};
  int result;
  do result = ::fstatfs(descriptor, &status);
  while (result != 0 && errno == EINTR);
  // If the call fails, assume a local file system: nearly every file system supports mappings.
  return result == 0 ? classify_file_system(static_cast<std::uint64_t>(status.f_type))
                     : file_system_kind::local;
}

}  // namespace shale::detail
