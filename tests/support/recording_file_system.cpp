#include "support/recording_file_system.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace shale::test {

using format::bytes_span;
using format::bytes_view;
using format::file_identity;
using format::lock_mode;
using format::lock_range;
using format::open_access;
using format::open_file;
using format::os_result;

namespace {

constexpr std::uint64_t sector_bytes = 512;

}  // namespace

struct held_lock {
  const open_file* owner;
  std::uint64_t byte;
  lock_mode mode;
};

struct recording_file_system::inode {
  std::uint64_t number = 0;
  content bytes;  // as everybody sees them, but for stores through mappings
  std::vector<held_lock> locks;

  // What is mapped: a file in memory that follows `bytes`, once somebody has asked for it.
  int mapped = -1;
  std::map<std::uint64_t, std::uint64_t> noted;  // pages that may be stored to: first -> end

  ~inode() {
    if (mapped >= 0) ::close(mapped);
  }
};

using change = recording_file_system::event::change;

// What the device may hold, given the log up to some point.
class device {
 public:
  using event = recording_file_system::event;
  using content = recording_file_system::content;
  using image = recording_file_system::image;

  void apply(const event& happened) {
    show(happened);
    switch (happened.kind) {
      case change::write: {
        std::uint64_t at = happened.offset;
        const std::uint64_t end = at + happened.bytes.size();
        while (at < end) {  // sector by sector
          const std::uint64_t stop = std::min(end, (at / sector_bytes + 1) * sector_bytes);
          const auto from =
              happened.bytes.begin() + static_cast<std::ptrdiff_t>(at - happened.offset);
          pending_.push_back({happened.inode, at, std::nullopt,
                              content(from, from + static_cast<std::ptrdiff_t>(stop - at)), false});
          at = stop;
        }
        break;
      }
      case change::resize:
        pending_.push_back({happened.inode, 0, happened.offset, {}, false});
        break;
      case change::sync: {
        std::vector<part> kept;
        for (part& each : pending_) {
          if (each.inode != happened.inode) kept.push_back(std::move(each));
          else if (each.lost) kept.push_back(std::move(each));
          else {
            put(durable_[each.inode], each);
            // What lies durably over an uncertain sector settles it.
            std::erase_if(kept, [&](const part& old) {
              return old.lost && old.inode == each.inode && !old.size && !each.size &&
                     old.offset / sector_bytes == each.offset / sector_bytes;
            });
          }
        }
        pending_ = std::move(kept);
        break;
      }
      case change::failed_sync:
        for (part& each : pending_)
          // The size is the file system's own record, which stays to be written.
          if (each.inode == happened.inode && !each.size) each.lost = true;
        break;
      case change::evict:
        std::erase_if(pending_, [](const part& each) { return each.lost; });
        for (auto& [inode, bytes] : seen_) {
          const std::size_t size = bytes.size();
          bytes = cached(inode);
          bytes.resize(size);
        }
        break;
      case change::link:
        unsynced_names_[happened.name] = happened.inode;
        break;
      case change::rename:
        unsynced_names_[happened.other_name] = seen_names_[happened.other_name];
        unsynced_names_[happened.name] = 0;
        break;
      case change::remove:
        unsynced_names_[happened.name] = 0;
        break;
      case change::sync_names:
        for (const auto& [name, inode] : unsynced_names_) names_[name] = inode;
        unsynced_names_.clear();
        break;
    }
  }

  image look(std::mt19937_64* random) const {
    // Of what was not synced, half is there, or nearly nothing, or nearly all.
    static constexpr std::uint64_t chances[] = {8, 1, 15};  // of 16
    const std::uint64_t chance = random == nullptr ? 0 : chances[(*random)() % 3];
    const auto coin = [&] { return random != nullptr && (*random)() % 16 < chance; };
    auto contents = durable_;
    for (const part& each : pending_)
      if (coin()) put(contents[each.inode], each);
    auto names = names_;
    for (const auto& [name, inode] : unsynced_names_)
      if (coin()) names[name] = inode;
    image files;
    for (const auto& [name, inode] : names)
      if (inode != 0) files[name] = contents[inode];
    return files;
  }

