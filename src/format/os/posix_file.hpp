// An open file by Linux system calls.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "format/os/descriptors_kept_from_children.hpp"
#include "format/os/file_system.hpp"
#include "format/os/posix_calls.hpp"
#include "storage/system/fork_safe_mutex.hpp"

namespace shale::format {

class posix_file final : public open_file {
 public:
  /// A file that has a temporary name in `parent`, or none.
  posix_file(int descriptor, std::string temporary_path,
             std::shared_ptr<const starting_directory> parent) noexcept
      : descriptor_(descriptor),
        temporary_path_(std::move(temporary_path)),
        directory_(std::move(parent)) {}

  ~posix_file() override;
  posix_file(const posix_file&) = delete;
  posix_file& operator=(const posix_file&) = delete;

  os_result pread(bytes_span into, std::uint64_t offset) noexcept override;
  os_result pwrite(bytes_view bytes, std::uint64_t offset) noexcept override;
  os_result allocate(std::uint64_t offset, std::uint64_t bytes) noexcept override;
  bool has_space_for(std::uint64_t offset, std::uint64_t bytes) noexcept override;
  os_result punch(std::uint64_t offset, std::uint64_t bytes) noexcept override;
  os_result sync_data() noexcept override;
  void discard_old_errors() noexcept override;
  bool drop_cached(std::uint64_t offset, std::uint64_t bytes) noexcept override;
  os_result truncate(std::uint64_t bytes) noexcept override;
  os_result size() noexcept override;
  os_result identify(file_identity& identity) noexcept override;
  os_result try_lock(std::uint64_t byte, lock_mode mode) noexcept override;
  os_result find_lock(lock_range within, found_lock& found) noexcept override;
  std::string holders_of(const found_lock& lock) const override;
  os_result open_again(std::unique_ptr<open_file>& again) noexcept override;
  std::string present_name() const override;
  bool is_remote() const noexcept override;
  void wait_word(std::uint64_t offset, std::uint32_t seen,
                 std::chrono::milliseconds timeout) noexcept override;
  void wake_word(std::uint64_t offset) noexcept override;
  int descriptor() const noexcept override { return descriptor_; }
  bool left_behind_by_fork() const noexcept override;

  /// False if the process has forked since `forks_begun` returned `before`: the child may have a
  /// copy.
  bool keep_from_children(std::int64_t before) noexcept;

  /// Gives the file its name in `parent`, instead of its temporary name if it has one. Replaces no
  /// file that has the name already.
  os_result give_name(const starting_directory& parent, const std::string& path) noexcept;

 private:
  os_result give_up_temporary_name(const starting_directory& parent,
                                   const std::string& path) noexcept;
  void drop(std::uint64_t offset, std::uint64_t bytes) noexcept;
  std::optional<std::uint64_t> cached_bytes(std::uint64_t offset,
                                            std::uint64_t bytes) const noexcept;
  os_result write_zeros(std::uint64_t offset, std::uint64_t bytes) noexcept;
  void* map_word(std::uint64_t offset) noexcept;
  void release_locks() noexcept;

  int descriptor_;
  const pid_t opener_ = ::getpid();
  std::optional<kept_from_children> kept_;
  std::string temporary_path_;
  std::shared_ptr<const starting_directory> directory_;  // of the temporary name
  shale::detail::fork_safe_mutex mapping_word_;
  bool word_mapped_ = false;  // or could not be
  void* word_page_ = nullptr;
  std::uint64_t word_page_offset_ = 0;
};

}  // namespace shale::format
