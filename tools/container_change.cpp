#include "container_change.hpp"

#include <fmt/format.h>

#include "shale/foreign_file.hpp"

namespace shale::tools {

namespace {

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  if (from.empty()) return text;
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

// The same failure in terms of the name that the user knows.
error renamed(const error& failure, const std::string& from, const std::string& to) {
  const std::string text = replaced(failure.what(), from, to);
  const std::size_t end = std::min(text.find('\n'), text.size());
  // "message [code]": the code is printed again by the new error.
  const std::size_t code = std::min(text.rfind(" [", end), end);
  error result(failure.code(), std::string_view(text).substr(0, code));
  for (std::size_t at = end + 1; at < text.size();) {
    const std::size_t next = std::min(text.find('\n', at), text.size());
    const std::size_t first = std::min(text.find_first_not_of(' ', at), next);
    result.add_detail(std::string_view(text).substr(first, next - first));
    at = next + 1;
  }
  return result;
}

std::uint64_t changed(container file, const std::function<void(transaction&)>& change) {
  transaction next = file.begin();
  change(next);
  const std::uint64_t generation = next.commit();
  file.close();
  return generation;
}

// Containers are never replaced, so "-f replaces it" is no advice.
void publish(unfinished_file& made, const std::string& file) {
  try {
    made.publish();
  } catch (const error& failure) {
    if (failure.code() != errc::already_exists) throw;
    throw error(errc::already_exists,
                fmt::format("'{}' has been made by another process meanwhile", file),
                {"run the command again: it then changes that container"});
  }
}

}  // namespace

std::uint64_t change_container(const std::string& file,
                               const std::function<void(transaction&)>& change) {
  if (std::optional<container> present = container::open_if_exists(file, open_mode::write))
    return changed(*std::move(present), change);
  // A new container is filled under another name, so that a failure leaves none behind.
  unfinished_file unfinished(file, existing_file::refuse);
  const std::string path = unfinished.path();  // it has none once it is published
  try {
    const std::uint64_t generation =
        changed(unfinished.create([&] { return container::create(path); }), change);
    publish(unfinished, file);
    return generation;
  } catch (const error& failure) {
    throw renamed(failure, path, file);
  }
}

std::uint64_t change_existing_container(const std::string& file,
                                        const std::function<void(transaction&)>& change) {
  return changed(container::open(file, open_mode::write), change);
}

}  // namespace shale::tools
