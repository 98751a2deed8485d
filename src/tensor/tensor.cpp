// The members of `tensor` that make tensors, read properties and elements, and copy. The members
// that make views are in tensor_views.cpp.
#include "shale/tensor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include "core/load_element.hpp"
#include "core/saturating.hpp"
#include "shale/error.hpp"
#include "tensor/copy.hpp"
#include "tensor/strided_pair.hpp"

namespace shale {

namespace {

std::size_t alignment_of(dtype type) {
  return kind(type) == dtype_kind::complex ? item_bytes(type) / 2 : item_bytes(type);
}

// The largest position, stride or difference of positions in a tensor.
index_t position_max(std::size_t item_bytes) {
  return (index_t{1} << 62) / static_cast<index_t>(item_bytes);
}

// Whether the byte positions of all elements, and the differences of two positions, fit 64 bits.
// The limit is below 2^63, so that sums of two such numbers do not overflow. An empty layout is
// checked as if its empty axes had one position.
bool byte_positions_fit(const layout& geometry, std::size_t item_bytes) {
  const index_t most = position_max(item_bytes);
  const auto within = [most](index_t value) { return value >= -most && value <= most; };
  index_t reach = 0;
  for (index_t axis = 0; axis < geometry.rank(); ++axis) {
    const index_t stride = geometry.strides()[axis];
    if (!within(stride)) return false;
    const auto span = checked_mul(stride < 0 ? -stride : stride,
                                  std::max<index_t>(geometry.shape()[axis] - 1, 0));
    const auto sum = span ? checked_add(reach, *span) : std::nullopt;
    if (!sum || !within(*sum)) return false;
    reach = *sum;
  }
  return within(geometry.offset());
}

// Replaces unused strides, those of axes with at most one position, by 1 if scaling them to bytes
// would overflow.
layout without_idle_strides(const layout& geometry, std::size_t item_bytes) {
  const index_t most = position_max(item_bytes);
  dims strides = geometry.strides();
  for (index_t axis = 0; axis < geometry.rank(); ++axis)
    if (geometry.shape()[axis] <= 1 && (strides[axis] < -most || strides[axis] > most))
      strides[axis] = 1;
  return strides == geometry.strides() ? geometry
                                       : layout(geometry.shape(), strides, geometry.offset());
}

void require_inside(const storage& bytes, dtype type, const layout& geometry) {
  const std::size_t item = item_bytes(type);
  if (!byte_positions_fit(geometry, item))
    throw error(errc::invalid_argument, "an element's position in bytes does not fit 64 bits",
                {fmt::format("shape {}, strides {}, offset {}, {}", to_string(geometry.shape()),
                             to_string(geometry.strides()), geometry.offset(), name(type))});
  const auto extent = geometry.extent();
  if (!extent) return;
  const auto held = static_cast<index_t>(bytes.size_bytes() / item);
  if (extent->first < 0 || extent->last >= held)
    throw error(errc::invalid_argument, "an element lies outside its storage",
                {fmt::format("shape {}, strides {} and offset {} reach positions {} to {}",
                             to_string(geometry.shape()), to_string(geometry.strides()),
                             geometry.offset(), extent->first, extent->last),
                 fmt::format("the storage holds {} elements of {} ({} bytes)", held, name(type),
                             bytes.size_bytes())});
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % alignment_of(type) != 0)
    throw error(errc::invalid_argument, "elements would be misaligned",
                {fmt::format("{} needs an address that is a multiple of {}", name(type),
                             alignment_of(type)),
                 "copy the bytes into a fresh tensor first"});
}

const layout& empty_layout() noexcept {
  static const layout rank_1(dims{0});
  return rank_1;
}

std::size_t bytes_for(const dims& shape, dtype type) {
  const auto bytes = checked_mul(element_count(shape), static_cast<index_t>(item_bytes(type)));
  if (!bytes)
    throw error(
        errc::invalid_argument, "a tensor has too many bytes",
        {fmt::format("shape {} of {} is beyond 2^63 - 1 bytes", to_string(shape), name(type))});
  return static_cast<std::size_t>(*bytes);
}

// Makes a storage of `bytes` that begins with the bytes of the old one. Throws if another handle
// refers to the old storage, or if the storage cannot grow.
storage larger(const storage& old, std::size_t bytes, const layout& wanted, dtype type) {
  const bool shared = old.kind() == storage_kind::heap && old.use_count() > 1;
  if (shared || old.kind() != storage_kind::heap || !old.writable())
    throw error(
        errc::invalid_argument, "a storage cannot grow that far",
        {fmt::format("shape {} of {} at offset {} needs {} bytes, and the storage can grow to {}",
                     to_string(wanted.shape()), name(type), wanted.offset(), bytes,
                     old.capacity_bytes()),
         std::string(shared ? "other handles refer to it: " : "") +
             "make the storage with a reserve, or copy into a new tensor"});
  storage made = storage::allocate(bytes);
  if (!old.empty()) std::memcpy(made.data(), old.data(), old.size_bytes());
  return made;
}

}  // namespace

