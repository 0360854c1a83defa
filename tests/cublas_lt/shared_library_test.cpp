#include "kernels/cuda/machine/shared_library.h"

#include "catch.h"

namespace troupe::kernels::cuda {

TEST_CASE("an error about a missing library names it and says what to do", "[cublas_lt]") {
  const auto found = SharedLibrary::open("libtroupe-has-none.so.7");
  REQUIRE(!found.ok());
  CHECK(found.error().text.starts_with("libtroupe-has-none.so.7: "));
  CHECK(found.error().text.ends_with(
      "; install it, or name the folder that has it in LD_LIBRARY_PATH"));
}

TEST_CASE("a library that lacks a function is rejected", "[cublas_lt]") {
  auto found = SharedLibrary::open("libm.so.6");
  REQUIRE(found.ok());
  double (*sine)(double) = nullptr;
  found->find("sin", sine);
  REQUIRE(found->has_all().ok());
  CHECK(sine(0.0) == 0.0);
  found->find("cublasLtMatmul", sine);
  found->find("cublasLtCreate", sine);
  REQUIRE(!found->has_all().ok());
  CHECK(found->has_all().error().text ==
        "libm.so.6: has no cublasLtMatmul; install another version");
}

}  // namespace troupe::kernels::cuda
