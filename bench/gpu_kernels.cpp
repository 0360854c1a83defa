#include "bench/gpu_kernels.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <functional>
#include <initializer_list>
#include <utility>

#include "bench/figures.h"
#include "core/random.h"
#include "kernels/activations.h"
#include "kernels/attention.h"
#include "kernels/between_layers.h"
#include "kernels/copy.h"
#include "kernels/embedding.h"
#include "kernels/linear.h"
#include "kernels/linear_gelu.h"
#include "kernels/rounding.h"
#include "kernels/steps.h"
#include "models/arithmetic.h"
#include "models/train/repeatedly.h"

namespace troupe::bench {
namespace {

using kernels::Gelu;
using kernels::LinearShape;
using kernels::WeightLayout;

constexpr float norm_epsilon = 1e-5f;

/// The least work that a kernel can do.
struct Least {
  double operations = 0;
  double bytes = 0;
};

class Bench {
 public:
  Bench(Stream& stream, const GptSize& size, kernels::Precision precision, const GpuEffort& effort)
      : stream_(stream),
        size_(size),
        precision_(precision),
        narrow_(kernels::activation_type(precision)),
        effort_(effort) {}

  GpuFigures measure() {
    measure_peaks();
    list_ = &figures_.micro_batch;
    const auto& [micro, context, layers, width, heads, vocab] = size_;
    embeddings();
    norms();
    residuals();
    product("qkv", layers, width, 3 * width);
    attention();
    product("out", layers, width, width);
    feed_forward();
    product("logits", 1, width, vocab, Bias::none);
    loss();
    list_ = &figures_.step;
    update();
    return std::move(figures_);
  }

 private:
  // Numbers. They are random, because a product of equal rows would draw less power and run faster.

  /// The host draws few numbers, because it is slow. The device arranges them in random rows.
  Tensor random(const Shape& shape) {
    constexpr std::int64_t kinds = 64, longest = 4096;
    const auto count = shape.count();
    std::int64_t columns = std::min(shape.last(), longest);
    while (count % columns != 0) --columns;
    const std::int64_t rows = count / columns;
    const Tensor table = sent({kinds, columns});
    Tensor made = stream_.make(shape);
    kernels::embedding_forward(stream_, table.f32(), tokens(rows, kinds).data<std::int32_t>(),
                               made.f32(), rows, columns);
    return made;
  }
  Tensor rounded(const Shape& shape) { return kernels::as_type(stream_, random(shape), narrow_); }
  Tensor of_each(float number, const Shape& shape) {
    Tensor made = stream_.make(shape);
    kernels::fill(stream_, number, made.f32(), made.count());
    return made;
  }
  Tensor tokens(std::int64_t count, std::int64_t vocab) {
    Tensor here = Tensor::make(stream_.host_memory(), {count}, DType::i32);
    for (std::int64_t i = 0; i < count; ++i)
      here.data<std::int32_t>()[i] = static_cast<std::int32_t>(word(i) % vocab);
    return stream_.to_here(std::move(here));
  }
  Tensor sent(const Shape& shape) {
    Tensor here = Tensor::make(stream_.host_memory(), shape);
    for (std::int64_t i = 0; i < here.count(); ++i)
      here.f32()[i] = uniform(static_cast<std::uint32_t>(word(i))) - 0.5f;
    return stream_.to_here(std::move(here));
  }
  static std::int64_t word(std::int64_t i) {
    return RandomKey{}.words(static_cast<std::uint32_t>(i / 4))[static_cast<std::size_t>(i % 4)];
  }

  // Times.

  /// Returns the seconds of one run. Launches several, so that the host does not wait in between.
  double seconds_of(const std::function<void()>& run) {
    run();  // Warm up: libraries choose kernels, and memory is allocated.
    stream_.wait();
    const double once = timed(run, 1);
    constexpr double enough = 5e-3;
    const int times = std::clamp(static_cast<int>(enough / once), 1, 200);
    std::vector<double> all(static_cast<std::size_t>(effort_.rounds));
    for (auto& seconds : all) seconds = timed(run, times) / times;
    return median(std::move(all));
  }
  double timed(const std::function<void()>& run, int times) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < times; ++i) run();
    stream_.wait();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

