#include "storage/mapped/scratch_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include "shale/error.hpp"
#include "shale/mapped_file.hpp"
#include "storage/files/file_copy.hpp"
#include "storage/files/file_size_signal.hpp"
#include "storage/files/file_space.hpp"
#include "storage/files/file_system_kind.hpp"
#include "storage/files/whole_path.hpp"
#include "storage/files/write_back_record.hpp"
#include "storage/mapped/mapped_block.hpp"

namespace shale::detail {

namespace {

// The kernel transfers at most 2 GiB per call.
constexpr std::size_t transfer_bytes_max = std::size_t{1} << 30;

// Advice for errors that concern the folder.
constexpr const char* advice = "the variable TMPDIR names another folder for temporary files";

// Makes a file that never has a name (scratch.1). If the file system has no such files, it makes a
// file with a name and removes the name at once.
file_descriptor unnamed_file_in(const std::string& folder) {
  file_descriptor made = open_descriptor(folder, O_TMPFILE | O_EXCL | O_RDWR, 0600);
  if (made || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return made;
  std::string name = folder + "/shale-XXXXXX";
  const int named = ::mkostemp(name.data(), O_CLOEXEC);
  if (named < 0) return made;
  made = file_descriptor(beyond_standard_streams(named));
  if (::unlink(name.c_str()) != 0) made.reset();
  return made;
}

}  // namespace

std::string scratch_folder() {
  const char* const wanted = ::getenv("TMPDIR");
  return wanted != nullptr && *wanted != '\0' ? wanted : "/var/tmp";
}

scratch_file::scratch_file(std::uint64_t bytes, const std::string& folder) : folder_(folder) {
  require_whole_path(folder);
  file_ = unnamed_file_in(folder);
  if (!file_) {
    const int failure = errno;
    throw error::from_errno(failure == ENOTDIR ? errc::not_found : code_for_errno(failure),
                            "cannot create a temporary file", failure,
                            {fmt::format("folder {}", folder), advice});
  }
  if (support_for(file_system_of(file_.get()), O_RDWR, access::read_write) !=
      mapping_support::mapped)
    throw error(errc::unsupported, "temporary files must lie on a local file system",
                {fmt::format("folder {}", folder), advice});
  if (is_surely_full(file_.get(), 0, bytes))
    throw error(errc::out_of_space, "the device has too little space for a temporary file",
                {fmt::format("folder {}, wanted {} bytes", folder, bytes), advice});
}

void scratch_file::throw_failed(const char* message, int failure, std::uint64_t offset) const {
  error failed =
      error::from_errno(code_for_opened_file(failure), message, failure,
                        {fmt::format("a temporary file in {}, byte {}", folder_, offset)});
  if (failed.code() == errc::out_of_space) failed.add_detail(advice);
  throw failed;
}

void scratch_file::write(std::span<const std::byte> bytes, std::uint64_t offset) {
  const no_file_size_signal guard;
  while (!bytes.empty()) {
    const ssize_t put =
        ::pwrite(file_.get(), bytes.data(), std::min(bytes.size(), transfer_bytes_max),
                 static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) throw_failed("cannot write a temporary file", put < 0 ? errno : EIO, offset);
    bytes = bytes.subspan(static_cast<std::size_t>(put));
    offset += static_cast<std::uint64_t>(put);
  }
}

void scratch_file::read(std::span<std::byte> into, std::uint64_t offset) const {
  while (!into.empty()) {
    const ssize_t got = ::pread(file_.get(), into.data(), std::min(into.size(), transfer_bytes_max),
                                static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) throw_failed("cannot read a temporary file", got < 0 ? errno : EIO, offset);
    into = into.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
}

void scratch_file::check() const {
  const int failure = unreported_write_back_error(file_.get());
  if (failure != 0) throw_failed("a temporary file could not be written to its device", failure, 0);
}

storage scratch_file::map(std::size_t bytes) const {
  check();
  mapping_source source;
  source.owned = duplicate(file_.get());
  if (!source.owned) throw_failed("cannot map a temporary file", errno, 0);
  source.descriptor = source.owned.get();
  source.path = folder_ + " (a temporary file)";
  source.access = access::read_write;
  source.asks_for_write_back_errors = true;
  return storage_block::handle(
      std::make_shared<mapped_block>(std::move(source), file_extent{0, bytes}, std::size_t{0}));
}

}  // namespace shale::detail
