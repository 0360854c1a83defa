#pragma once

#include <cublasLt.h>

#include <string>

#include "core/result.h"

namespace troupe::kernels::cublas_lt {

/// The functions of cuBLASLt that this program uses.
struct Library {
  decltype(&cublasLtGetVersion) version = nullptr;
  decltype(&cublasLtGetStatusString) text_of = nullptr;
  decltype(&cublasLtCreate) create = nullptr;
  decltype(&cublasLtDestroy) destroy = nullptr;
  decltype(&cublasLtMatmulDescCreate) create_operation = nullptr;
  decltype(&cublasLtMatmulDescDestroy) destroy_operation = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) set_operation = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) create_layout = nullptr;
  decltype(&cublasLtMatrixLayoutDestroy) destroy_layout = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) create_preference = nullptr;
  decltype(&cublasLtMatmulPreferenceDestroy) destroy_preference = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) set_preference = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) advise = nullptr;
  decltype(&cublasLtMatmul) multiply = nullptr;

  std::string name() const;  // "cuBLASLt 13.1.0"
};

/// Loads the library on the first call. Loading needs no driver; library objects do.
const Result<Library>& library();

/// Throws an error with the library's message if the call failed.
void check(cublasStatus_t outcome);

}  // namespace troupe::kernels::cublas_lt
