#pragma once

#include <string>
#include <utility>

#include "core/result.h"

namespace troupe::kernels::cuda {

/// A library that is loaded at run time, because some machines do without it. It stays loaded until
/// the process ends.
class SharedLibrary {
 public:
  /// Loads a library. An error says what to do if it is missing.
  static Result<SharedLibrary> open(const std::string& name);

  template <class Function>
  void find(const char* function, Function*& into) {
    into = reinterpret_cast<Function*>(address_of(function));
  }
  /// Returns an error that names the first missing function.
  Status has_all() const;

 private:
  SharedLibrary(std::string name, void* file) : name_(std::move(name)), file_(file) {}
  void* address_of(const char* function);

  std::string name_;
  void* file_;
  std::string lacks_;
};

}  // namespace troupe::kernels::cuda