  // What everybody sees, as long as the power stays on.
  image seen() const {
    image files;
    for (const auto& [name, inode] : seen_names_)
      if (inode != 0) files[name] = seen_.at(inode);
    return files;
  }

 private:
  struct part {
    std::uint64_t inode;
    std::uint64_t offset;
    std::optional<std::uint64_t> size;  // a change of size instead of bytes
    content bytes;
    bool lost;
  };

  // What is on the device or on its way there.
  content cached(std::uint64_t inode) const {
    const auto found = durable_.find(inode);
    content bytes = found == durable_.end() ? content() : found->second;
    for (const part& each : pending_)
      if (each.inode == inode && !each.lost) put(bytes, each);
    return bytes;
  }

  static void put(content& file, const part& each) {
    if (each.size) {
      file.resize(*each.size);
      return;
    }
    if (file.size() < each.offset + each.bytes.size()) file.resize(each.offset + each.bytes.size());
    std::copy(each.bytes.begin(), each.bytes.end(),
              file.begin() + static_cast<std::ptrdiff_t>(each.offset));
  }

  void show(const event& happened) {
    switch (happened.kind) {
      case change::write:
        put(seen_[happened.inode],
            {happened.inode, happened.offset, std::nullopt, happened.bytes, false});
        break;
      case change::resize:
        seen_[happened.inode].resize(happened.offset);
        break;
      case change::link:
        seen_names_[happened.name] = happened.inode;
        break;
      case change::rename:
        seen_names_[happened.other_name] = seen_names_[happened.name];
        seen_names_[happened.name] = 0;
        break;
      case change::remove:
        seen_names_[happened.name] = 0;
        break;
      default:
        break;
    }
  }

  std::map<std::uint64_t, content> seen_;
  std::map<std::string, std::uint64_t> seen_names_;
  std::map<std::uint64_t, content> durable_;
  std::vector<part> pending_;
  std::map<std::string, std::uint64_t> names_;
  std::map<std::string, std::uint64_t> unsynced_names_;  // 0: removed
};

// ---- open files ---------------------------------------------------------------------------------

class recorded_file final : public open_file {
 public:
  recorded_file(recording_file_system& in, std::shared_ptr<recording_file_system::inode> of,
                open_access access)
      : in_(in), of_(std::move(of)), access_(access) {
    ++in_.open_files_;
  }

  ~recorded_file() override {
    --in_.open_files_;
    std::erase_if(of_->locks, [this](const held_lock& lock) { return lock.owner == this; });
  }

  os_result pread(bytes_span into, std::uint64_t offset) noexcept override {
    if (const auto failed = in_.begin_call("pread")) return *failed;
    take_over_stores();
    if (offset >= of_->bytes.size()) return 0;
    std::size_t n = std::min<std::size_t>(into.size(), of_->bytes.size() - offset);
    if (in_.is_partial() && n > 1) n /= 2;
    std::copy_n(of_->bytes.begin() + static_cast<std::ptrdiff_t>(offset), n, into.begin());
    return static_cast<os_result>(n);
  }

  os_result pwrite(bytes_view from, std::uint64_t offset) noexcept override {
    if (access_ != open_access::write) return -EBADF;
    if (const auto failed = in_.begin_call("pwrite")) return *failed;
    if (in_.is_partial() && from.size() > 1) from = from.first(from.size() / 2);
    change_bytes(offset, {from.begin(), from.end()});
    return static_cast<os_result>(from.size());
  }

  os_result allocate(std::uint64_t offset, std::uint64_t bytes) noexcept override {
    if (const auto failed = in_.begin_call("allocate")) return *failed;
    if (of_->bytes.size() < offset + bytes) resize(offset + bytes);
    return 0;
  }

