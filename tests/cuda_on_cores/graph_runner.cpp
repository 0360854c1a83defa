// Replaces cuDNN: interprets graphs, and refuses graphs that cuDNN refuses for their width
// (tests/cudnn checks that against cuDNN).
#include "kernels/cuda/cudnn/graph_runner.h"

#include <cassert>
#include <cstring>
#include <utility>
#include <vector>

#include "core/memory/dtype.h"
#include "kernels/cuda/device.h"
#include "tests/cudnn/interpret.h"

namespace troupe::kernels::cudnn {
namespace {

constexpr std::int64_t width_step = 8;
constexpr std::int64_t alignment = 16;  // Bytes, as OperationGraph promises to cuDNN.
constexpr std::int64_t workspace_bytes = 256;

const Operand& operand_of(const Graph& graph, Term term) {
  return graph.operands()[static_cast<std::size_t>(term.number)];
}

float number_at(const void* memory, Element element, std::size_t i) {
  if (element == Element::bf16) return static_cast<const BFloat16*>(memory)[i].to_float();
  if (element == Element::f16) return static_cast<const Float16*>(memory)[i].to_float();
  assert(element == Element::f32);
  return static_cast<const float*>(memory)[i];
}
void put_number(void* memory, Element element, std::int64_t i, float number) {
  if (element == Element::bf16) static_cast<BFloat16*>(memory)[i] = BFloat16::from(number);
  if (element == Element::f16) static_cast<Float16*>(memory)[i] = Float16::from(number);
  if (element == Element::f32) static_cast<float*>(memory)[i] = number;
}

std::vector<float> read(const Operand& operand, const void* memory) {
  std::vector<float> numbers(reach(operand.layout));
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = number_at(memory, operand.element, i);
  return numbers;
}

/// Writes a tensor without touching the memory between its elements.
void write(const Operand& operand, const std::vector<float>& numbers, void* memory) {
  const auto& [sizes, strides] = operand.layout;
  for (std::int64_t a = 0; a < sizes[0]; ++a)
    for (std::int64_t b = 0; b < sizes[1]; ++b)
      for (std::int64_t c = 0; c < sizes[2]; ++c)
        for (std::int64_t d = 0; d < sizes[3]; ++d) {
          const auto at = a * strides[0] + b * strides[1] + c * strides[2] + d * strides[3];
          put_number(memory, operand.element, at, numbers[static_cast<std::size_t>(at)]);
        }
}

bool is_aligned(const void* memory) {
  return reinterpret_cast<std::uintptr_t>(memory) % alignment == 0;
}

class InterpretedGraph final : public ReadyGraph {
 public:
  explicit InterpretedGraph(Graph graph) : graph_(std::move(graph)) {}
  std::int64_t workspace() const override { return workspace_bytes; }

  void run(std::span<const void* const> given, std::span<void* const> made, void* workspace,
           cudaStream_t queue) const override {
    const auto inputs = graph_.given(), results = graph_.made();
    assert(given.size() == inputs.size() && made.size() == results.size());
    std::vector<float> launched;  // Scalars are read now, tensors when the queue runs.
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const bool is_number = operand_of(graph_, inputs[i]).home == Home::launch;
      launched.push_back(is_number ? *static_cast<const float*>(given[i]) : 0);
      assert(is_number || is_aligned(given[i]));
    }
    for (const void* result : made) assert(is_aligned(result));
    const std::vector<const void*> from(given.begin(), given.end());
    const std::vector<void*> to(made.begin(), made.end());
    queue->put([this, inputs, results, launched, from, to, workspace] {
      std::memset(workspace, 0xff, workspace_bytes);
      std::vector<std::vector<float>> numbers;
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        const auto& operand = operand_of(graph_, inputs[i]);
        numbers.push_back(operand.home == Home::launch ? std::vector{launched[i]}
                                                       : read(operand, from[i]));
      }
      const auto stored = interpret(graph_, std::move(numbers));
      for (std::size_t i = 0; i < results.size(); ++i)
        write(operand_of(graph_, results[i]), stored[i], to[i]);
    });
  }

 private:
  Graph graph_;
};

class InterpretingRunner final : public GraphRunner {
 public:
  Result<std::unique_ptr<const ReadyGraph>> prepare(const Graph& graph) const override {
    const auto& first = graph.operations().front();
    const auto& operand = operand_of(graph, first.inputs.front());
    const bool is_attention = graph.operations().size() > 1;
    if (is_attention && operand.layout.sizes[3] % width_step != 0)
      return Error{"the width of heads is no multiple of 8"};
    return std::unique_ptr<const ReadyGraph>(std::make_unique<const InterpretedGraph>(graph));
  }
};

}  // namespace

Result<std::unique_ptr<GraphRunner>> open_graph_runner() {
  return std::unique_ptr<GraphRunner>(std::make_unique<InterpretingRunner>());
}

}  // namespace troupe::kernels::cudnn

namespace troupe::kernels::cuda {

Result<std::string> tensor_core_libraries() { return std::string("stand-ins on the cores"); }
Status runtime_compiler() { return Done{}; }

}  // namespace troupe::kernels::cuda
