// Requests to NVIDIA's libraries for each GPU. Tests of the simulated device.

#include "kernels/cuda/tensor_cores.h"

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "same.h"

namespace troupe::kernels::cuda {
namespace {

std::unique_ptr<TensorCores> open(Remark remark = [](const std::string&) {}) {
  auto cores = TensorCores::open(std::move(remark));
  REQUIRE(cores.ok());
  return std::move(*cores);
}

/// While it lives, a variable of the environment has a value.
class Variable {
 public:
  Variable(const char* key, const char* value) : key_(key) { setenv(key, value, 1); }
  ~Variable() { unsetenv(key_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* key_;
};

/// While it lives, the GPU has another compute capability.
struct Capability : Variable {
  explicit Capability(const char* text) : Variable("CUDA_ON_CORES_CAPABILITY", text) {}
};
/// While it lives, the program has kernels for some GPUs only.
struct Code : Variable {
  explicit Code(const char* names) : Variable("CUDA_ON_CORES_CODE", names) {}
};

std::unique_ptr<TensorCores> open_on(const char* capability) {
  const Capability changed(capability);
  return open();
}

TEST_CASE("a GPU that the kernels are not compiled for is refused when it is opened") {
  {
    const Capability turing("7");
    const auto refused = open_device(0);
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().text ==
          "GPU 0: found compute capability 7.0, wanted 8.0 or later (Ampere or newer); set "
          "train.device = \"cpu\"");
  }
  const Capability ampere("8");
  CHECK(open_device(0).ok());
}

TEST_CASE("a GPU is refused when it is opened if the program has no kernels for it") {
  const auto opens = [](const char* code, const char* capability) {
    const Code has(code);
    const Capability here(capability);
    return open_device(0).ok();
  };
  for (const char* capability : {"8", "8.6", "8.9", "9", "10", "10.3", "12"}) {
    CAPTURE(capability);
    // The default: other GPUs than Hopper use PTX.
    CHECK(opens("80-virtual 90-real", capability));
    CHECK(opens("90-real", capability) == (capability == std::string("9")));
  }
  CHECK(opens("86-real", "8.9"));
  CHECK_FALSE(opens("86-real", "8"));
  CHECK(opens("90-virtual", "12"));
  CHECK_FALSE(opens("90-virtual", "8.9"));

  const Code hopper("90-real");
  const Capability ampere("8.6");
  const auto refused = open_device(0);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().text ==
        "GPU 0: found compute capability 8.6 and no kernels for it in this program (CUDA: there is "
        "no code for this device), which has code for the cores; build it with "
        "-DTROUPE_CUDA_CARDS=86, or use a newer driver, or set train.device = \"cpu\"");
}

TEST_CASE("gelu is computed within products only on GPUs that do it in one kernel") {
  using cublas_lt::EpilogueKind;
  alignas(64) static BFloat16 numbers[5][64];
  const DeviceProduct<BFloat16> product{
      .rows = 8, .columns = 8, .depth = 8, .a = {numbers[0], 8, 1}, .b = {numbers[1], 8, 1}};
  const auto can = [&](TensorCores& cores, EpilogueKind kind) {
    const auto* bias = kind == EpilogueKind::gelu_slope ? nullptr : numbers[2];
    const auto* pre = kind == EpilogueKind::rounded ? nullptr : numbers[3];
    return cores.can_multiply(product,
                              {.kind = kind, .bias = bias, .pre = pre, .result = numbers[4]});
  };
  for (const char* capability : {"8", "9", "10", "12"}) {
    CAPTURE(capability);
    const auto cores = open_on(capability);
    const bool fuses = capability == std::string("9") || capability == std::string("10");
    CHECK(can(*cores, EpilogueKind::gelu) == fuses);
    CHECK(can(*cores, EpilogueKind::gelu_slope) == fuses);
    CHECK(can(*cores, EpilogueKind::rounded));
  }
}

cudnn::AttentionProblem attention(std::int64_t length, Mask mask, std::int64_t width = 8) {
  return {.shape = {1, length, 1, 1, width, mask},
          .q_row = width,
          .k_row = width,
          .v_row = width,
          .out_row = width};
}

TEST_CASE("cuDNN is not used for a backward pass of attention that it computes wrongly") {
  const auto cores = open();
  const auto goes_back = [&](std::int64_t length, Mask mask) {
    CHECK(cores->attention_forward(attention(length, mask)) != nullptr);
    return cores->attention_backward(attention(length, mask)) != nullptr;
  };
  for (const std::int64_t length : {2, 63, 65, 128, 197, 256}) {
    CAPTURE(length);
    CHECK(goes_back(length, Mask::full));
    CHECK(goes_back(length, Mask::causal));
  }
  for (const std::int64_t length : {64, 192, 320}) {
    CAPTURE(length);
    CHECK(!goes_back(length, Mask::full));
    CHECK(goes_back(length, Mask::causal));
  }
  CHECK(!goes_back(1, Mask::full));
  CHECK(!goes_back(1, Mask::causal));
}

TEST_CASE("a computation that cuDNN does not support is reported once") {
  std::vector<std::string> told;
  const auto cores = open([&](const std::string& remark) { told.push_back(remark); });
  for (int time = 0; time < 2; ++time) {
    (void)cores->attention_forward(attention(19, Mask::causal, 6));
    (void)cores->attention_forward(attention(19, Mask::causal));
    (void)cores->attention_backward(attention(1, Mask::causal));
  }
  CHECK(told ==
        std::vector<std::string>{
            "in place of cuDNN a slower kernel in fp32 computes attention over 19 positions, in "
            "heads of 6 numbers in bf16: the width of heads is no multiple of 8",
            "in place of cuDNN a slower kernel in fp32 computes the way back of attention over 1 "
            "positions, in heads of 8 numbers in bf16: cuDNN goes wrong there"});
}

}  // namespace
}  // namespace troupe::kernels::cuda
