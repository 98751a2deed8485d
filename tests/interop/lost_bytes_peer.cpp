// Foreign files on disks that lose stored bytes and report it once, to another description than
// that of the publisher: `lost_bytes_peer VERB ARGUMENT… DIRECTORY`. A file that may have lost
// bytes must get no name.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <string>
#include <vector>

#include "shale/mapped_file.hpp"
#include "shale/npy.hpp"
#include "shale/unfinished_file.hpp"
#include "support/failures.hpp"
#include "support/faulty_disk.hpp"
#include "support/thin_disk.hpp"

namespace {

using namespace shale;
using namespace shale::test;

constexpr std::size_t mib = std::size_t{1} << 20;
constexpr std::size_t file_bytes = 4 * mib;

struct disk {
  std::string folder;
  std::function<void(const std::string& path)> fail;
  std::function<void()> heal;
};

void require_lost(const std::function<void()>& body, const std::string& description) {
  const outcome ended = outcome_of(body);
  require(
      ended.code == errc::io || ended.code == errc::out_of_space,
      description + " says that bytes are lost, got: " + (ended.code ? ended.text : "no error"));
}

void store(storage& into) {
  for (std::size_t i = 0; i < into.size_bytes(); i += 512) into.data()[i] = std::byte{7};
}

// A description of another process gets the report.
void sync_elsewhere(const std::string& path) {
  const pid_t child = ::fork();
  if (child == 0) {
    const int file = ::open(path.c_str(), O_RDONLY);
    ::_exit(file >= 0 && ::fsync(file) != 0 ? 0 : 1);
  }
  int status = -1;
  require(::waitpid(child, &status, 0) == child && status == 0, "another process is told");
}

// The description that gets the report of the error, and whether the mapping stays.
enum class told { flush, flush_then_closed, closed_then_elsewhere, elsewhere };

void publish_mapped(const disk& on, told who, bool announced) {
  const std::string target = on.folder + "/target";
  unfinished_file file(target, existing_file::replace);
  const auto make = [&] { return create_file(file.path(), file_bytes); };
  storage bytes = announced ? file.create(make) : make();
  on.fail(file.path());
  store(bytes);
  if (who == told::closed_then_elsewhere) bytes = {};
  if (who == told::flush || who == told::flush_then_closed)
    require_lost([&] { bytes.flush(); }, "the flush");
  else sync_elsewhere(file.path());
  if (who == told::flush_then_closed) bytes = {};
  on.heal();
  require_lost([&] { file.publish(); }, "publishing");
  require_lost([&] { file.publish(); }, "publishing again");
  require_lost([&] { file.publish_durable(); }, "publishing without a sync");
  require(::access(target.c_str(), F_OK) != 0, "there is no target");
}

// The program makes the file in a way of its own. Only `create` shows that it exists.
void publish_written(const disk& on) {
  unfinished_file file(on.folder + "/target", existing_file::replace);
  const int own = file.create(
      [&] { return ::open(file.path().c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600); });
  require(own >= 0 && ::posix_fallocate(own, 0, file_bytes) == 0, "a file is made");
  on.fail(file.path());
  const std::vector<char> ones(file_bytes, 1);
  require(::pwrite(own, ones.data(), ones.size(), 0) == static_cast<ssize_t>(ones.size()),
          "its bytes are written");
  sync_elsewhere(file.path());
  ::close(own);
  on.heal();
  require_lost([&] { file.publish(); }, "publishing");
}

// The file is made and written, and another process is told, before `create` returns.
void publish_made_inside(const disk& on) {
  unfinished_file file(on.folder + "/target", existing_file::replace);
  file.create([&] {
    storage bytes = create_file(file.path(), file_bytes);
    on.fail(file.path());
    store(bytes);
    sync_elsewhere(file.path());
  });
  on.heal();
  require_lost([&] { file.publish(); }, "publishing");
}

// Another kind of publisher, whose description was open all the time.
void finish_npy(const disk& on) {
  npy_writer writer(on.folder + "/target", dtype::uint8, {index_t{file_bytes}});
  storage bytes = writer.elements().storage();
  const std::string path(bytes.path());
  on.fail(path);
  store(bytes);
  sync_elsewhere(path);
  on.heal();
  require_lost([&] { writer.finish(); }, "finishing");
  require(::access((on.folder + "/target").c_str(), F_OK) != 0, "there is no target");
}

void publish_sound(const disk& on) {
  const std::string target = on.folder + "/sound";
  unfinished_file file(target, existing_file::replace);
  storage bytes = create_file(file.path(), file_bytes);
  store(bytes);
  file.publish();
  require(::access(target.c_str(), F_OK) == 0, "there is a target");
  ::unlink(target.c_str());
}

void each_way(const disk& on, const std::vector<told>& ways) {
  for (const told who : ways)
    for (const bool announced : {true, false}) publish_mapped(on, who, announced);
}

// A block device without space for reserved blocks when they are written.
void thin(const words& arguments) {
  enter_private_mounts();
  thin_disk device(arguments.at(0), 64 * mib);
  const disk on{device.folder(),
                [&](const std::string& path) { device.run_out_under(path, mib, mib); },
                [&] { device.heal(); }};
  each_way(on,
           {told::flush, told::flush_then_closed, told::closed_then_elsewhere, told::elsewhere});
  publish_written(on);
  publish_made_inside(on);
  finish_npy(on);
  publish_sound(on);
}

// A file system that reports a failed sync once, to the first call.
void forgetful(const words& arguments) {
  enter_private_mounts();
  faulty_disk device(arguments.at(0), arguments.at(1) + "/faulty");
  const disk on{device.folder(), [&](const std::string&) { device.fail("sync", EIO); },
                [&] { device.heal(); }};
  each_way(on, {told::flush, told::flush_then_closed});
}

}  // namespace

int main(int count, char** arguments) {
  return run_verb({{"thin", thin}, {"forgetful", forgetful}}, count, arguments);
}