  void add(std::string kernel, std::int64_t times, Least least, const std::function<void()>& run) {
    const double floor =
        std::max(least.operations / figures_.peaks.operations, least.bytes / figures_.peaks.bytes);
    list_->push_back({std::move(kernel), times, seconds_of(run), floor});
  }

  void measure_peaks() {
    const auto n = effort_.square;
    const kernels::PackedLinear w(stream_, {n, n, WeightLayout::in_out, precision_},
                                  random({n, n}).f32());
    const Tensor x = rounded({n, n});
    Tensor y = stream_.make({n, n}, narrow_);
    const double product = seconds_of([&] { kernels::linear_forward(stream_, w, x, nullptr, y); });
    figures_.peaks.operations = 2 * std::pow(static_cast<double>(n), 3) / product;
    const std::int64_t count = effort_.copied / 4;
    const Tensor from = of_each(1, {count});
    Tensor to = stream_.make({count});
    const double copy = seconds_of([&] { stream_.copy(from, to); });
    figures_.peaks.bytes = 2 * static_cast<double>(effort_.copied) / copy;
  }

  // The kernels of GPT-2.

  void embeddings() {
    const auto rows = size_.rows(), width = size_.width, context = size_.context;
    const double all = static_cast<double>(rows * width);
    const Tensor table = random({size_.vocab, width}), positions = random({context, width});
    const Tensor found = tokens(rows, size_.vocab);
    Tensor x = random({rows, width}), gradient = random({size_.vocab, width});
    const auto* which = found.data<std::int32_t>();
    add("embedding", 1, {.bytes = 8 * all},
        [&] { kernels::embedding_forward(stream_, table.f32(), which, x.f32(), rows, width); });
    add("embedding, gradient", 1, {.bytes = 12 * all}, [&] {
      kernels::embedding_backward_weight(stream_, which, x.f32(), gradient.f32(), rows, width);
    });
    const double sample = static_cast<double>(context * width);
    add("positions", size_.micro, {.bytes = 12 * sample},
        [&] { kernels::add(stream_, x.f32(), positions.f32(), x.f32(), context * width); });
    add("positions, gradient", size_.micro, {.bytes = 12 * sample},
        [&] { kernels::accumulate(stream_, gradient.f32(), x.f32(), context * width); });
  }

  /// Norms that are not fused with a residual: the first of each layer, and that before the logits.
  /// Their gradients are fused in all layers.
  void norms() {
    const auto rows = size_.rows(), width = size_.width, layers = size_.layers;
    const double all = static_cast<double>(rows * width);
    const Tensor x = random({rows, width}), weight = random({width}), dy = rounded({rows, width});
    Tensor y = stream_.make({rows, width}, narrow_), moments = stream_.make({2, rows});
    Tensor dx = stream_.make({rows, width}), dweight = of_each(0, {width}), dbias = dweight, none;
    add("norm", layers + 1, {.bytes = 6 * all},
        [&] { kernels::layer_norm(stream_, x, weight, weight, norm_epsilon, y, moments); });
    add("norm, input gradient", 1, {.bytes = 10 * all},
        [&] { kernels::layer_norm_back(stream_, x, weight, moments, dy, {}, dx, none); });
    add("norm, weight gradient", 2 * layers + 1, {.bytes = 6 * all},
        [&] { kernels::layer_norm_back_to_weight(stream_, x, moments, dy, dweight, dbias); });
  }

