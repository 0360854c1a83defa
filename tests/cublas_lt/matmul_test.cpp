// cuBLASLt's answers without a GPU. A handle, and so an algorithm, needs a driver.

#include "kernels/cuda/cublas_lt/matmul.h"

#include "catch.h"

namespace troupe::kernels::cublas_lt {
namespace {

std::string error_of(const Result<Library>& result) { return result ? "" : result.error().text; }

/// Returns y = x w, where `w` is stored by row or by column.
template <class Number = BFloat16>
DeviceProduct<Number> product(std::int64_t rows, std::int64_t depth, std::int64_t columns) {
  alignas(256) static Number numbers[1];
  alignas(256) static float results[32];
  return {.rows = rows,
          .columns = columns,
          .depth = depth,
          .a = {numbers, depth, 1},
          .b = {numbers, columns, 1},
          .c = results,
          .c_stride = columns};
}

template <class Number>
Epilogue<Number> epilogue(EpilogueKind kind) {
  alignas(256) static Number numbers[3][128];
  alignas(256) static float sums[64];
  if (!takes_place_of_c(kind)) return {.kind = kind, .sums = sums};
  return {.kind = kind,
          .bias = numbers[0],
          .pre = has_gelu(kind) ? numbers[1] : nullptr,
          .result = numbers[2]};
}

}  // namespace

TEST_CASE("cuBLASLt has all functions that we load", "[cublas_lt]") {
  CHECK(error_of(library()) == "");
  REQUIRE(library().ok());
  INFO(library()->name());
  CHECK(library()->name().starts_with("cuBLASLt " + std::to_string(CUBLAS_VER_MAJOR) + "."));
  CHECK(std::string(library()->text_of(CUBLAS_STATUS_SUCCESS)) == "success");
}

TEMPLATE_TEST_CASE("cuBLASLt accepts our descriptors", "[cublas_lt]", float, Float16, BFloat16) {
  REQUIRE(library().ok());
  auto forward = product<TestType>(300, 64, 48);
  CHECK_NOTHROW(Matmul(Form::of(forward)));
  forward.start = forward.c;  // A single row.
  CHECK_NOTHROW(Matmul(Form::of(forward)));
  forward.start_stride = forward.c_stride;  // Accumulates onto its own result.
  CHECK_NOTHROW(Matmul(Form::of(forward)));
  auto back = product<TestType>(300, 48, 64);
  back.b = {back.b.data, 1, 48};
  CHECK_NOTHROW(Matmul(Form::of(back)));
}

TEMPLATE_TEST_CASE("cuBLASLt accepts our descriptors of epilogues", "[cublas_lt]", Float16,
                   BFloat16) {
  REQUIRE(library().ok());
  const auto forward = product<TestType>(300, 64, 48);
  auto back = product<TestType>(300, 48, 64);
  back.b = {back.b.data, 1, 48};
  for (const auto kind : {EpilogueKind::rounded, EpilogueKind::gelu, EpilogueKind::gelu_slope}) {
    CHECK_NOTHROW(Matmul(Form::of(forward, epilogue<TestType>(kind))));
    CHECK_NOTHROW(Matmul(Form::of(back, epilogue<TestType>(kind))));
  }
  auto gradient = product<TestType>(64, 300, 48);
  gradient.a = {gradient.a.data, 1, 64};
  for (const auto kind : {EpilogueKind::rows_of_a, EpilogueKind::columns_of_b}) {
    CHECK_NOTHROW(Matmul(Form::of(gradient, epilogue<TestType>(kind))));
    auto added = gradient;
    added.start = added.c;
    added.start_stride = added.c_stride;
    CHECK_NOTHROW(Matmul(Form::of(added, epilogue<TestType>(kind))));
  }
}

TEST_CASE("gelu in a product needs whole rows at aligned addresses", "[cublas_lt]") {
  const auto gelu = epilogue<BFloat16>(EpilogueKind::gelu);
  CHECK(Form::of(product(3, 5, 48), gelu).is_possible());
  CHECK(!Form::of(product(3, 5, 47), gelu).is_possible());
  CHECK(Form::of(product(3, 5, 47)).is_possible());
  auto elsewhere = gelu;
  ++elsewhere.pre;
  CHECK(!Form::of(product(3, 5, 48), elsewhere).is_possible());
}

TEST_CASE("a form describes types, alignment and order but no address", "[cublas_lt]") {
  const auto whole = product(8, 8, 8);
  auto odd = whole;
  odd.c += 1;
  CHECK(Form::of(whole).c_alignment == 64);
  CHECK(Form::of(odd).c_alignment == sizeof(float));
  auto elsewhere = whole;  // The absolute address does not matter.
  elsewhere.c += 16;
  CHECK(Form::of(whole) == Form::of(elsewhere));
  CHECK(Form::of(whole) != Form::of(odd));
  CHECK(Form::of(whole) != Form::of(product<Float16>(8, 8, 8)));
  CHECK(Form::of(whole) != Form::of(product<float>(8, 8, 8)));
  // A single column is stored by row and by column alike; the order that fits the stride is used.
  auto column = product(5, 7, 1);
  column.b = {column.b.data, 1, 1};
  CHECK(Form::of(column).b.order == Form::Factor::Order::by_row);
  auto row = product(5, 1, 7);
  row.b = {row.b.data, 1, 1};
  CHECK(Form::of(row).b.order == Form::Factor::Order::by_column);
}

TEST_CASE("a handle finds algorithms with a driver and fails with a reason without one",
          "[cublas_lt]") {
  REQUIRE(library().ok());
  cublasLtHandle_t handle = nullptr;
  const auto outcome = library()->create(&handle);
  if (outcome == CUBLAS_STATUS_NOT_INITIALIZED) {
    CHECK_THROWS_WITH(check(outcome), "cuBLASLt: the library was not initialized");
    return;
  }
  REQUIRE(outcome == CUBLAS_STATUS_SUCCESS);
  const auto has_algorithm = [&](const auto& of, const auto& with) {
    Matmul matmul(Form::of(of, with));
    return matmul.choose_algorithm(handle, Places::of(of, with));
  };
  for (const std::int64_t columns : {48, 47, 1}) {
    CHECK(has_algorithm(product<float>(304, 64, columns), Epilogue<float>{}));
    CHECK(has_algorithm(product<Float16>(304, 64, columns), Epilogue<Float16>{}));
    CHECK(has_algorithm(product<BFloat16>(304, 64, columns), Epilogue<BFloat16>{}));
  }
  // Without a library algorithm our own kernel runs after the product.
  for (const auto kind : {EpilogueKind::rounded, EpilogueKind::gelu, EpilogueKind::gelu_slope,
                          EpilogueKind::rows_of_a, EpilogueKind::columns_of_b}) {
    if (!has_algorithm(product<Float16>(304, 64, 48), epilogue<Float16>(kind)))
      WARN("cuBLASLt has no algorithm in fp16 for epilogue " << static_cast<int>(kind));
    if (!has_algorithm(product<BFloat16>(304, 64, 48), epilogue<BFloat16>(kind)))
      WARN("cuBLASLt has no algorithm in bf16 for epilogue " << static_cast<int>(kind));
  }
  CHECK(library()->destroy(handle) == CUBLAS_STATUS_SUCCESS);
}

}  // namespace troupe::kernels::cublas_lt
