#include "kernels/cuda/cublas_lt/library.h"

#include "kernels/cuda/machine/shared_library.h"

namespace troupe::kernels::cublas_lt {
namespace {

// The ABI depends on the headers' major version.
const std::string file_name = "libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR);

Result<Library> load() {
  auto file = cuda::SharedLibrary::open(file_name);
  if (!file) return file.error();
  Library all;
  file->find("cublasLtGetVersion", all.version);
  file->find("cublasLtGetStatusString", all.text_of);
  file->find("cublasLtCreate", all.create);
  file->find("cublasLtDestroy", all.destroy);
  file->find("cublasLtMatmulDescCreate", all.create_operation);
  file->find("cublasLtMatmulDescDestroy", all.destroy_operation);
  file->find("cublasLtMatmulDescSetAttribute", all.set_operation);
  file->find("cublasLtMatrixLayoutCreate", all.create_layout);
  file->find("cublasLtMatrixLayoutDestroy", all.destroy_layout);
  file->find("cublasLtMatmulPreferenceCreate", all.create_preference);
  file->find("cublasLtMatmulPreferenceDestroy", all.destroy_preference);
  file->find("cublasLtMatmulPreferenceSetAttribute", all.set_preference);
  file->find("cublasLtMatmulAlgoGetHeuristic", all.advise);
  file->find("cublasLtMatmul", all.multiply);
  if (auto complete = file->has_all(); !complete) return complete.error();
  return all;
}

}  // namespace

const Result<Library>& library() {
  static const Result<Library> loaded = load();
  return loaded;
}

}  // namespace troupe::kernels::cublas_lt