  os_result punch(std::uint64_t offset, std::uint64_t bytes) noexcept override {
    if (const auto failed = in_.begin_call("punch")) return *failed;
    const std::uint64_t end = std::min<std::uint64_t>(offset + bytes, of_->bytes.size());
    if (offset < end) change_bytes(offset, recording_file_system::content(end - offset));
    return 0;
  }

  os_result sync_data() noexcept override {
    auto failed = in_.begin_call("sync");
    take_over_stores();
    if (in_.good_syncs_ && (*in_.good_syncs_)-- == 0) failed = -EIO;
    if (failed && in_.fault_ == fault::death) return *failed;  // it was never made
    if (failed) {
      in_.record({change::failed_sync, of_->number, 0, {}, {}, {}});
      in_.syncs_.push_back({in_.log_.size(), false});
      return *failed;
    }
    in_.record({change::sync, of_->number, 0, {}, {}, {}});
    in_.syncs_.push_back({in_.log_.size(), true});
    return 0;
  }

  os_result truncate(std::uint64_t bytes) noexcept override {
    if (const auto failed = in_.begin_call("truncate")) return *failed;
    resize(bytes);
    return 0;
  }

  os_result size() noexcept override {
    if (const auto failed = in_.begin_call("size")) return *failed;
    return static_cast<os_result>(of_->bytes.size());
  }

  os_result identify(file_identity& identity) noexcept override {
    if (const auto failed = in_.begin_call("identify")) return *failed;
    identity = {1, of_->number};
    return 0;
  }

  os_result try_lock(std::uint64_t byte, lock_mode mode) noexcept override {
    if (mode == lock_mode::exclusive && access_ != open_access::write) return -EBADF;
    if (const auto failed = in_.begin_call("try_lock")) return *failed;
    if (!in_.honours_locks) return 0;
    held_lock* mine = nullptr;
    for (held_lock& lock : of_->locks) {
      if (lock.byte != byte) continue;
      if (lock.owner == this) mine = &lock;
      else if (lock.mode == lock_mode::exclusive || mode == lock_mode::exclusive) return -EAGAIN;
    }
    if (mine != nullptr) mine->mode = mode;
    else of_->locks.push_back({this, byte, mode});
    return 0;
  }

  os_result find_lock(lock_range within, lock_range& found) noexcept override {
    if (const auto failed = in_.begin_call("find_lock")) return *failed;
    // Not the lowest: the one that was taken last.
    for (auto lock = of_->locks.rbegin(); lock != of_->locks.rend(); ++lock) {
      if (lock->owner == this || lock->byte < within.first || lock->byte > within.last) continue;
      found = {lock->byte, lock->byte};
      return 1;
    }
    return 0;
  }

  void wait_word(std::uint64_t, std::uint32_t, std::chrono::milliseconds) noexcept override {
    (void)in_.begin_call("wait_word", false);
  }
  void wake_word(std::uint64_t) noexcept override {
    (void)in_.begin_call("wake_word", false);
    in_.wakes_.push_back(in_.changes());
  }

  void note_mapped_write(std::uint64_t offset, std::uint64_t bytes) noexcept override {
    const std::uint64_t first = offset / page_bytes * page_bytes;
    std::uint64_t& end = of_->noted[first];
    end = std::max(end, (offset + bytes + page_bytes - 1) / page_bytes * page_bytes);
  }

  int descriptor() const noexcept override {
    if (of_->mapped < 0) {
      of_->mapped = ::memfd_create("recorded", MFD_CLOEXEC);
      (void)!::ftruncate(of_->mapped, static_cast<off_t>(of_->bytes.size()));
      (void)!::pwrite(of_->mapped, of_->bytes.data(), of_->bytes.size(), 0);
    }
    return of_->mapped;
  }

  const std::shared_ptr<recording_file_system::inode>& of() const noexcept { return of_; }

