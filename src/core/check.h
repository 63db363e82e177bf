#pragma once
// PL_CHECK guards our own invariants: a failure is a bug in Plumbline, never a user's mistake.

namespace plumbline {
[[noreturn]] void check_failed(const char* expression, const char* file, int line);
}

#define PL_CHECK(condition)                                                      \
  do {                                                                           \
    if (!(condition)) ::plumbline::check_failed(#condition, __FILE__, __LINE__); \
  } while (false)
