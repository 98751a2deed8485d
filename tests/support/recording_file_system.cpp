#include "support/recording_file_system.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

namespace shale::test {

using format::bytes_span;
using format::bytes_view;
using format::file_identity;
using format::found_lock;
using format::lock_mode;
using format::lock_range;
using format::open_access;
using format::open_file;
using format::os_result;

namespace {

constexpr std::uint64_t sector_bytes = 512;
constexpr std::uint64_t page_bytes = 4096;  // of the cache

}  // namespace

struct held_lock {
  const open_file* owner;
  std::uint64_t byte;
  lock_mode mode;
};

struct recording_file_system::inode {
  std::uint64_t number = 0;
  content bytes;  // as all processes see them, except for stores through mappings
  std::vector<held_lock> locks;
  std::vector<found_lock> foreign_locks;  // of programs that know nothing about containers
  std::uint64_t write_back_errors = 0;    // so far; each description is told of them once

  // The file that is mapped: a memory file that follows `bytes`, made when descriptor() is first
  // called.
  int mapped = -1;
  std::map<std::uint64_t, std::uint64_t> noted;  // pages that may be stored to: first -> end

  ~inode() {
    if (mapped >= 0) ::close(mapped);
  }
};

using change = recording_file_system::event::change;

// The possible states of the device after a number of recorded changes.
class device {
 public:
  using event = recording_file_system::event;
  using content = recording_file_system::content;
  using image = recording_file_system::image;

