#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <thread>

#include "container/suites.hpp"
#include "container/works.hpp"
#include "shale/shale.hpp"

namespace shale::bench {

namespace {

constexpr const char* writer_name = "writer";

// Commits a small change a hundred times a second while it is told to.
class steady_writer {
 public:
  explicit steady_writer(const std::string& path)
      : file_(container::open(path, open_mode::write)) {}
  ~steady_writer() { stop(); }

  void start() {
    stop_ = false;
    commits_ = 0;
    began_ = std::chrono::steady_clock::now();
    thread_ = std::thread([this] { run(); });
  }

  // The commits of each second since the start.
  double stop() {
    if (!thread_.joinable()) return 0;
    stop_ = true;
    thread_.join();
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - began_;
    return static_cast<double>(commits_) / passed.count();
  }

 private:
  void run() {
    auto next = began_;
    while (!stop_) {
      transaction change = file_.begin();
      change.update("state").write(arange(64) + commits_);
      change.commit();
      ++commits_;
      next += std::chrono::milliseconds(10);
      std::this_thread::sleep_until(next);
    }
  }

  container file_;
  std::thread thread_;
  std::atomic<bool> stop_ = false;
  std::int64_t commits_ = 0;
  std::chrono::steady_clock::time_point began_;
};

}  // namespace

// Answers as the programs of peers do (support/peer_process.hpp): "start", and "stop" with the
// commits of each second.
int run_writer(const std::string& path) {
  steady_writer writer(path);
  std::string request;
  std::getline(std::cin, request);
  std::puts(writer_name);
  std::fflush(stdout);
  while (std::getline(std::cin, request)) {
    double answer = 0;
    if (request.ends_with("\tstart")) writer.start();
    else answer = writer.stop();
    std::printf("%g\n", answer);
    std::fflush(stdout);
  }
  return 0;
}

void reading_beside_a_writer(const subject& about) {
  const std::string name = about.data.name() + ": read all beside 100 commits a second";
  if (!is_wanted(about.chosen, name)) return;
  const std::string path = about.chosen.folder + "/shared.shale";
  about.data.store(path);
  {
    container file = container::open(path, open_mode::write);
    transaction change = file.begin();
    change.create("state", {.dtype = dtype::int64, .shape = {64}, .kind = array_kind::chunked});
    change.commit();
  }
  const container file = container::open(path);
  const tensor out = tensor::zeros(about.data.values().shape(), about.data.values().dtype());
  const auto read = [&] { return seconds_of([&] { file.latest().at("values").read_into(out); }); };
  peer_process writer({std::filesystem::read_symlink("/proc/self/exe").string(), "--writer", path});
  double slowest = 100;
  measure({.name = name,
           .shale =
               [&] {
                 writer.seconds(writer_name, "start");
                 const double seconds = read();
                 slowest = std::min(slowest, writer.seconds(writer_name, "stop").value_or(0));
                 return seconds;
               },
           .bytes = about.data.bytes(),
           .limits = {{"alone", read}},
           .goals = {{"alone", 0.9}}},
          about.chosen);
  std::fprintf(stderr, "%s: the writer made at least %.0f commits a second\n", name.c_str(),
               slowest);
  std::filesystem::remove(path);
}

}  // namespace shale::bench
