#include "interop/t7/paths.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "shale/error.hpp"

namespace shale::interop::t7 {

namespace {

constexpr std::uint64_t spare_bytes = std::uint64_t{1} << 20;

class walk {
 public:
  walk(const tree& of, std::uint64_t file_bytes)
      : of_(of), entered_(of.objects.size(), false), bytes_left_(file_bytes + spare_bytes) {}

  array_paths run() {
    visit(of_.root);
    while (!tables_.empty()) {
      open_table& top = tables_.back();
      path_.resize(top.path_bytes);
      if (top.next == none) {
        tables_.pop_back();
        continue;
      }
      const entry& pair = of_.entries[std::exchange(top.next, of_.entries[top.next].next)];
      if (tables_.size() > 1) path_ += '/';
      path_ += key_text(pair.key);
      visit(pair.value);  // may enter a table, which invalidates `top`
    }
    return join();
  }

 private:
  struct open_table {
    std::size_t next;  // entry
    std::size_t path_bytes;
  };

  void visit(const node& value) {
    switch (value.kind) {
      case t7_kind::nil:
        return;
      case t7_kind::number:
        ++made_.others.numbers;
        return;
      case t7_kind::boolean:
        ++made_.others.booleans;
        return;
      case t7_kind::string:
        ++made_.others.strings;
        return;
      case t7_kind::function:
        ++made_.others.functions;
        return;
      case t7_kind::tensor:
      case t7_kind::storage:
        return add(value.place);
      case t7_kind::table:
        return enter(value.place);
      case t7_kind::object: {
        // The table of an object adds no level to the path.
        const std::size_t held = of_.objects[value.place].first;
        return enter(of_.entries[held].value.place);
      }
    }
  }

  void enter(std::size_t table) {
    if (entered_[table]) return;
    entered_[table] = true;
    tables_.push_back({of_.objects[table].first, path_.size()});
  }

  void add(std::size_t array) {
    if (path_.size() > bytes_left_)
      throw error(errc::unsupported, "the paths of the tensors are longer than the file",
                  {fmt::format("a tensor has a path of {} bytes", path_.size()),
                   "give the tables shorter keys"});
    bytes_left_ -= path_.size();
    found_.emplace_back(path_, array);
  }

  std::string key_text(const node& key) const {
    switch (key.kind) {
      case t7_kind::string:
        return of_.texts.substr(static_cast<std::size_t>(key.place), key.text_bytes);
      case t7_kind::boolean:
        return key.number == 0 ? "false" : "true";
      case t7_kind::number:
        // Whole numbers up to 2^53 are exact; larger ones are written like fractions.
        if (std::abs(key.number) <= 0x1p53 && std::trunc(key.number) == key.number)
          return fmt::format("{}", static_cast<std::int64_t>(key.number));
        return fmt::format("{}", key.number);
      default:
        return fmt::format("#{}", key.place);
    }
  }

  // Lists each path once; a path of several arrays has no object.
  array_paths join() {
    std::map<std::string, std::size_t, std::less<>> seen;
    for (const auto& [path, array] : found_) {
      const auto [at, is_new] = seen.try_emplace(path, array);
      if (is_new) made_.names.push_back(path);
      else if (at->second != array) at->second = none;
    }
    for (const std::string& name : made_.names)
      made_.objects.emplace(name, seen.find(name)->second);
    return std::move(made_);
  }

  const tree& of_;
  std::vector<bool> entered_;
  std::uint64_t bytes_left_;
  std::vector<open_table> tables_;  // the innermost is the last
  std::string path_;
  std::vector<std::pair<std::string, std::size_t>> found_;
  array_paths made_;
};

}  // namespace

array_paths find_paths(const tree& of, std::uint64_t file_bytes) {
  return walk(of, file_bytes).run();
}

}  // namespace shale::interop::t7
