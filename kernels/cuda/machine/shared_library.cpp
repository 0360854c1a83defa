#include "kernels/cuda/machine/shared_library.h"

#include <dlfcn.h>

namespace troupe::kernels::cuda {

Result<SharedLibrary> SharedLibrary::open(const std::string& name) {
  void* file = dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (file) return SharedLibrary(name, file);
  const char* said = dlerror();
  return Error{(said ? said : name + ": cannot be loaded") +
               "; install it, or name the folder that has it in LD_LIBRARY_PATH"};
}

void* SharedLibrary::address_of(const char* function) {
  void* address = dlsym(file_, function);
  if (!address && lacks_.empty()) lacks_ = function;
  return address;
}

Status SharedLibrary::has_all() const {
  if (!lacks_.empty()) return Error{name_ + ": has no " + lacks_ + "; install another version"};
  return Done{};
}

}  // namespace troupe::kernels::cuda