  /// The two residuals of each layer.
  void residuals() {
    const auto rows = size_.rows(), width = size_.width, layers = size_.layers;
    const double all = static_cast<double>(rows * width);
    const Tensor branch = rounded({rows, width}), x = random({rows, width});
    const Tensor weight = random({width});
    Tensor sum = stream_.make({rows, width}), y = stream_.make({rows, width}, narrow_);
    Tensor moments = stream_.make({2, rows}), none;
    add("residual and norm", layers, {.bytes = 12 * all}, [&] {
      kernels::layer_norm_of_sum(stream_, branch, x, weight, weight, norm_epsilon, sum, y, moments);
    });
    add("residual", layers, {.bytes = 10 * all}, [&] { kernels::sum_of(stream_, branch, x, sum); });
    add("norm, input gradient, sum", layers, {.bytes = 14 * all},
        [&] { kernels::layer_norm_back(stream_, x, weight, moments, branch, x, sum, none); });
    add("norm, input gradient, rounded", layers, {.bytes = 16 * all},
        [&] { kernels::layer_norm_back(stream_, x, weight, moments, branch, x, sum, y); });
    add("residual, gradient rounded", layers, {.bytes = 6 * all},
        [&] { (void)kernels::as_type(stream_, x, narrow_); });
  }

  Least least_of(std::int64_t inputs, std::int64_t outputs, double more_bytes = 0) const {
    const auto r = static_cast<double>(size_.rows()), i = static_cast<double>(inputs),
               o = static_cast<double>(outputs);
    return {.operations = 2 * r * i * o, .bytes = 2 * (r * i + i * o + r * o) + more_bytes};
  }

  enum class Bias : std::uint8_t { none, present };

  /// The gradient accumulates in fp32, which is read and written.
  void weight_gradient(const std::string& name, std::int64_t times, const LinearShape& shape,
                       const Tensor& x, const Tensor& dy, Bias bias = Bias::present) {
    const double weights = static_cast<double>(shape.inputs * shape.outputs);
    Tensor dw = of_each(0, {shape.inputs, shape.outputs}), db = of_each(0, {shape.outputs});
    add(name + ", weight gradient", times, least_of(shape.inputs, shape.outputs, 6 * weights), [&] {
      if (bias == Bias::none)
        kernels::linear_backward_weight(stream_, shape, x, dy, dw.f32(), size_.rows());
      else
        kernels::linear_backward_parameters(stream_, shape, x, {.operand = dy, .for_bias = dy},
                                            dw.f32(), dw.f32(), db.f32());
    });
  }

  void product(const std::string& name, std::int64_t times, std::int64_t inputs,
               std::int64_t outputs, Bias with_bias = Bias::present) {
    const auto rows = size_.rows();
    const LinearShape shape{inputs, outputs, WeightLayout::in_out, precision_};
    const kernels::PackedLinear w(stream_, shape, random({inputs, outputs}).f32());
    const Tensor x = rounded({rows, inputs}), dy = rounded({rows, outputs});
    const Tensor numbers = random({outputs});
    const float* bias = with_bias == Bias::present ? numbers.f32() : nullptr;
    Tensor y = stream_.make({rows, outputs}, narrow_), dx = stream_.make({rows, inputs}, narrow_);
    add(name, times, least_of(inputs, outputs),
        [&] { kernels::linear_forward(stream_, w, x, bias, y); });
    add(name + ", input gradient", times, least_of(inputs, outputs),
        [&] { kernels::linear_backward_input(stream_, w, dy, dx); });
    weight_gradient(name, times, shape, x, dy, with_bias);
  }

  void feed_forward() {
    const auto rows = size_.rows(), width = size_.width, wide = 4 * width;
    const LinearShape up{width, wide, WeightLayout::in_out, precision_};
    const LinearShape down{wide, width, WeightLayout::in_out, precision_};
    const double between = 2 * static_cast<double>(rows * wide);
    const kernels::PackedLinear up_w(stream_, up, random({width, wide}).f32());
    const kernels::PackedLinear down_w(stream_, down, random({wide, width}).f32());
    const Tensor x = rounded({rows, width}), dy = rounded({rows, width}), bias = random({wide});
    const auto made = kernels::linear_gelu_forward(stream_, up_w, x, bias.f32(), Gelu::tanh);
    add("up and gelu", size_.layers, least_of(width, wide, between),
        [&] { (void)kernels::linear_gelu_forward(stream_, up_w, x, bias.f32(), Gelu::tanh); });
    Tensor y = stream_.make({rows, width}, narrow_), dx = stream_.make({rows, width}, narrow_);
    add("down", size_.layers, least_of(wide, width),
        [&] { kernels::linear_forward(stream_, down_w, made.y, bias.f32(), y); });
    add("down and gelu, input gradient", size_.layers, least_of(wide, width, between),
        [&] { (void)kernels::linear_gelu_backward(stream_, down_w, dy, Gelu::tanh, made.pre); });
    weight_gradient("down", size_.layers, down, made.y, dy);
    add("up, input gradient", size_.layers, least_of(width, wide),
        [&] { kernels::linear_backward_input(stream_, up_w, made.y, dx); });
    weight_gradient("up", size_.layers, up, x, made.y);
  }

