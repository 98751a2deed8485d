// Uses every floor once: elements, an engine call, an expression, a container, an error.
#include <cstdio>
#include <shale/shale.hpp>

int main(int count, char** arguments) {
  using namespace shale;
  if (count != 2) return 2;
  const tensor x = tensor::of({1.0, 2.0, 3.0});
  apply([](double& e) { e *= 2; }, x);
  container file = container::create(arguments[1]);
  transaction change = file.begin();
  change.create("x", {.dtype = dtype::float64, .shape = {3}}).write(expr(x) + 1);
  change.commit();
  const double sum = eval(shale::sum(*file.latest().find("x"))).item().as<double>();
  try {
    file.latest().at("y");
    return 1;
  } catch (const error& failure) {
    if (failure.code() != errc::not_found) return 1;
  }
  std::printf("%g\n", sum);
  return sum == 15 ? 0 : 1;
}