 private:
  static constexpr std::uint64_t page_bytes = 4096;

  // Pages that were stored to through a mapping become writes.
  void take_over_stores() {
    if (of_->mapped < 0) return;
    for (const auto& [first, end] : of_->noted) {
      for (std::uint64_t at = first; at < std::min<std::uint64_t>(end, of_->bytes.size());
           at += page_bytes) {
        recording_file_system::content page(std::min(page_bytes, of_->bytes.size() - at));
        (void)!::pread(of_->mapped, page.data(), page.size(), static_cast<off_t>(at));
        if (!std::equal(page.begin(), page.end(),
                        of_->bytes.begin() + static_cast<std::ptrdiff_t>(at)))
          change_bytes(at, std::move(page));
      }
    }
  }

  void change_bytes(std::uint64_t offset, recording_file_system::content bytes) {
    if (of_->bytes.size() < offset + bytes.size()) of_->bytes.resize(offset + bytes.size());
    std::copy(bytes.begin(), bytes.end(), of_->bytes.begin() + static_cast<std::ptrdiff_t>(offset));
    if (of_->mapped >= 0)
      (void)!::pwrite(of_->mapped, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    in_.record({change::write, of_->number, offset, std::move(bytes), {}, {}});
  }

  void resize(std::uint64_t bytes) {
    of_->bytes.resize(bytes);
    if (of_->mapped >= 0) (void)!::ftruncate(of_->mapped, static_cast<off_t>(bytes));
    in_.record({change::resize, of_->number, bytes, {}, {}, {}});
  }

  recording_file_system& in_;
  std::shared_ptr<recording_file_system::inode> of_;
  open_access access_;
};

// ---- the file system ----------------------------------------------------------------------------

recording_file_system::recording_file_system() = default;
recording_file_system::~recording_file_system() = default;

recording_file_system::recording_file_system(const image& files) {
  for (const auto& [name, bytes] : files) {
    auto made = std::make_shared<inode>();
    made->number = inodes_.size() + 1;
    made->bytes = bytes;
    inodes_.push_back(made);
    names_[name] = made;
    log_.push_back({change::write, made->number, 0, bytes, {}, {}});
    log_.push_back({change::sync, made->number, 0, {}, {}, {}});
    log_.push_back({change::link, made->number, 0, {}, name, {}});
    log_.push_back({change::sync_names, 0, 0, {}, {}, {}});
  }
}

std::optional<os_result> recording_file_system::begin_call(const char* what, bool can_fail) {
  if (before_call && !inside_hook_) {
    inside_hook_ = true;
    before_call();
    inside_hook_ = false;
  }
  if (before_each_call) before_each_call();
  const std::uint64_t number = calls_++;
  partial_now_ = false;
  if (!can_fail || !fault_at_ || (lasting_ ? number < *fault_at_ : number != *fault_at_))
    return std::nullopt;
  if (number == *fault_at_) failed_call_ = what;
  switch (fault_) {
    case fault::error:
      return -error_number_;
    case fault::interrupted:
      return lasting_ ? std::nullopt : std::optional<os_result>(-EINTR);
    case fault::partial:
      partial_now_ = true;
      return std::nullopt;
    case fault::death:
      partial_now_ = number == *fault_at_ && failed_call_ == "pwrite";
      return partial_now_ ? std::nullopt : std::optional<os_result>(-EIO);
    default:
      return std::nullopt;
  }
}

void recording_file_system::fail_call(std::uint64_t at, fault how, int error_number, bool lasting) {
  fault_at_ = at;
  failed_call_.clear();
  fault_ = how;
  error_number_ = error_number;
  lasting_ = lasting || how == fault::death;
}

void recording_file_system::record(event&& happened) { log_.push_back(std::move(happened)); }

std::shared_ptr<recording_file_system::inode> recording_file_system::find(
    const std::string& path) const {
  const auto found = names_.find(path);
  return found == names_.end() ? nullptr : found->second;
}

os_result recording_file_system::open(const std::string& path, open_access access,
                                      std::unique_ptr<open_file>& opened) noexcept {
  if (const auto failed = begin_call("open")) return *failed;
  auto found = find(path);
  if (!found) return -ENOENT;
  opened = std::make_unique<recorded_file>(*this, std::move(found), access);
  return 0;
}

os_result recording_file_system::create_unnamed(const std::string&, unsigned,
                                                std::unique_ptr<open_file>& created) noexcept {
  if (const auto failed = begin_call("create_unnamed")) return *failed;
  auto made = std::make_shared<inode>();
  made->number = inodes_.size() + 1;
  inodes_.push_back(made);
  created = std::make_unique<recorded_file>(*this, std::move(made), open_access::write);
  return 0;
}

os_result recording_file_system::link(open_file& file, const std::string& path) noexcept {
  if (const auto failed = begin_call("link")) return *failed;
  if (find(path)) return -EEXIST;
  const auto& of = static_cast<recorded_file&>(file).of();
  names_[path] = of;
  record({change::link, of->number, 0, {}, path, {}});
  return 0;
}

os_result recording_file_system::rename(const std::string& from, const std::string& to) noexcept {
  if (const auto failed = begin_call("rename")) return *failed;
  auto moved = find(from);
  if (!moved) return -ENOENT;
  names_.erase(from);
  names_[to] = std::move(moved);
  record({change::rename, 0, 0, {}, from, to});
  return 0;
}

os_result recording_file_system::remove(const std::string& path) noexcept {
  if (const auto failed = begin_call("remove")) return *failed;
  if (names_.erase(path) == 0) return -ENOENT;
  record({change::remove, 0, 0, {}, path, {}});
  return 0;
}

os_result recording_file_system::sync_directory_of(const std::string&) noexcept {
  if (const auto failed = begin_call("sync_directory")) return *failed;
  record({change::sync_names, 0, 0, {}, {}, {}});
  return 0;
}

os_result recording_file_system::identify(const std::string& path,
                                          file_identity& identity) noexcept {
  if (const auto failed = begin_call("identify_name")) return *failed;
  const auto found = find(path);
  if (!found) return -ENOENT;
  identity = {1, found->number};
  return 0;
}

void recording_file_system::pause(std::chrono::milliseconds) noexcept {
  (void)begin_call("pause", false);
}

recording_file_system::replay::replay(const recording_file_system& of)
    : of_(of), device_(std::make_unique<device>()) {}
recording_file_system::replay::~replay() = default;

bool recording_file_system::replay::next() {
  if (count_ == of_.log_.size()) return false;
  device_->apply(of_.log_[count_++]);
  return true;
}

recording_file_system::image recording_file_system::replay::after_kill() const {
  return device_->seen();
}

recording_file_system::image recording_file_system::replay::after_power_cut(
    std::mt19937_64* random) const {
  return device_->look(random);
}

recording_file_system::image recording_file_system::after_power_cut(std::mt19937_64* random) const {
  replay all(*this);
  while (all.next()) {
  }
  return all.after_power_cut(random);
}

recording_file_system::image recording_file_system::now() const {
  image files;
  for (const auto& [name, of] : names_) files[name] = of->bytes;
  return files;
}

void recording_file_system::fail_writeback(const std::string& path) {
  record({event::change::failed_sync, find(path)->number, 0, {}, {}, {}});
  fail_sync(0);
}

void recording_file_system::evict_lost() {
  record({change::evict, 0, 0, {}, {}, {}});
  replay all(*this);
  while (all.next()) {
  }
  for (const auto& [name, bytes] : all.after_kill()) find(name)->bytes = bytes;
}

void recording_file_system::flip(const std::string& path, std::uint64_t offset, std::byte mask) {
  find(path)->bytes[offset] ^= mask;
}

}  // namespace shale::test