  void attention() {
    const auto micro = size_.micro, context = size_.context, layers = size_.layers;
    const auto width = size_.width, heads = size_.heads;
    const kernels::AttentionShape shape{micro, context,       heads,
                                        heads, width / heads, kernels::Mask::causal};
    const Tensor qkv = rounded({micro, context, 3 * width});
    const Tensor dout = rounded({micro, context, width});
    Tensor dqkv = stream_.make(qkv.shape(), narrow_), out = stream_.make(dout.shape(), narrow_);
    Tensor logsumexp = stream_.make({micro, heads, context});
    // A position attends to half of the positions on average.
    const double product = static_cast<double>(size_.rows() * context * width);
    const double values = 2 * static_cast<double>(size_.rows() * width);
    add("attention", layers, {2 * product, 4 * values}, [&] {
      kernels::attend(stream_, shape, {qkv, 0}, {qkv, width}, {qkv, 2 * width}, {out, 0},
                      logsumexp);
    });
    add("attention, gradient", layers, {5 * product, 8 * values}, [&] {
      kernels::attend_back(stream_, shape, {qkv, 0}, {qkv, width}, {qkv, 2 * width}, {out, 0},
                           logsumexp, {dout, 0}, {dqkv, 0}, {dqkv, width}, {dqkv, 2 * width});
    });
  }

  void loss() {
    const auto rows = size_.rows();
    Tensor logits = rounded({rows, size_.vocab}), losses = stream_.make({rows});
    const Tensor targets = tokens(rows, size_.vocab);
    add("loss and its gradient", 1, {.bytes = 4 * static_cast<double>(logits.count())}, [&] {
      kernels::cross_entropy(stream_, logits, targets, losses, kernels::LogitGradient::wanted, 1);
    });
  }

  /// A trained tensor with the moments of AdamW.
  struct Trained {
    Tensor w, gradient, m, v, next;
    bool is_matrix;  // Products read it rounded.
  };
  Trained trained(const Shape& shape, bool is_matrix) {
    return {random(shape),     random(shape),       of_each(0, shape),
            of_each(1, shape), stream_.make(shape), is_matrix};
  }
  /// Returns all parameters, in the order of the model.
  std::vector<Trained> parameters() {
    const auto width = size_.width;
    std::vector<Trained> all;
    const auto add_vectors = [&](std::initializer_list<std::int64_t> sizes) {
      for (const auto size : sizes) all.push_back(trained({size}, false));
    };
    const auto add_linear = [&](std::int64_t inputs, std::int64_t outputs) {
      all.push_back(trained({inputs, outputs}, true));
      add_vectors({outputs});
    };
    all.push_back(trained({size_.vocab, width}, true));
    all.push_back(trained({size_.context, width}, false));
    for (std::int64_t layer = 0; layer < size_.layers; ++layer) {
      add_vectors({width, width});
      add_linear(width, 3 * width);
      add_linear(width, width);
      add_vectors({width, width});
      add_linear(width, 4 * width);
      add_linear(4 * width, width);
    }
    add_vectors({width, width});
    return all;
  }