// ---- making -------------------------------------------------------------------------------------

tensor::tensor() : dtype_(dtype::float32), layout_(empty_layout()) {}

// Moving a layout only copies it. The tensor that was moved from has no bytes any more, so it gets
// an empty layout.
tensor::tensor(tensor&& other) noexcept
    : storage_(std::move(other.storage_)),
      dtype_(other.dtype_),
      layout_(std::exchange(other.layout_, empty_layout())) {}

tensor& tensor::operator=(tensor&& other) noexcept {
  tensor moved(std::move(other));
  std::swap(storage_, moved.storage_);
  dtype_ = moved.dtype_;
  layout_ = moved.layout_;
  return *this;
}

tensor::tensor(shale::storage bytes, shale::dtype type, const shale::layout& geometry)
    : storage_(std::move(bytes)),
      dtype_(type),
      layout_(without_idle_strides(geometry, shale::item_bytes(type))) {
  require_inside(storage_, type, layout_);
}

tensor tensor::empty(const dims& shape, shale::dtype type, memory_pool* pool) {
  return tensor(storage::allocate(bytes_for(shape, type), pool), type, shale::layout(shape));
}

tensor tensor::zeros(const dims& shape, shale::dtype type, memory_pool* pool) {
  tensor result = empty(shape, type, pool);
  if (result.size() > 0) std::memset(result.data(), 0, result.size_bytes());
  return result;
}

tensor tensor::full(const dims& shape, const scalar& value, shale::dtype type, memory_pool* pool) {
  const tensor made = empty(shape, type, pool);
  visit(type, all_types{}, [&]<class T>(std::type_identity<T>) {
    const T element = value.to<T>();  // throws, also where nothing is filled
    if (made.size() > 0) std::memcpy(made.data(), &element, sizeof(T));
  });
  // Copy the filled part after itself, which doubles it each time.
  std::byte* const bytes = made.data();
  const std::size_t all = made.size_bytes();
  for (std::size_t done = made.item_bytes(); done < all; done *= 2)
    std::memcpy(bytes + done, bytes, std::min(done, all - done));
  return made;
}

tensor tensor::ones(const dims& shape, shale::dtype type, memory_pool* pool) {
  return full(shape, 1, type, pool);
}

tensor tensor::empty_like(const tensor& other, memory_pool* pool) {
  return empty(other.shape(), other.dtype(), pool);
}
tensor tensor::zeros_like(const tensor& other, memory_pool* pool) {
  return zeros(other.shape(), other.dtype(), pool);
}
tensor tensor::ones_like(const tensor& other, memory_pool* pool) {
  return ones(other.shape(), other.dtype(), pool);
}

void tensor::require_count(const dims& shape, std::size_t count) {
  if (static_cast<std::size_t>(element_count(shape)) != count)
    throw error(errc::invalid_argument, "a shape does not fit the elements",
                {fmt::format("got {} values, wanted {} for shape {}", count, element_count(shape),
                             to_string(shape))});
}

// ---- properties ---------------------------------------------------------------------------------

index_t tensor::shape(index_t axis) const { return shape()[normalize_axis(axis, rank())]; }

index_t tensor::stride(index_t axis) const { return strides()[normalize_axis(axis, rank())]; }

std::size_t tensor::size_bytes() const noexcept {
  return detail::saturating_mul(static_cast<std::uint64_t>(size()), item_bytes());
}

std::byte* tensor::data() const noexcept {
  if (layout_.empty()) return storage_.data();
  return storage_.data() + offset() * static_cast<index_t>(item_bytes());
}

bool tensor::is_set_to(const tensor& other) const noexcept {
  return dtype_ == other.dtype_ && layout_ == other.layout_ && writable() == other.writable() &&
         storage_.data() == other.storage_.data() &&
         (storage_.shares_owner_with(other.storage_) || (!storage_ && !other.storage_));
}

// ---- elements -----------------------------------------------------------------------------------

