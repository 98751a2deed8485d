#include <fmt/format.h>

#include <cstring>
#include <limits>
#include <set>
#include <utility>

#include "core/allocating.hpp"
#include "core/held.hpp"
#include "core/printable.hpp"
#include "interop/elements.hpp"
#include "interop/output_file.hpp"
#include "interop/t7/types.hpp"
#include "interop/zip_reader.hpp"
#include "shale/executor.hpp"
#include "shale/t7.hpp"

namespace shale {

namespace interop::t7 {

namespace {

// The widest element, so that every storage can be mapped.
constexpr std::uint64_t alignment = 8;

constexpr std::string_view version = "V 1";

// The name of Torch's element type.
std::string_view type_name(dtype type) {
  for (const element_type& known : element_types)
    if (known.dtype == type) return known.name;
  std::string all;
  for (const element_type& known : element_types)
    all += (all.empty() ? "" : ", ") + std::string(shale::name(known.dtype));
  throw error(errc::unsupported, fmt::format("Torch has no tensors of {}", shale::name(type)),
              {"convert to one of " + all});
}

}  // namespace

// Writes values one after the other.
class emitter {
 public:
  emitter(const std::string& path, existing_file existing) : to_(path, existing) {}

  void put_table(std::int32_t count) {
    put(type_id::table);
    put(next_++);
    table_count_ = to_.position();
    put(count);
  }

  // Corrects the number of entries of the table that was begun.
  void set_table_count(std::int32_t count) {
    to_.overwrite(table_count_, std::as_bytes(std::span(&count, 1)));
  }

  void put_string(std::string_view text) {
    put(static_cast<std::int32_t>(text.size()));
    to_.append(text);
  }

  void put_key(std::string_view key) {
    put(type_id::string);
    put_string(key);
  }

  void put_tensor(const tensor& values, executor& on) {
    const std::string_view type = type_name(values.dtype());
    const dims shape = values.rank() == 0 ? dims{1} : values.shape();
    const std::string storage = class_name(type, storage_suffix);
    begin_object(version, class_name(type, tensor_suffix));
    put(static_cast<std::int32_t>(shape.size()));
    for (const index_t extent : shape) put(extent);
    for (const index_t stride : row_major_strides(shape)) put(stride);
    put(std::int64_t{1});  // the offset counts from 1
    begin_object(aligning_version(storage), storage);
    put(static_cast<std::int64_t>(values.size()));
    stream_elements(values, std::endian::little, on,
                    [&](std::span<const std::byte> piece) { to_.append(piece); });
  }

  void publish() { to_.publish(); }

 private:
  template <class Number>
  void put(Number number) {
    to_.append(std::as_bytes(std::span(&number, 1)));
  }

  static std::string class_name(std::string_view type, std::string_view ending) {
    return std::string(class_prefix) + std::string(type) + std::string(ending);
  }

  void begin_object(std::string_view with_version, std::string_view class_of) {
    put(type_id::torch);
    put(next_++);
    put_string(with_version);
    put_string(class_of);
  }

  // "V 1" with zeros before the 1: as many as make the elements of the storage begin at a multiple
  // of the alignment (decision 0179). The elements follow the type, the index, two strings with
  // their lengths, and the number of elements.
  std::string aligning_version(std::string_view storage_class) const {
    constexpr std::size_t numbers = 4 * sizeof(std::int32_t) + sizeof(std::int64_t);
    const std::uint64_t end = to_.position() + numbers + version.size() + storage_class.size();
    std::string aligned(version);
    aligned.insert(aligned.size() - 1, static_cast<std::size_t>((0 - end) % alignment), '0');
    return aligned;
  }

