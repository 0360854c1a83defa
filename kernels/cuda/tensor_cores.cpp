#include "kernels/cuda/tensor_cores.h"

#include <map>
#include <string>
#include <utility>

#include "kernels/cuda/cublas_lt/products.h"

namespace troupe::kernels::cuda {
namespace {

using Prepared = Result<std::unique_ptr<const cudnn::ReadyGraph>>;

/// A cache of prepared graphs by the problem that they compute.
template <class Problem>
class ReadyGraphs {
 public:
  template <class Prepare>
  const cudnn::ReadyGraph* find(const Problem& problem, Prepare prepare) {
    auto found = ready_.find(problem);
    if (found == ready_.end()) found = ready_.emplace(problem, prepare(problem)).first;
    return found->second.get();
  }

 private:
  std::map<Problem, std::unique_ptr<const cudnn::ReadyGraph>> ready_;  // Null: cuDNN cannot.
};

std::string to_text(cudnn::Element element) {
  return element == cudnn::Element::f32 ? "fp32" : element == cudnn::Element::f16 ? "fp16" : "bf16";
}
std::string to_text(const cudnn::AttentionProblem& problem) {
  const auto& shape = problem.shape;
  return "attention over " + std::to_string(shape.length) + " positions, in heads of " +
         std::to_string(shape.width) + " numbers in " + to_text(problem.element);
}
std::string to_text(const cudnn::ConvolutionProblem& problem) {
  const auto& s = problem.shape;
  return std::to_string(s.in_channels) + " x " + std::to_string(s.height) + " x " +
         std::to_string(s.width) + " to " + std::to_string(s.out_channels) + " channels, kernel " +
         std::to_string(s.kernel) + ", stride " + std::to_string(s.stride) + ", in " +
         to_text(problem.element);
}
std::string to_text(cudnn::Kind kind) {
  if (kind == cudnn::Kind::convolution_backward_input) return "a convolution's way back";
  if (kind == cudnn::Kind::convolution_backward_weight) return "a convolution's gradient";
  return "a convolution";
}

/// Returns whether cuDNN's kernel for compute capability 9 returns NaN for valid inputs. It
/// processes keys in tiles of 128 and does not mask the second half if 64 are left. The scores
/// there are 0 instead of -infinity, and exp(0 - logsumexp) overflows if logsumexp is below -88,
/// which spoils dq (cudnn-frontend #628). A causal mask hides these keys. With a single query, dk
/// and dv are wrong (#1072).
bool is_wrong_on_the_way_back(const AttentionShape& shape) {
  return shape.length == 1 || (shape.mask == Mask::full && shape.length % 128 == 64);
}

class OpenTensorCores final : public TensorCores {
 public:
  OpenTensorCores(std::unique_ptr<cublas_lt::Products> products,
                  std::unique_ptr<cudnn::GraphRunner> runner, Remark remark)
      : products_(std::move(products)), runner_(std::move(runner)), remark_(std::move(remark)) {}

  bool can_multiply(const DeviceProduct<float>& product,
                    const cublas_lt::Epilogue<float>& epilogue) override {
    return products_->can_multiply(product, epilogue);
  }
  bool can_multiply(const DeviceProduct<Float16>& product,
                    const cublas_lt::Epilogue<Float16>& epilogue) override {
    return products_->can_multiply(product, epilogue);
  }
  bool can_multiply(const DeviceProduct<BFloat16>& product,
                    const cublas_lt::Epilogue<BFloat16>& epilogue) override {
    return products_->can_multiply(product, epilogue);
  }
  void multiply(const DeviceProduct<float>& product, const cublas_lt::Epilogue<float>& epilogue,
                cudaStream_t queue) override {
    products_->multiply(product, epilogue, queue);
  }
  void multiply(const DeviceProduct<Float16>& product, const cublas_lt::Epilogue<Float16>& epilogue,
                cudaStream_t queue) override {
    products_->multiply(product, epilogue, queue);
  }
  void multiply(const DeviceProduct<BFloat16>& product,
                const cublas_lt::Epilogue<BFloat16>& epilogue, cudaStream_t queue) override {
    products_->multiply(product, epilogue, queue);
  }

  const cudnn::ReadyGraph* attention_forward(const cudnn::AttentionProblem& problem) override {
    return forward_.find(problem, [this](const cudnn::AttentionProblem& of) {
      return or_told(runner_->prepare(cudnn::attention_forward(of)), to_text(of));
    });
  }
  const cudnn::ReadyGraph* attention_backward(const cudnn::AttentionProblem& problem) override {
    return backward_.find(problem, [this](const cudnn::AttentionProblem& of) {
      const auto prepare = [&]() -> Prepared {
        if (is_wrong_on_the_way_back(of.shape)) return Error{"cuDNN goes wrong there"};
        return runner_->prepare(cudnn::attention_backward(of, cudnn::Sums::in_order));
      };
      return or_told(prepare(), "the way back of " + to_text(of));
    });
  }
  const cudnn::ReadyGraph* convolution(cudnn::Kind kind,
                                       const cudnn::ConvolutionProblem& problem) override {
    return convolutions_[kind].find(problem, [&](const cudnn::ConvolutionProblem& of) {
      const auto prepare = [&]() -> Prepared {
        if (of.shape.groups > 1) return Error{"it has groups of channels"};
        return runner_->prepare(cudnn::convolution(kind, of));
      };
      return or_told(prepare(), to_text(kind) + " of " + to_text(of));
    });
  }

 private:
  /// Returns the graph, or null after a remark if cuDNN cannot compute it.
  std::unique_ptr<const cudnn::ReadyGraph> or_told(Prepared prepared, const std::string& what) {
    if (prepared) return std::move(*prepared);
    remark_("in place of cuDNN a slower kernel in fp32 computes " + what + ": " +
            prepared.error().text);
    return nullptr;
  }

  std::unique_ptr<cublas_lt::Products> products_;
  std::unique_ptr<cudnn::GraphRunner> runner_;  // Must outlive the graphs.
  Remark remark_;
  ReadyGraphs<cudnn::AttentionProblem> forward_, backward_;
  std::map<cudnn::Kind, ReadyGraphs<cudnn::ConvolutionProblem>> convolutions_;
};

}  // namespace

Result<std::unique_ptr<TensorCores>> TensorCores::open(Remark remark) {
  auto products = cublas_lt::Products::open();
  if (!products) return products.error();
  auto runner = cudnn::open_graph_runner();
  if (!runner) return runner.error();
  return std::unique_ptr<TensorCores>(std::make_unique<OpenTensorCores>(
      std::move(*products), std::move(*runner), std::move(remark)));
}

}  // namespace troupe::kernels::cuda