void tensor::require(shale::dtype type, index_t wanted_rank, bool writing) const {
  if (type != dtype_)
    throw error(errc::invalid_argument,
                fmt::format("the tensor has dtype {}, not {}", name(dtype_), name(type)),
                {"cast it, or use the type of its elements"});
  if (wanted_rank != any_rank && wanted_rank != rank())
    throw error(errc::invalid_argument, "the tensor has the wrong rank",
                {fmt::format("got shape {}, wanted rank {}", to_string(shape()), wanted_rank)});
  if (writing && !writable())
    throw error(errc::access_denied, "a read-only tensor cannot be written",
                {storage_.path().empty() ? std::string("its storage refuses writing")
                                         : fmt::format("file {}", storage_.path()),
                 "write into a clone, or ask for const elements"});
  if (writing && layout_.is_broadcast())
    throw error(errc::invalid_argument, "a broadcast tensor cannot be written",
                {fmt::format("shape {} with strides {}: several indices name one element",
                             to_string(shape()), to_string(strides())),
                 "write into a clone, or ask for const elements"});
  storage_.check();
}

void tensor::require_contiguous() const {
  if (!is_contiguous())
    throw error(errc::invalid_argument, "the tensor is not contiguous",
                {fmt::format("shape {} with strides {}", to_string(shape()), to_string(strides())),
                 "call `contiguous()` first, or visit the elements with `as`"});
}

scalar tensor::item() const {
  if (size() != 1)
    throw error(errc::invalid_argument, "item() needs a tensor with one element",
                {fmt::format("got shape {} with {} elements", to_string(shape()), size())});
  return at(dims::filled(rank(), 0));
}

scalar tensor::at(std::span<const index_t> index) const {
  const index_t position = layout_.position(index);
  const std::byte* address = storage_.data() + position * static_cast<index_t>(item_bytes());
  const scalar value = visit(dtype_, all_types{}, [address]<class T>(std::type_identity<T>) {
    return scalar(detail::load_element<T>(address));
  });
  storage_.check();
  return value;
}

void tensor::set(std::span<const index_t> index, const scalar& value) const {
  require(dtype_, any_rank, true);
  const index_t position = layout_.position(index);
  std::byte* to = storage_.data() + position * static_cast<index_t>(item_bytes());
  visit(dtype_, all_types{}, [&]<class T>(std::type_identity<T>) {
    const T element = value.to<T>();
    std::memcpy(to, &element, sizeof(T));
  });
  storage_.bump_version();
  storage_.check();
}

// ---- copies -------------------------------------------------------------------------------------

tensor tensor::clone(memory_pool* pool) const {
  tensor result = empty(shape(), dtype_, pool);
  detail::copy_serially(result, *this);
  storage_.check();
  return result;
}

tensor tensor::contiguous(memory_pool* pool) const { return is_contiguous() ? *this : clone(pool); }

tensor tensor::reshape(const dims& shape, memory_pool* pool) const {
  const auto viewed = layout_.view(shape);
  return viewed ? with_layout(*viewed) : clone(pool).view(shape);
}

// ---- geometry and comparison --------------------------------------------------------------------

void tensor::resize(const dims& shape) {
  bytes_for(shape, dtype_);  // throws if it is not a shape
  resize(shale::layout(shape, offset()));
}

void tensor::resize(const shale::layout& wanted) {
  if (const auto extent = wanted.extent(); extent && extent->first >= 0) {
    const auto elements = checked_add(extent->last, index_t{1});
    const auto bytes = elements ? checked_mul(*elements, static_cast<index_t>(item_bytes()))
                                : std::optional<index_t>();
    const auto needed =
        static_cast<std::size_t>(bytes.value_or(std::numeric_limits<index_t>::max()));
    if (needed > storage_.capacity_bytes()) {
      storage_ = larger(storage_, needed, wanted, dtype_);
    } else if (needed > storage_.size_bytes()) {
      storage_.grow(needed);
    }
  }
  *this = tensor(storage_, dtype_, wanted);
}

bool equal_bits(const tensor& a, const tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  const detail::strided_pair pairs(a, b);
  const auto inner = pairs.inner();
  const std::size_t item = a.item_bytes();
  const auto dense = static_cast<index_t>(item);
  const bool equal = pairs.for_each_outer(
      std::max<index_t>(pairs.rank() - 1, 0), [&](const std::byte* x, const std::byte* y) {
        if (inner.first_stride == dense && inner.second_stride == dense)
          return std::memcmp(x, y, static_cast<std::size_t>(inner.extent) * item) == 0;
        for (index_t i = 0; i < inner.extent; ++i)
          if (std::memcmp(x + i * inner.first_stride, y + i * inner.second_stride, item) != 0)
            return false;
        return true;
      });
  a.storage().check();
  b.storage().check();
  return equal;
}

}  // namespace shale
