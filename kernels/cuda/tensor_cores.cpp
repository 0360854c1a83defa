#include "kernels/cuda/tensor_cores.h"

#include <map>
#include <utility>

#include "kernels/cuda/cublas_lt/products.h"

namespace troupe::kernels::cuda {
namespace {

/// Graphs by what they compute.
template <class Problem>
class ReadyGraphs {
 public:
  template <class MakeGraph>
  const cudnn::ReadyGraph* find(const Problem& problem, const cudnn::GraphRunner& runner,
                                MakeGraph make_graph) {
    const auto found = ready_.find(problem);
    if (found != ready_.end()) return found->second.get();
    return ready_.emplace(problem, runner.prepare(make_graph(problem))).first->second.get();
  }

 private:
  std::map<Problem, std::unique_ptr<const cudnn::ReadyGraph>> ready_;  // Null: it cannot be done.
};

class OpenTensorCores final : public TensorCores {
 public:
  OpenTensorCores(std::unique_ptr<cublas_lt::Products> products,
                  std::unique_ptr<cudnn::GraphRunner> runner)
      : products_(std::move(products)), runner_(std::move(runner)) {}

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
    return forward_.find(problem, *runner_, cudnn::attention_forward);
  }
  const cudnn::ReadyGraph* attention_backward(const cudnn::AttentionProblem& problem) override {
    return backward_.find(problem, *runner_, [](const cudnn::AttentionProblem& of) {
      return cudnn::attention_backward(of, cudnn::Sums::in_order);
    });
  }
  const cudnn::ReadyGraph* convolution(cudnn::Kind kind,
                                       const cudnn::ConvolutionProblem& problem) override {
    return convolutions_[kind].find(problem, *runner_, [&](const cudnn::ConvolutionProblem& of) {
      return cudnn::convolution(kind, of);
    });
  }

 private:
  std::unique_ptr<cublas_lt::Products> products_;
  std::unique_ptr<cudnn::GraphRunner> runner_;  // Outlives the graphs.
  ReadyGraphs<cudnn::AttentionProblem> forward_, backward_;
  std::map<cudnn::Kind, ReadyGraphs<cudnn::ConvolutionProblem>> convolutions_;
};

}  // namespace

Result<std::unique_ptr<TensorCores>> TensorCores::open() {
  auto products = cublas_lt::Products::open();
  if (!products) return products.error();
  auto runner = cudnn::open_graph_runner();
  if (!runner) return runner.error();
  return std::unique_ptr<TensorCores>(
      std::make_unique<OpenTensorCores>(std::move(*products), std::move(*runner)));
}

}  // namespace troupe::kernels::cuda