  void apply(const event& happened) {
    show(happened);
    switch (happened.kind) {
      case change::write: {
        std::uint64_t offset = happened.offset;
        const std::uint64_t end = offset + happened.bytes.size();
        while (offset < end) {  // sector by sector
          const std::uint64_t stop = std::min(end, (offset / sector_bytes + 1) * sector_bytes);
          const auto source =
              happened.bytes.begin() + static_cast<std::ptrdiff_t>(offset - happened.offset);
          pending_.push_back({happened.inode, offset, std::nullopt,
                              content(source, source + static_cast<std::ptrdiff_t>(stop - offset)),
                              stuck_.contains({happened.inode, offset / sector_bytes})});
          offset = stop;
        }
        break;
      }
      case change::resize:
        pending_.push_back({happened.inode, 0, happened.offset, {}, false});
        forget(happened.inode, happened.offset, UINT64_MAX - page_bytes);
        break;
      case change::sync: {
        std::vector<part> kept;
        for (part& pending : pending_) {
          if (pending.inode != happened.inode) kept.push_back(std::move(pending));
          else if (pending.lost) kept.push_back(std::move(pending));
          else {
            put(durable_[pending.inode], pending);
            if (!pending.size) written_.insert({pending.inode, pending.offset / sector_bytes});
            // A durable write over an uncertain sector makes it certain.
            std::erase_if(kept, [&](const part& old) {
              return old.lost && old.inode == pending.inode && !old.size && !pending.size &&
                     old.offset / sector_bytes == pending.offset / sector_bytes;
            });
          }
        }
        pending_ = std::move(kept);
        break;
      }
      case change::failed_sync:
        for (part& pending : pending_) {
          // The size is metadata of the file system itself, which will still be written.
          if (pending.inode != happened.inode || pending.size) continue;
          pending.lost = true;
          // Pages behind the end of a file that was truncated are not in the cache any more.
          const sector at{pending.inode, pending.offset / sector_bytes};
          if (!written_.contains(at) && pending.offset < seen_[pending.inode].size())
            stuck_.insert(at);
        }
        break;
      case change::forget:
        forget(happened.inode, happened.offset, happened.offset + happened.length);
        break;
      case change::evict:
        stuck_.clear();
        std::erase_if(pending_, [](const part& pending) { return pending.lost; });
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
    // The part of the unsynced sectors that is there: half, nearly none, or nearly all.
    static constexpr std::uint64_t chances[] = {8, 1, 15};  // of 16
    const std::uint64_t chance = random == nullptr ? 0 : chances[(*random)() % 3];
    const auto coin = [&] { return random != nullptr && (*random)() % 16 < chance; };
    auto contents = durable_;
    for (const part& pending : pending_)
      if (coin()) put(contents[pending.inode], pending);
    auto names = names_;
    for (const auto& [name, inode] : unsynced_names_)
      if (coin()) names[name] = inode;
    image files;
    for (const auto& [name, inode] : names)
      if (inode != 0) files[name] = contents[inode];
    return files;
  }

  // The state that all processes see while the power stays on.
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

  using sector = std::pair<std::uint64_t, std::uint64_t>;  // inode, number

  // Whole pages of the range leave the cache.
  void forget(std::uint64_t inode, std::uint64_t first, std::uint64_t end) {
    const auto sector_of_page = [](std::uint64_t offset) {
      return offset / page_bytes * (page_bytes / sector_bytes);
    };
    stuck_.erase(stuck_.lower_bound({inode, sector_of_page(first + page_bytes - 1)}),
                 stuck_.lower_bound({inode, sector_of_page(end)}));
  }

  // The sectors that are on the device or may be.
  content cached(std::uint64_t inode) const {
    const auto found = durable_.find(inode);
    content bytes = found == durable_.end() ? content() : found->second;
    for (const part& pending : pending_)
      if (pending.inode == inode && !pending.lost) put(bytes, pending);
    return bytes;
  }

  static void put(content& file, const part& written) {
    if (written.size) {
      file.resize(*written.size);
      return;
    }
    if (file.size() < written.offset + written.bytes.size())
      file.resize(written.offset + written.bytes.size());
    std::copy(written.bytes.begin(), written.bytes.end(),
              file.begin() + static_cast<std::ptrdiff_t>(written.offset));
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
  std::set<sector> written_;  // that a sync made durable once
  std::set<sector> stuck_;    // that no sync makes durable
  std::vector<part> pending_;
  std::map<std::string, std::uint64_t> names_;
  std::map<std::string, std::uint64_t> unsynced_names_;  // 0: removed
};

// ---- open files ---------------------------------------------------------------------------------

class recorded_file final : public open_file {
 public:
  recorded_file(recording_file_system& in, std::shared_ptr<recording_file_system::inode> node,
                open_access access)
      : in_(in), node_(std::move(node)), access_(access), errors_told_(node_->write_back_errors) {
    ++in_.open_files_;
  }

  ~recorded_file() override {
    const auto entered = in_.enter();
    --in_.open_files_;
    std::erase_if(node_->locks, [this](const held_lock& lock) { return lock.owner == this; });
  }

  os_result pread(bytes_span into, std::uint64_t offset) noexcept override {
    const auto entered = in_.enter();
    if (const auto failed = in_.begin_call("pread")) return *failed;
    take_over_stores();
    if (offset >= node_->bytes.size()) return 0;
    std::size_t n = std::min<std::size_t>(into.size(), node_->bytes.size() - offset);
    if (in_.is_partial() && n > 1) n /= 2;
    std::copy_n(node_->bytes.begin() + static_cast<std::ptrdiff_t>(offset), n, into.begin());
    return static_cast<os_result>(n);
  }

  os_result pwrite(bytes_view source, std::uint64_t offset) noexcept override {
    const auto entered = in_.enter();
    if (access_ != open_access::write) return -EBADF;
    if (const auto failed = in_.begin_call("pwrite")) return *failed;
    if (in_.is_partial() && source.size() > 1) source = source.first(source.size() / 2);
    change_bytes(offset, {source.begin(), source.end()});
    return static_cast<os_result>(source.size());
  }

  os_result allocate(std::uint64_t offset, std::uint64_t bytes) noexcept override {
    const auto entered = in_.enter();
    if (const auto failed = in_.begin_call("allocate")) return *failed;
    if (node_->bytes.size() < offset + bytes) resize(offset + bytes);
    return 0;
  }

  bool has_space_for(std::uint64_t offset, std::uint64_t bytes) noexcept override {
    const auto entered = in_.enter();
    return in_.tells_space && offset + bytes <= node_->bytes.size();
  }

  os_result punch(std::uint64_t offset, std::uint64_t bytes) noexcept override {
    const auto entered = in_.enter();
    if (const auto failed = in_.begin_call("punch")) return *failed;
    const std::uint64_t end = std::min<std::uint64_t>(offset + bytes, node_->bytes.size());
    if (offset < end) change_bytes(offset, recording_file_system::content(end - offset));
    return 0;
  }

  os_result sync_data() noexcept override {
    const auto entered = in_.enter();
    auto failed = in_.begin_call("sync");
    take_over_stores();
    if (in_.good_syncs_ && (*in_.good_syncs_)-- == 0) failed = -EIO;
    if (std::exchange(errors_told_, node_->write_back_errors) != node_->write_back_errors)
      failed = -EIO;
    if (failed && in_.fault_ == fault::death) return *failed;  // the file was never made
    if (failed) {
      in_.record({change::failed_sync, node_->number, 0, {}, {}, {}});
      in_.syncs_.push_back({in_.log_.size(), false});
      return *failed;
    }
    in_.record({change::sync, node_->number, 0, {}, {}, {}});
    in_.syncs_.push_back({in_.log_.size(), true});
    return 0;
  }

  bool drop_cached(std::uint64_t offset, std::uint64_t bytes) noexcept override {
    const auto entered = in_.enter();
    ++in_.drops;
    if (in_.drops_pages) in_.record({change::forget, node_->number, offset, {}, {}, {}, bytes});
    return in_.drops_pages;
  }

  os_result truncate(std::uint64_t bytes) noexcept override {
    const auto entered = in_.enter();
    if (const auto failed = in_.begin_call("truncate")) return *failed;
    resize(bytes);
    return 0;
  }

  os_result size() noexcept override {
    const auto entered = in_.enter();
    if (const auto failed = in_.begin_call("size")) return *failed;
    return static_cast<os_result>(node_->bytes.size());
  }

  os_result identify(file_identity& identity) noexcept override {
    const auto entered = in_.enter();
    if (const auto failed = in_.begin_call("identify")) return *failed;
    identity = {1, node_->number};
    return 0;
  }

  os_result try_lock(std::uint64_t byte, lock_mode mode) noexcept override {
    const auto entered = in_.enter();
    if (mode == lock_mode::exclusive && access_ != open_access::write) return -EBADF;
    if (const auto failed = in_.begin_call("try_lock")) return *failed;
    if (!in_.honours_locks) return 0;
    for (const found_lock& lock : node_->foreign_locks)
      if (lock.range.first <= byte && byte <= lock.range.last &&
          (lock.mode == lock_mode::exclusive || mode == lock_mode::exclusive))
        return -EAGAIN;
    held_lock* mine = nullptr;
    for (held_lock& lock : node_->locks) {
      if (lock.byte != byte) continue;
      if (lock.owner == this) mine = &lock;
      else if (lock.mode == lock_mode::exclusive || mode == lock_mode::exclusive) return -EAGAIN;
    }
    if (mine != nullptr) mine->mode = mode;
    else node_->locks.push_back({this, byte, mode});
    return 0;
  }

  os_result find_lock(lock_range within, found_lock& found) noexcept override {
    const auto entered = in_.enter();
    if (const auto failed = in_.begin_call("find_lock")) return *failed;
    for (const found_lock& lock : node_->foreign_locks) {
      if (lock.range.last < within.first || lock.range.first > within.last) continue;
      found = lock;
      return 1;
    }
    // Reports the lock that was taken last, not the lowest one.
    for (auto lock = node_->locks.rbegin(); lock != node_->locks.rend(); ++lock) {
      if (lock->owner == this || lock->byte < within.first || lock->byte > within.last) continue;
      found = {{lock->byte, lock->byte}, lock->mode, 0};
      return 1;
    }
    return 0;
  }

  os_result open_again(std::unique_ptr<open_file>& again) noexcept override {
    const auto entered = in_.enter();
    if (const auto failed = in_.begin_call("open_again")) return *failed;
    if (in_.open_files_ >= in_.open_files_max) return -EMFILE;
    again = std::make_unique<recorded_file>(in_, node_, open_access::read);
    return 0;
  }

  bool is_remote() const noexcept override { return in_.remote; }

  void wait_word(std::uint64_t, std::uint32_t, std::chrono::milliseconds) noexcept override {
    const auto entered = in_.enter();
    (void)in_.begin_call("wait_word", false);
  }
  void wake_word(std::uint64_t) noexcept override {
    const auto entered = in_.enter();
    (void)in_.begin_call("wake_word", false);
    in_.wakes_.push_back(in_.changes());
  }

  void note_mapped_write(std::uint64_t offset, std::uint64_t bytes) noexcept override {
    const auto entered = in_.enter();
    const std::uint64_t first = offset / page_bytes * page_bytes;
    std::uint64_t& end = node_->noted[first];
    end = std::max(end, (offset + bytes + page_bytes - 1) / page_bytes * page_bytes);
  }

  int descriptor() const noexcept override {
    const auto entered = in_.enter();
    if (node_->mapped < 0) {
      node_->mapped = ::memfd_create("recorded", MFD_CLOEXEC);
      (void)!::ftruncate(node_->mapped, static_cast<off_t>(node_->bytes.size()));
      (void)!::pwrite(node_->mapped, node_->bytes.data(), node_->bytes.size(), 0);
    }
    return node_->mapped;
  }

  const std::shared_ptr<recording_file_system::inode>& node() const noexcept { return node_; }

 private:
  const std::uint64_t page_bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));

