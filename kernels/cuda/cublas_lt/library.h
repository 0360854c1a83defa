#pragma once

#include <cublasLt.h>

#include <string>

#include "core/result.h"

namespace troupe::kernels::cublas_lt {

/// The functions of cuBLASLt that are used here.
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

/// Looked for once. It needs no driver; what it creates does.
const Result<Library>& library();

/// Throws what went wrong, in the words of the library.
void check(cublasStatus_t outcome);

}  // namespace troupe::kernels::cublas_lt
