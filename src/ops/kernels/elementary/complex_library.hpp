// Functions of complex numbers for single lanes of vectors. They are compiled for the baseline.
#pragma once

namespace shale::ops::kernels {

/// Replaces the real and the imaginary part of a number by those of its exponential.
void exponential_by_library(float (&number)[2]) noexcept;
void exponential_by_library(double (&number)[2]) noexcept;

}  // namespace shale::ops::kernels