  output_file to_;
  std::int32_t next_ = 1;  // the index of the next object
  std::uint64_t table_count_ = 0;
};

}  // namespace interop::t7

namespace {

// Throws if a tensor cannot have the name, or if one of `taken` has it.
template <class Names>
void require_t7_name(std::string_view name, const Names& taken) {
  constexpr std::size_t longest = 65'000;  // as in archives
  const char* wrong = name.empty()                   ? "it is empty"
                      : name.size() > longest        ? "it is longer than 65,000 bytes"
                      : !interop::is_utf8_name(name) ? "it is not UTF-8 without zero bytes"
                      : taken.count(name) != 0       ? "it occurs twice"
                                                     : nullptr;
  if (wrong)
    throw error(errc::invalid_argument, "not a name for a tensor",
                {"got " + detail::in_quotes(name), wrong});
}

// An `int` counts objects, and each tensor takes at most three.
constexpr std::size_t tensors_max = std::numeric_limits<std::int32_t>::max() / 3;

}  // namespace

void require_t7_dtype(dtype type) {
  detail::allocating([&] { interop::t7::type_name(type); });
}

struct t7_writer::implementation {
  implementation(const std::string& path, existing_file existing)
      : file(path, existing), target(path) {
    file.put_table(0);
  }

  // Throws if nothing can be added to the file any more.
  void require_open() const {
    if (state == progress::going_on) return;
    throw error(errc::invalid_argument,
                state == progress::finished ? "the file is finished already"
                                            : "a tensor of the file could not be written",
                {"file " + target, "begin another file"});
  }

  enum class progress : std::uint8_t { going_on, failed, finished };

  interop::t7::emitter file;
  std::string target;
  std::set<std::string, std::less<>> names;
  progress state = progress::going_on;
};

t7_writer::t7_writer(const std::string& path, const t7_write_options& options) {
  detail::reporting(
      [&] { return "write " + path; },
      [&] { implementation_ = std::make_unique<implementation>(path, options.existing); });
}

t7_writer::~t7_writer() = default;
t7_writer::t7_writer(t7_writer&&) noexcept = default;
t7_writer& t7_writer::operator=(t7_writer&&) noexcept = default;

void t7_writer::add(std::string_view name, const tensor& values) {
  implementation& self = detail::held(implementation_, "t7_writer");
  detail::reporting(
      [&] { return fmt::format("write {} of {}", detail::in_quotes(name), self.target); },
      [&] {
        self.require_open();
        require_t7_name(name, self.names);
        require_t7_dtype(values.dtype());
        if (self.names.size() == tensors_max)
          throw error(errc::invalid_argument, "more tensors than a file can count",
                      {fmt::format("it takes {}", tensors_max)});
        self.names.emplace(name);
        self.state = implementation::progress::failed;  // until the tensor is whole
        self.file.put_key(name);
        self.file.put_tensor(values, executor::current());
        self.state = implementation::progress::going_on;
      });
}

void t7_writer::finish() {
  implementation& self = detail::held(implementation_, "t7_writer");
  detail::reporting([&] { return "write " + self.target; },
                    [&] {
                      self.require_open();
                      self.state = implementation::progress::finished;
                      self.file.set_table_count(static_cast<std::int32_t>(self.names.size()));
                      self.file.publish();
                    });
}

void write_t7(const std::string& path, const tensor& values, const t7_write_options& options) {
  detail::reporting([&] { return "write " + path; },
                    [&] {
                      require_t7_dtype(values.dtype());
                      interop::t7::emitter file(path, options.existing);
                      file.put_tensor(values, executor::current());
                      file.publish();
                    });
}

void write_t7(const std::string& path, std::span<const std::pair<std::string, tensor>> members,
              const t7_write_options& options) {
  detail::reporting([&] { return "write " + path; },
                    [&] {
                      std::set<std::string_view> names;
                      for (const auto& [name, values] : members) {
                        require_t7_name(name, names);
                        names.insert(name);
                      }
                    });
  t7_writer writer(path, options);
  for (const auto& [name, values] : members) writer.add(name, values);
  writer.finish();
}

}  // namespace shale
