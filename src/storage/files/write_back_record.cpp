#include "storage/files/write_back_record.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <type_traits>

#include "shale/error.hpp"
#include "storage/system/file_facts.hpp"
#include "storage/system/fork_safe_mutex.hpp"
#include "storage/system/not_offered.hpp"

namespace shale::detail {

namespace {

// The list of all records that belong to a file. It is usable until the process ends, because
// static objects may own mappings.
constinit fork_safe_mutex listing;
static_assert(std::is_trivially_destructible_v<fork_safe_mutex>);
constinit write_back_record* first_listed = nullptr;

}  // namespace

// The call waits for the first page only, but it reports a failure to write any page of the file.
int unreported_write_back_error(int descriptor) noexcept {
  if (::sync_file_range(descriptor, 0, 1, SYNC_FILE_RANGE_WAIT_BEFORE) == 0) return 0;
  // Some sandboxes lack this call. Writing all pages reports the same errors.
  if (!is_not_offered(errno)) return errno;
  return ::fdatasync(descriptor) == 0 ? 0 : errno;
}

std::shared_ptr<write_back_record> write_back_record::of(int descriptor) {
  std::shared_ptr<write_back_record> made(new write_back_record);
  file_facts facts;
  if (descriptor < 0 || facts_of(descriptor, facts) != 0) return made;
  made->device_ = facts.device;
  made->inode_ = facts.inode;
  const std::lock_guard lock(listing);
  made->next_ = first_listed;
  if (first_listed != nullptr) first_listed->previous_ = made.get();
  first_listed = made.get();
  made->listed_ = true;
  return made;
}

write_back_record::~write_back_record() {
  if (!listed_) return;
  const std::lock_guard lock(listing);
  (previous_ != nullptr ? previous_->next_ : first_listed) = next_;
  if (next_ != nullptr) next_->previous_ = previous_;
}

// The caller holds `listing`.
void write_back_record::store(const write_back_error& error) noexcept {
  if (failed_.load(std::memory_order_relaxed)) return;
  first_ = error;
  failed_.store(true, std::memory_order_release);
}

void write_back_record::report(const write_back_error& error) noexcept {
  const std::lock_guard lock(listing);
  store(error);
  if (!listed_) return;
  for (write_back_record* record = first_listed; record != nullptr; record = record->next_)
    if (record->device_ == device_ && record->inode_ == inode_) record->store(error);
}

void write_back_record::throw_error(const std::string& path) const {
  const int number = first_.error_number;
  error failure =
      error::from_errno(number == ENOSPC || number == EDQUOT ? errc::out_of_space : errc::io,
                        "stored bytes could not be written to the device", number);
  if (first_.bytes == 0) {
    failure.add_detail("file " + path);
  } else {
    failure.add_detail(fmt::format("file {}, byte {}", path, first_.offset));
    failure.add_detail(fmt::format("somewhere in the {} bytes from there", first_.bytes));
  }
  failure.add_detail("they may be lost for good: open the file anew and write them again");
  throw failure;
}

}  // namespace shale::detail