  // Pages that were stored to through a mapping become writes of whole pages, because the system
  // does not know which bytes of a page are new.
  void take_over_stores() {
    if (node_->mapped < 0) return;
    for (const auto& [first, end] : node_->noted) {
      for (std::uint64_t offset = first; offset < std::min<std::uint64_t>(end, node_->bytes.size());
           offset += page_bytes) {
        recording_file_system::content page(std::min(page_bytes, node_->bytes.size() - offset));
        (void)!::pread(node_->mapped, page.data(), page.size(), static_cast<off_t>(offset));
        if (!std::equal(page.begin(), page.end(),
                        node_->bytes.begin() + static_cast<std::ptrdiff_t>(offset)))
          change_bytes(offset, std::move(page));
      }
    }
  }

  void change_bytes(std::uint64_t offset, recording_file_system::content bytes) {
    if (node_->bytes.size() < offset + bytes.size()) node_->bytes.resize(offset + bytes.size());
    std::copy(bytes.begin(), bytes.end(),
              node_->bytes.begin() + static_cast<std::ptrdiff_t>(offset));
    if (node_->mapped >= 0)
      (void)!::pwrite(node_->mapped, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    in_.record({change::write, node_->number, offset, std::move(bytes), {}, {}});
  }

  void resize(std::uint64_t bytes) {
    node_->bytes.resize(bytes);
    if (node_->mapped >= 0) (void)!::ftruncate(node_->mapped, static_cast<off_t>(bytes));
    in_.record({change::resize, node_->number, bytes, {}, {}, {}});
  }

  recording_file_system& in_;
  std::shared_ptr<recording_file_system::inode> node_;
  open_access access_;
  std::uint64_t errors_told_;
};

class recorded_directory final : public format::open_directory {
 public:
  explicit recorded_directory(recording_file_system& in) : in_(in) { ++in_.open_files_; }

