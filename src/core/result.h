#pragma once
// Result<T>: a value or the diagnostics that say why there is none.
#include <type_traits>
#include <utility>
#include <variant>

#include "core/check.h"
#include "core/diagnostic.h"

namespace plumbline {

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT: implicit by design
  Result(Diagnostic error) : state_(std::in_place_index<1>, Diagnostics{std::move(error)}) {}  // NOLINT
  Result(Diagnostics errors) : state_(std::in_place_index<1>, std::move(errors)) {             // NOLINT
    PL_CHECK(!std::get<1>(state_).empty());
  }

  [[nodiscard]] bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  [[nodiscard]] T& value() & {
    PL_CHECK(ok());
    return std::get<0>(state_);
  }
  [[nodiscard]] const T& value() const& {
    PL_CHECK(ok());
    return std::get<0>(state_);
  }
  [[nodiscard]] T&& value() && {
    PL_CHECK(ok());
    return std::get<0>(std::move(state_));
  }
  [[nodiscard]] T& operator*() & { return value(); }
  [[nodiscard]] const T& operator*() const& { return value(); }
  [[nodiscard]] T* operator->() { return &value(); }
  [[nodiscard]] const T* operator->() const { return &value(); }

  [[nodiscard]] const Diagnostics& errors() const {
    PL_CHECK(!ok());
    return std::get<1>(state_);
  }

 private:
  std::variant<T, Diagnostics> state_;
};

/// For steps that make nothing.
struct Done {};
using Status = Result<Done>;

}  // namespace plumbline

/// Assigns the value of a Result-returning expression to `target`, or returns its diagnostics.
#define PL_CONCAT_INNER(a, b) a##b
#define PL_CONCAT(a, b) PL_CONCAT_INNER(a, b)
#define PL_TRY(target, expression) PL_TRY_IMPL(target, expression, PL_CONCAT(pl_result_, __LINE__))
#define PL_TRY_IMPL(target, expression, name) \
  auto name = (expression);                   \
  if (!name.ok()) return name.errors();       \
  target = std::move(name).value()
#define PL_TRY_STATUS(expression)                                                  \
  do {                                                                             \
    if (auto pl_status = (expression); !pl_status.ok()) return pl_status.errors(); \
  } while (false)
