// Checks that cuDNN has engines for our attention graphs on an H200. No GPU is used.

#include "kernels/cuda/cudnn/attention.h"

#include <string>

#include "h200.h"
#include "kernels/cuda/cudnn/engines.h"

namespace troupe::kernels::cudnn {
namespace {

/// Returns a problem with q, k and v side by side in one row, as in
/// models/layers/attention/self_attention.h and projected_attention.h.
AttentionProblem side_by_side(const AttentionShape& shape) {
  const std::int64_t row = (shape.heads + 2 * shape.kv_heads) * shape.width;
  return {.shape = shape,
          .q_row = row,
          .k_row = row,
          .v_row = row,
          .out_row = shape.heads * shape.width};
}

AttentionProblem gpt_small(Mask mask = Mask::causal) {
  return side_by_side(
      {.batch = 16, .length = 1024, .heads = 12, .kv_heads = 12, .width = 64, .mask = mask});
}

template <class Body>
void for_each_shape(Body body) {
  for (const std::int64_t length : {17, 64, 100, 128, 197, 256, 512, 1024, 2048})
    for (const std::int64_t width : {32, 64, 80, 96, 128})
      for (const Mask mask : {Mask::full, Mask::causal}) {
        INFO("length " << length << ", width " << width
                       << (mask == Mask::causal ? ", causal" : ", full"));
        body(side_by_side({.batch = 4,
                           .length = length,
                           .heads = 12,
                           .kv_heads = 12,
                           .width = width,
                           .mask = mask}));
      }
}

}  // namespace

TEST_CASE("graphs of attention have as many operations as cuDNN's engines support", "[cudnn]") {
  const auto operations = [](const Graph& graph) { return graph.operations().size(); };
  CHECK(operations(attention_forward(gpt_small(Mask::causal))) == 14);
  CHECK(operations(attention_forward(gpt_small(Mask::full))) == 10);
  CHECK(operations(attention_backward(gpt_small(Mask::causal), Sums::as_they_come)) == 22);
  CHECK(operations(attention_backward(gpt_small(Mask::causal), Sums::in_order)) == 21);
  CHECK(operations(attention_backward(gpt_small(Mask::full), Sums::as_they_come)) == 18);
  CHECK(operations(attention_backward(gpt_small(Mask::full), Sums::in_order)) == 17);
}

TEST_CASE("cuDNN accepts attention forward for lengths 17 to 2048 and widths 32 to 128",
          "[cudnn]") {
  const Gpu gpu = h200();
  for_each_shape([&](const AttentionProblem& problem) {
    CHECK(error_of(engines_for(attention_forward(problem), gpu)) == "");
  });
}

TEST_CASE("cuDNN accepts attention backward for lengths 17 to 2048 and widths 32 to 128",
          "[cudnn]") {
  const Gpu gpu = h200();
  for_each_shape([&](const AttentionProblem& problem) {
    CHECK(error_of(engines_for(attention_backward(problem, Sums::as_they_come), gpu)) == "");
    CHECK(error_of(engines_for(attention_backward(problem, Sums::in_order), gpu)) == "");
  });
}

TEST_CASE("cuDNN accepts attention with several heads of queries for each head of keys",
          "[cudnn]") {
  const Gpu gpu = h200();
  for (const std::int64_t kv_heads : {1, 2, 4}) {
    INFO(kv_heads << " heads of keys for 8 of queries");
    const auto problem =
        side_by_side({.batch = 4, .length = 256, .heads = 8, .kv_heads = kv_heads, .width = 64});
    CHECK(error_of(engines_for(attention_forward(problem), gpu)) == "");
    CHECK(error_of(engines_for(attention_backward(problem, Sums::as_they_come), gpu)) == "");
    CHECK(error_of(engines_for(attention_backward(problem, Sums::in_order), gpu)) == "");
  }
}

TEST_CASE("cuDNN accepts attention in fp16 as in bf16", "[cudnn]") {
  const Gpu gpu = h200();
  for (const std::int64_t length : {17, 256, 1024})
    for (const std::int64_t kv_heads : {4, 12})
      for (const Mask mask : {Mask::full, Mask::causal}) {
        INFO("length " << length << ", " << kv_heads << " heads of keys");
        auto problem = side_by_side({.batch = 4,
                                     .length = length,
                                     .heads = 12,
                                     .kv_heads = kv_heads,
                                     .width = 64,
                                     .mask = mask});
        problem.element = Element::f16;
        CHECK(error_of(engines_for(attention_forward(problem), gpu)) == "");
        CHECK(error_of(engines_for(attention_backward(problem, Sums::in_order), gpu)) == "");
      }
}

TEST_CASE("attention kernels compile up to the point at which a driver loads them", "[cudnn]") {
  const Gpu gpu = h200();
  auto in_fp16 = gpt_small();
  in_fp16.element = Element::f16;
  for (const auto& graph :
       {attention_forward(gpt_small(Mask::causal)), attention_forward(gpt_small(Mask::full)),
        attention_backward(gpt_small(), Sums::as_they_come),
        attention_backward(gpt_small(), Sums::in_order), attention_forward(in_fp16),
        attention_backward(in_fp16, Sums::in_order)}) {
    INFO(graph.operations().size() << " operations");
    CHECK(refusal_of(plan_for(graph, gpu)) == "");
  }
}

TEST_CASE("making a plan fails without a driver that loads kernels", "[cudnn]") {
  const Gpu gpu = h200();
  const auto graph = attention_forward(gpt_small());
  if (plan_for(graph, gpu)) {
    WARN("skipped: a driver loads them");
    return;
  }
  CHECK_THROWS_AS(Plan::make(graph, gpu), NotSupported);
}

TEST_CASE("cuDNN refuses attention with a width that is no multiple of 8", "[cudnn]") {
  const Gpu gpu = h200();
  const auto problem =
      side_by_side({.batch = 4, .length = 256, .heads = 12, .kv_heads = 12, .width = 36});
  CHECK(says(error_of(engines_for(attention_forward(problem), gpu)),
             "takes this graph of 14 operations: Embedding dim per head for q and k is not a "
             "multiple of 8"));
  for (const Sums sums : {Sums::as_they_come, Sums::in_order})
    CHECK(
        says(error_of(engines_for(attention_backward(problem, sums), gpu)), "not a multiple of 8"));
}

// For the forward pass an engine with tensor cores exists, but without a backward pass it is
// useless.
TEST_CASE("cuDNN refuses attention backward in fp32", "[cudnn]") {
  auto problem = gpt_small();
  problem.element = Element::f32;
  for (const Sums sums : {Sums::as_they_come, Sums::in_order})
    CHECK(says(error_of(engines_for(attention_backward(problem, sums), h200())),
               "Data type for Q tensor should be half / bf16"));
}

TEST_CASE("cuDNN refuses heads of keys that do not divide the heads of queries", "[cudnn]") {
  const auto problem =
      side_by_side({.batch = 4, .length = 256, .heads = 5, .kv_heads = 3, .width = 64});
  CHECK(says(error_of(engines_for(attention_forward(problem), h200())),
             "operation 1 of 14: CUDNN_STATUS_BAD_PARAM"));
}

}  // namespace troupe::kernels::cudnn