  /// Updates all parameters as a step does: the squares by a list of tensors, AdamW and the
  /// rounding with a launch for each tensor.
  void update() {
    auto all = parameters();
    std::vector<Tensor> gradients;
    std::int64_t blocks = 0;
    double numbers = 0, in_matrices = 0;
    for (const auto& one : all) {
      gradients.push_back(one.gradient);
      blocks += kernels::blocks_of_sums(one.w.count());
      numbers += static_cast<double>(one.w.count());
      if (one.is_matrix) in_matrices += static_cast<double>(one.w.count());
    }
    Tensor sums = stream_.make({blocks}, DType::f64);
    const kernels::AdamStep step{.lr = 1e-4,
                                 .beta1 = 0.9,
                                 .beta2 = 0.95,
                                 .eps = 1e-8,
                                 .weight_decay = 0.1,
                                 .gradient_scale = 1,
                                 .m_scale = 1,
                                 .g_scale = 0,
                                 .v_scale = 1,
                                 .decay = kernels::WeightDecay::decoupled};
    add("squares of gradients", 1, {.bytes = 4 * numbers}, [&] {
      models::repeatedly(
          stream_, [&] { models::squares_of_blocks(stream_, gradients, sums.data<double>()); });
    });
    add("adamw", 1, {.bytes = 28 * numbers}, [&] {
      models::repeatedly(stream_, [&] {
        for (auto& one : all)
          kernels::adam_step(stream_, step, one.w.f32(), one.gradient.f32(), one.m.f32(),
                             one.v.f32(), one.next.f32(), one.w.count());
      });
    });
    add("weights rounded", 1, {.bytes = 6 * in_matrices}, [&] {
      models::repeatedly(stream_, [&] {
        std::vector<kernels::PackedLinear> packed;
        for (const auto& one : all) {
          if (!one.is_matrix) continue;
          const auto& shape = one.next.shape();
          packed.emplace_back(stream_,
                              LinearShape{shape.count() / shape.last(), shape.last(),
                                          WeightLayout::in_out, precision_},
                              one.next.f32());
        }
      });
    });
  }

  Stream& stream_;
  const GptSize size_;
  const kernels::Precision precision_;
  const DType narrow_;
  const GpuEffort effort_;
  GpuFigures figures_;
  std::vector<GpuKernelFigure>* list_ = nullptr;  // The list that add() appends to.
};

void print_part(std::string& table, const char* what, const std::vector<GpuKernelFigure>& kernels) {
  double sum = 0, floor = 0;
  for (const auto& kernel : kernels) {
    sum += static_cast<double>(kernel.times) * kernel.seconds;
    floor += static_cast<double>(kernel.times) * kernel.floor;
  }
  print(table, "%-30s %5s %10s %10s %7s %7s\n", what, "times", "us", "at best", "share", "of all");
  for (const auto& kernel : kernels)
    print(table, "%-30s %5lld %10.1f %10.1f %7.2f %6.1f%%\n", kernel.kernel.c_str(),
          static_cast<long long>(kernel.times), kernel.seconds * 1e6, kernel.floor * 1e6,
          kernel.floor / kernel.seconds,
          100 * static_cast<double>(kernel.times) * kernel.seconds / sum);
  print(table, "%-30s %5s %10.1f %10.1f %7.2f\n", "all", "", sum * 1e6, floor * 1e6, floor / sum);
}

}  // namespace

Result<GpuFigures> measure_gpu_kernels(Stream& stream, const GptSize& size,
                                       kernels::Precision precision, const GpuEffort& effort) {
  if (size.width % size.heads != 0)
    return Error{"found " + std::to_string(size.heads) + " heads, wanted as many as divide " +
                 std::to_string(size.width) + ", the width"};
  try {
    return Bench(stream, size, precision, effort).measure();
  } catch (const std::exception& problem) {
    return Error{problem.what()};
  }
}

std::string to_table(const GptSize& size, const GpuFigures& figures) {
  std::string table;
  print(table, "peaks: %.1f TFLOP/s in a product, %.2f TB/s in a copy\n\n",
        figures.peaks.operations * 1e-12, figures.peaks.bytes * 1e-12);
  print_part(table, "a micro-batch", figures.micro_batch);
  table += '\n';
  print_part(table, "a step", figures.step);
  double micro_batch = 0;
  for (const auto& kernel : figures.micro_batch)
    micro_batch += static_cast<double>(kernel.times) * kernel.seconds;
  print(table, "\n%.0f tokens/s at most, if nothing lay between the kernels of a micro-batch\n",
        static_cast<double>(size.rows()) / micro_batch);
  return table;
}

}  // namespace troupe::bench
