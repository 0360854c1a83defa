#include "kernels/cuda/cudnn/gpu.h"

#include "core/json.h"
#include "h200.h"
#include "kernels/cuda/cudnn/attention.h"
#include "kernels/cuda/cudnn/engines.h"
#include "kernels/cuda/cudnn/library.h"

namespace troupe::kernels::cudnn {
namespace {

Graph little_attention() {
  return attention_forward(
      {.shape = {.batch = 1, .length = 64, .heads = 2, .kv_heads = 2, .width = 32},
       .q_row = 192,
       .k_row = 192,
       .v_row = 192,
       .out_row = 64});
}

}  // namespace

TEST_CASE("cuDNN has all functions that we load", "[cudnn]") {
  CHECK(error_of(library()) == "");
  REQUIRE(library().ok());
  CHECK(library()->name().starts_with("cuDNN " + std::to_string(CUDNN_MAJOR) + "."));
}

TEST_CASE("the properties of a GPU decide which graphs are accepted", "[cudnn]") {
  auto properties = parse_json(h200_properties());
  REQUIRE(properties.ok());
  properties->set("deviceVer", 750);
  const auto turing = Gpu::described(to_json(*properties));
  REQUIRE(error_of(turing) == "");  // Has tensor cores of an earlier generation.
  CHECK(says(error_of(engines_for(little_attention(), *turing)), "no engine of cuDNN"));
}

TEST_CASE("invalid GPU properties are refused", "[cudnn]") {
  CHECK(says(error_of(Gpu::described("{}")), "properties of a GPU: "));
  CHECK(says(error_of(Gpu::described("not JSON")), "properties of a GPU: "));
}

TEST_CASE("the present GPU accepts attention", "[cudnn]") {
  const auto gpu = Gpu::here();
  if (!gpu) {
    WARN("skipped: " << gpu.error().text);
    return;
  }
  CHECK(error_of(plan_for(little_attention(), *gpu)) == "");
}

}  // namespace troupe::kernels::cudnn
