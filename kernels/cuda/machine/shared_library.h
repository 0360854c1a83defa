#pragma once

#include <string>
#include <utility>

#include "core/result.h"

namespace troupe::kernels::cuda {

/// A library that is looked for when the program runs, since a machine may do without it. It stays
/// until the process ends.
class SharedLibrary {
 public:
  /// An error says what to do where it is not found.
  static Result<SharedLibrary> open(const std::string& name);

  template <class Function>
  void find(const char* function, Function*& into) {
    into = reinterpret_cast<Function*>(address_of(function));
  }
  /// An error names the first function that was not found.
  Status has_all() const;

 private:
  SharedLibrary(std::string name, void* file) : name_(std::move(name)), file_(file) {}
  void* address_of(const char* function);

  std::string name_;
  void* file_;
  std::string lacks_;
};

}  // namespace troupe::kernels::cuda
