#pragma once
// exp and log with the same bits on every machine: plain IEEE double arithmetic, no libm, no fused operations.
// Results feed compared bytes (arrivals, heat, leakage), which the C library's versions may not.

namespace plumbline {

/// Natural logarithm for finite x > 0; error below 2 ulp (tested against libm). x <= 0 gives -infinity or NaN.
[[nodiscard]] double exact_log(double x);
/// Exponential; error below 2 ulp (tested against libm); overflows to infinity, underflows to zero.
[[nodiscard]] double exact_exp(double x);

}  // namespace plumbline