  ~recorded_directory() override {
    const auto entered = in_.enter();
    --in_.open_files_;
  }

  os_result sync_names() noexcept override {
    const auto entered = in_.enter();
    if (const auto failed = in_.begin_call("sync_directory")) return *failed;
    in_.record({change::sync_names, 0, 0, {}, {}, {}});
    return 0;
  }

 private:
  recording_file_system& in_;
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

std::optional<os_result> recording_file_system::begin_call(const char* name, bool can_fail) {
  if (before_call && !inside_hook_) {
    inside_hook_ = true;
    before_call();
    inside_hook_ = false;
  }
  if (before_each_call) before_each_call();
  const std::uint64_t number = calls_++;
  ++calls_by_name_[name];
  partial_now_ = false;
  if (!can_fail || !fault_at_ || (lasting_ ? number < *fault_at_ : number != *fault_at_))
    return std::nullopt;
  if (number == *fault_at_) failed_call_ = name;
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

void recording_file_system::fail_call(std::uint64_t number, fault how, int error_number,
                                      bool lasting) {
  fault_at_ = number;
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
  const auto entered = enter();
  if (const auto failed = begin_call("open")) return *failed;
  if (open_files_ >= open_files_max) return -EMFILE;
  auto found = find(path);
  if (!found) return -ENOENT;
  opened = std::make_unique<recorded_file>(*this, std::move(found), access);
  return 0;
}

os_result recording_file_system::create_unnamed(const std::string&, unsigned,
                                                std::unique_ptr<open_file>& created) noexcept {
  const auto entered = enter();
  if (const auto failed = begin_call("create_unnamed")) return *failed;
  auto made = std::make_shared<inode>();
  made->number = inodes_.size() + 1;
  inodes_.push_back(made);
  created = std::make_unique<recorded_file>(*this, std::move(made), open_access::write);
  return 0;
}

os_result recording_file_system::link(open_file& file, const std::string& path) noexcept {
  const auto entered = enter();
  if (const auto failed = begin_call("link")) return *failed;
  if (find(path)) return -EEXIST;
  const auto& node = static_cast<recorded_file&>(file).node();
  names_[path] = node;
  record({change::link, node->number, 0, {}, path, {}});
  return 0;
}

os_result recording_file_system::rename(const std::string& from, const std::string& to) noexcept {
  const auto entered = enter();
  if (const auto failed = begin_call("rename")) return *failed;
  auto moved = find(from);
  if (!moved) return -ENOENT;
  names_.erase(from);
  names_[to] = std::move(moved);
  record({change::rename, 0, 0, {}, from, to});
  return 0;
}

os_result recording_file_system::remove(const std::string& path) noexcept {
  const auto entered = enter();
  if (const auto failed = begin_call("remove")) return *failed;
  if (names_.erase(path) == 0) return -ENOENT;
  record({change::remove, 0, 0, {}, path, {}});
  return 0;
}

os_result recording_file_system::open_directory_of(
    const std::string&, std::unique_ptr<format::open_directory>& opened) noexcept {
  const auto entered = enter();
  if (const auto failed = begin_call("open_directory")) return *failed;
  if (open_files_ >= open_files_max) return -EMFILE;
  opened = std::make_unique<recorded_directory>(*this);
  return 0;
}

os_result recording_file_system::identify(const std::string& path,
                                          file_identity& identity) noexcept {
  const auto entered = enter();
  if (const auto failed = begin_call("identify_name")) return *failed;
  const auto found = find(path);
  if (!found) return -ENOENT;
  identity = {1, found->number};
  return 0;
}

std::chrono::microseconds recording_file_system::pause(
    std::chrono::milliseconds duration) noexcept {
  const auto entered = enter();
  (void)begin_call("pause", false);
  const std::chrono::microseconds taken = duration * pauses_take;
  paused += taken;
  return taken;
}

recording_file_system::replay::replay(const recording_file_system& recorded)
    : recorded_(recorded), device_(std::make_unique<device>()) {}
recording_file_system::replay::~replay() = default;

bool recording_file_system::replay::next() {
  if (count_ == recorded_.log_.size()) return false;
  device_->apply(recorded_.log_[count_++]);
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
  for (const auto& [name, node] : names_) files[name] = node->bytes;
  return files;
}

void recording_file_system::fail_writeback(const std::string& path) {
  const auto failing = find(path);
  record({event::change::failed_sync, failing->number, 0, {}, {}, {}});
  ++failing->write_back_errors;
}

void recording_file_system::evict_lost() {
  record({change::evict, 0, 0, {}, {}, {}});
  replay all(*this);
  while (all.next()) {
  }
  for (const auto& [name, bytes] : all.after_kill()) find(name)->bytes = bytes;
}

void recording_file_system::lock_as_stranger(const std::string& path, const found_lock& lock) {
  find(path)->foreign_locks.push_back(lock);
}

void recording_file_system::unlock_strangers(const std::string& path) {
  find(path)->foreign_locks.clear();
}

void recording_file_system::flip(const std::string& path, std::uint64_t offset, std::byte mask) {
  find(path)->bytes[offset] ^= mask;
}

}  // namespace shale::test
