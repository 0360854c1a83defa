#pragma once

#include <string_view>

#include "core/result.h"
#include "kernels/cuda/cudnn/descriptor.h"

namespace troupe::kernels::cudnn {

/// A GPU that graphs are made for.
class Gpu {
 public:
  /// One that may well be elsewhere, by its properties in JSON, with cuDNN's names for them.
  static Result<Gpu> described(std::string_view properties);
  /// One of this process, by its number.
  static Result<Gpu> here(int number);

  const Descriptor& properties() const { return properties_; }

 private:
  Gpu();

  Descriptor properties_;
};

}  // namespace troupe::kernels::cudnn
