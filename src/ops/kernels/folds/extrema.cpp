// Reducers of minimum and maximum.
#include "ops/kernels/folds/extremum_folds.hpp"

namespace shale::ops::kernels::SHALE_KERNEL_ISA {
namespace {

template <class T, template <class, bool> class Fold>
void fill(kernel_table& table) {
  const auto value = [](const auto& state, double) { return state.value; };
  table.set(reduction::minimum, type_of<T>, reducer_for<Fold<T, false>, T>(value));
  table.set(reduction::maximum, type_of<T>, reducer_for<Fold<T, true>, T>(value));
}

}  // namespace

void fill_extrema(kernel_table& table) {
  for_types(integers{}, [&]<class T>(T) { fill<T, integer_extremum>(table); });
  for_types(type_list<half, brain, float, double>{},
            [&]<class T>(T) { fill<T, float_extremum>(table); });
  fill<boolean, integer_extremum>(table);
}

}  // namespace shale::ops::kernels::SHALE_KERNEL_ISA
