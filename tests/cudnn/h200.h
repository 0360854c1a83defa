#pragma once

#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "catch.h"
#include "kernels/cuda/cudnn/engines.h"
#include "kernels/cuda/cudnn/gpu.h"

namespace troupe::kernels::cudnn {

/// Returns the properties of an H200 in JSON, so that no GPU is needed.
inline std::string h200_properties() {
  std::ifstream file(TROUPE_TEST_DATA "/data/h200.json");
  return {std::istreambuf_iterator<char>(file), {}};
}

inline Gpu h200() {
  auto gpu = Gpu::described(h200_properties());
  INFO((gpu ? "" : gpu.error().text));
  REQUIRE(gpu.ok());
  return std::move(*gpu);
}

/// Returns the error; empty on success.
template <class T>
std::string error_of(const Result<T>& result) {
  return result ? "" : result.error().text;
}

/// Returns whether an error contains these words, and shows the error if the test fails.
inline bool says(const std::string& error, const std::string& words) {
  UNSCOPED_INFO("the error: " << error);
  return error.find(words) != std::string::npos;
}

/// Returns the error. Also empty if only a driver was missing, which loads the kernels that cuDNN
/// has made.
inline std::string refusal_of(const Result<Plan>& plan) {
  const std::string error = error_of(plan);
  return error.find("cuLibraryLoadData") == std::string::npos ? error : "";
}

}  // namespace troupe::kernels::cudnn
