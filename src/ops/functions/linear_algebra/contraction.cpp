#include "ops/functions/linear_algebra/contraction.hpp"

#include <algorithm>

#include "core/widened.hpp"
#include "ops/linalg/products.hpp"
#include "shale/elementwise.hpp"
#include "shale/linalg.hpp"
#include "shale/reductions.hpp"

namespace shale::ops {

namespace {

dims joined(dims first, const dims& second) {
  for (const index_t entry : second) first.push_back(entry);
  return first;
}

index_t position_of(const dims& names, index_t name) {
  return std::find(names.begin(), names.end(), name) - names.begin();
}

index_t extent_of(const named_array& a, index_t name) {
  return a.values.shape(position_of(a.names, name));
}

dims extents_of(const named_array& a, const dims& names) {
  dims extents;
  for (const index_t name : names) extents.push_back(extent_of(a, name));
  return extents;
}

/// The names of two arrays, sorted by the role of their axes in the product.
struct axis_roles {
  dims batch;    // names that both arrays have, and that are kept
  dims inner;    // names that both arrays have, and that are summed
  dims rows;     // names of `a` alone
  dims columns;  // names of `b` alone

  axis_roles(const named_array& a, const named_array& b, const name_set& kept) {
    const name_set in_a = names_of(a), in_b = names_of(b);
    for (const index_t name : a.names) {
      const auto bit = static_cast<std::size_t>(name);
      (!in_b[bit] ? rows : kept[bit] ? batch : inner).push_back(name);
    }
    for (const index_t name : b.names)
      if (!in_a[static_cast<std::size_t>(name)]) columns.push_back(name);
  }

  dims result() const { return joined(joined(batch, rows), columns); }
};

/// The array with the axes `before` and `behind`, and `ones` axes of length 1 between them.
expr spread(const named_array& a, const dims& before, index_t ones, const dims& behind) {
  expr values = arranged(a, joined(before, behind));
  for (index_t k = 0; k < ones; ++k) values = values.expand_dims(before.size());
  return values;
}

/// The array as a batch of matrices: its named axes are merged into rows and columns.
expr matrices_of(const named_array& a, const dims& batch, const dims& rows, const dims& columns) {
  dims shape = extents_of(a, batch);
  shape.push_back(element_count(extents_of(a, rows)));
  shape.push_back(element_count(extents_of(a, columns)));
  return arranged(a, joined(joined(batch, rows), columns)).reshape(shape);
}

dtype wide_dtype(dtype type) {
  if (kind(type) == dtype_kind::floating) return dtype::float64;
  return kind(type) == dtype_kind::complex ? dtype::complex128 : type;
}

/// The array, summed in dtype `type` over the axes whose names are not kept. If all names are kept,
/// it is unchanged.
named_array summed_as(dtype type, const named_array& a, const name_set& kept) {
  dims axes, names;
  for (index_t axis = 0; axis < a.names.size(); ++axis) {
    if (kept[static_cast<std::size_t>(a.names[axis])]) names.push_back(a.names[axis]);
    else axes.push_back(axis);
  }
  return axes.empty() ? a : named_array{sum_in_dtype(astype(a.values, type), axes), names};
}

/// The sums of products, with the axes of `of.result()`.
expr product_of(const named_array& a, const named_array& b, const axis_roles& of) {
  if (of.inner.empty())
    return spread(a, joined(of.batch, of.rows), of.columns.size(), {}) *
           spread(b, of.batch, of.rows.size(), of.columns);
  if (of.rows.empty() && of.columns.empty()) {
    const dims names = joined(of.batch, of.inner);
    return sum_of_products(arranged(a, names), arranged(b, names), of.inner.size());
  }
  const expr product = matmul(matrices_of(a, of.batch, of.rows, of.inner),
                              matrices_of(b, of.batch, of.inner, of.columns));
  return product.reshape(
      joined(joined(extents_of(a, of.batch), extents_of(a, of.rows)), extents_of(b, of.columns)));
}

}  // namespace

name_set names_of(const named_array& a) {
  name_set names;
  for (const index_t name : a.names) names.set(static_cast<std::size_t>(name));
  return names;
}

expr arranged(const named_array& a, const dims& names) {
  dims axes;
  for (const index_t name : names) axes.push_back(position_of(a.names, name));
  return a.values.permute_dims(axes);
}

expr sum_in_dtype(const expr& a, const dims& axes) {
  if (axes.empty()) return a;
  return a.dtype() == dtype::boolean ? any(a, axes) : astype(sum(a, axes), a.dtype());
}

expr sum_of_products(const expr& a, const expr& b, index_t axes) {
  const dtype type = product_dtype(a.dtype(), b.dtype()), wide = wide_dtype(type);
  const expr products = astype(a, wide) * astype(b, wide);
  dims last;
  for (index_t k = 1; k <= axes; ++k) last.push_back(-k);
  return astype(sum_in_dtype(products, last), type);
}

named_array summed(const named_array& a, const name_set& kept) {
  return summed_as(a.values.dtype(), a, kept);
}

named_array contracted(const named_array& a, const named_array& b, const name_set& kept) {
  const dtype type = product_dtype(a.values.dtype(), b.values.dtype());
  // Sums of float16 and bfloat16 may exceed the range of these dtypes although the final result
  // does not.
  const named_array left = summed_as(detail::widened(a.values.dtype()), a, kept | names_of(b));
  const named_array right = summed_as(detail::widened(b.values.dtype()), b, kept | names_of(a));
  const axis_roles of(left, right, kept);
  return {astype(product_of(left, right, of), type), of.result()};
}

}  // namespace shale::ops
