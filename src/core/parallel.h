#pragma once
// parallel_for: results are independent of the thread count because each index writes only its own slot.
#include <cstddef>
#include <functional>

namespace plumbline {

/// Calls body(i) for every i in [0, count) on up to `threads` threads (0: as many as the machine has).
/// The first exception, by index, is rethrown after all threads have ended.
void parallel_for(std::size_t count, unsigned threads, const std::function<void(std::size_t)>& body);

}  // namespace plumbline
