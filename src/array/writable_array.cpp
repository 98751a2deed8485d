#include <fmt/format.h>

#include "array/array_state.hpp"
#include "parallel/executor_state.hpp"
#include "shale/array.hpp"
#include "shale/error.hpp"
#include "shale/layout.hpp"

namespace shale {

std::string writable_array::implementation::frame(const char* doing) const {
  return fmt::format("{} {}", doing, owner->label(what->name));
}

tensor writable_array::implementation::dense() const {
  return tensor(owner->bytes_of(*what), what->record.dtype, layout(what->record.shape));
}

writable_array::writable_array(std::shared_ptr<implementation> made) noexcept
    : implementation_(std::move(made)) {}

const std::string& writable_array::name() const noexcept { return implementation_->what->name; }

dtype writable_array::dtype() const noexcept { return implementation_->what->record.dtype; }

const dims& writable_array::shape() const noexcept { return implementation_->what->record.shape; }

array_kind writable_array::kind() const noexcept {
  return implementation_->is_dense() ? array_kind::dense : array_kind::chunked;
}

const dims& writable_array::chunk_shape() const noexcept {
  const auto& record = implementation_->what->record;
  return record.is_dense() ? record.shape : record.chunked().chunk_shape;
}

tensor writable_array::as_tensor() const {
  const auto& self = *implementation_;
  return with_context([&] { return self.frame("map"); },
                      [&] {
                        self.require_writable();
                        if (!self.is_dense())
                          throw error(errc::invalid_argument, "a chunked array cannot be mapped",
                                      {"write regions or expressions into it"});
                        return self.dense();
                      });
}

void writable_array::write(const region& where, const tensor& values, executor* on) const {
  const auto& self = *implementation_;
  with_context([&] { return self.frame(("write " + to_string(where) + " of").c_str()); },
               [&] {
                 const auto running = self.owner->begin_write();
                 self.require_writable();
                 require_inside(where, shape());
                 const tensor fitted =
                     values.shape() == where.shape ? values : values.expand(where.shape);
                 if (!self.is_dense()) {
                   self.owner->tiles_of(*self.what)->write(where, fitted, parallel::choose(on));
                   return;
                 }
                 tensor into = self.dense();
                 for (index_t axis = 0; axis < where.shape.size(); ++axis)
                   into = into.narrow(axis, where.start[axis], where.shape[axis]);
                 eval_into(into, expr(fitted), on);
               });
}

void writable_array::write(const expr& values, executor* on) const {
  const auto& self = *implementation_;
  with_context([&] { return self.frame("write"); },
               [&] {
                 const auto running = self.owner->begin_write();
                 self.require_writable();
                 if (self.is_dense()) eval_into(self.dense(), values, on);
                 else eval_into(*self.owner->tiles_of(*self.what), values, on);
               });
}

std::shared_ptr<tile_source> writable_array::tiles() const {
  return implementation_->owner->tiles_of(*implementation_->what);
}

}  // namespace shale
