#include "bench/kernel_bench.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>

#include "bench/figures.h"
#include "core/memory/stream.h"
#include "core/random.h"
#include "kernels/attention.h"
#include "kernels/conv2d.h"
#include "kernels/linear.h"
#include "kernels/peak.h"

namespace troupe::bench {
namespace {

using kernels::LinearShape;
using kernels::Precision;
using kernels::WeightLayout;

/// A kernel with its operands, ready to run.
struct Subject {
  std::string kernel;
  std::string shape;
  double operations = 0;
  Precision precision = Precision::fp32;
  std::function<void()> run;
};

Tensor numbers(Stream& stream, const Shape& shape) {
  Tensor made = stream.make(shape);
  for (std::int64_t i = 0; i < made.count(); ++i)
    made.f32()[i] = uniform(RandomKey{}.words(
                        static_cast<std::uint32_t>(i / 4))[static_cast<std::size_t>(i % 4)]) -
                    0.5f;
  return made;
}

std::string size_of(std::int64_t rows, std::int64_t inputs, std::int64_t outputs,
                    Precision precision) {
  return std::to_string(rows) + " x " + std::to_string(inputs) + " x " + std::to_string(outputs) +
         " " + std::string(to_string(precision));
}

void add_linear(std::vector<Subject>& subjects, Stream& stream, std::int64_t rows,
                const LinearShape& shape) {
  struct Layer {
    kernels::PackedLinear packed;
    Tensor weight, x, dy, y, dx, dw;
  };
  const auto layer = std::make_shared<Layer>();
  const auto& [inputs, outputs, layout, precision] = shape;
  layer->weight = numbers(stream, {inputs, outputs});
  layer->packed = kernels::PackedLinear(stream, shape, layer->weight.f32());
  layer->x = as_operand(stream, numbers(stream, {rows, inputs}), precision);
  layer->dy = as_operand(stream, numbers(stream, {rows, outputs}), precision);
  layer->y = stream.make({rows, outputs});
  layer->dx = stream.make({rows, inputs});
  layer->dw = numbers(stream, {inputs, outputs});

  const auto operations = 2.0 * static_cast<double>(rows * inputs * outputs);
  const auto size = size_of(rows, inputs, outputs, precision);
  subjects.push_back({"linear forward", size, operations, precision, [&stream, layer] {
                        linear_forward(stream, layer->packed, layer->x, nullptr, layer->y);
                      }});
  subjects.push_back({"linear input gradient", size, operations, precision, [&stream, layer] {
                        linear_backward_input(stream, layer->packed, layer->dy, layer->dx);
                      }});
  subjects.push_back(
      {"linear weight gradient", size, operations, precision, [&stream, layer, rows] {
         linear_backward_weight(stream, layer->packed.shape(), layer->x, layer->dy, layer->dw.f32(),
                                rows);
       }});
}

void add_attention(std::vector<Subject>& subjects, Stream& stream,
                   const kernels::AttentionShape& shape) {
  struct Heads {
    Tensor qkv, dqkv, out, dout, logsumexp;
  };
  const auto heads = std::make_shared<Heads>();
  const std::int64_t width = shape.heads * shape.width, kv_width = shape.kv_heads * shape.width;
  const std::int64_t row = width + 2 * kv_width;
  heads->qkv = numbers(stream, {shape.batch, shape.length, row});
  heads->dqkv = stream.make({shape.batch, shape.length, row});
  heads->out = stream.make({shape.batch, shape.length, width});
  heads->dout = numbers(stream, {shape.batch, shape.length, width});
  heads->logsumexp = stream.make({shape.batch, shape.heads, shape.length});

  // Two products forward and five backward. A causal mask needs half of each.
  const double product = 2.0 *
                         static_cast<double>(shape.batch * shape.length * shape.length * width) *
                         (shape.mask == kernels::Mask::causal ? 0.5 : 1.0);
  const auto size = std::to_string(shape.batch) + " x " + std::to_string(shape.length) + " x " +
                    std::to_string(shape.heads) + " x " + std::to_string(shape.width) +
                    (shape.mask == kernels::Mask::causal ? " causal" : " full");
  subjects.push_back({"attention forward", size, 2 * product, Precision::fp32, [=, &stream] {
                        const float* qkv = heads->qkv.f32();
                        attention_forward(stream, shape, {qkv, row}, {qkv + width, row},
                                          {qkv + width + kv_width, row}, {heads->out.f32(), width},
                                          heads->logsumexp.f32());
                      }});
  subjects.push_back({"attention backward", size, 5 * product, Precision::fp32, [=, &stream] {
                        const float* qkv = heads->qkv.f32();
                        float* dqkv = heads->dqkv.f32();
                        attention_backward(stream, shape, {qkv, row}, {qkv + width, row},
                                           {qkv + width + kv_width, row}, {heads->out.f32(), width},
                                           heads->logsumexp.f32(), {heads->dout.f32(), width},
                                           {dqkv, row}, {dqkv + width, row},
                                           {dqkv + width + kv_width, row});
                      }});
}

void add_conv2d(std::vector<Subject>& subjects, Stream& stream, const kernels::Conv2dShape& shape) {
  struct Images {
    Tensor x, w, y, dy, dx, dw;
  };
  const auto images = std::make_shared<Images>();
  images->x = numbers(stream, {shape.batch, shape.in_channels, shape.height, shape.width});
  images->w = numbers(stream, {shape.out_channels, shape.in_channels, shape.kernel, shape.kernel});
  images->y = stream.make({shape.batch, shape.out_channels, shape.out_height(), shape.out_width()});
  images->dy = numbers(stream, images->y.shape());
  images->dx = stream.make(images->x.shape());
  images->dw = numbers(stream, images->w.shape());

  const auto operations =
      2.0 * static_cast<double>(images->y.count() * images->w.count() / shape.out_channels);
  const auto size = std::to_string(shape.batch) + " x " + std::to_string(shape.in_channels) +
                    " x " + std::to_string(shape.height) + "^2, " +
                    std::to_string(shape.out_channels) + " x " + std::to_string(shape.kernel) +
                    "^2 / " + std::to_string(shape.stride);
  subjects.push_back({"conv2d forward", size, operations, Precision::fp32, [=, &stream] {
                        conv2d_forward(stream, shape, images->x.f32(), images->w.f32(),
                                       images->y.f32());
                      }});
  subjects.push_back({"conv2d input gradient", size, operations, Precision::fp32, [=, &stream] {
                        conv2d_backward_input(stream, shape, images->w.f32(), images->dy.f32(),
                                              images->dx.f32());
                      }});
  subjects.push_back({"conv2d weight gradient", size, operations, Precision::fp32, [=, &stream] {
                        conv2d_backward_weight(stream, shape, images->x.f32(), images->dy.f32(),
                                               images->dw.f32());
                      }});
}

/// Returns the precisions to measure: two that every processor has, and this one's fastest.
std::vector<Precision> products() {
  std::vector<Precision> all = {Precision::fp32, Precision::bf16_pairs};
  if (kernels::fastest_bf16() == Precision::bf16_blocks) all.push_back(Precision::bf16_blocks);
  return all;
}

std::vector<Subject> make_subjects(Stream& stream, const OtherProduct& other) {
  std::vector<Subject> subjects;
  const std::int64_t sizes[][3] = {{256, 128, 128},   {256, 128, 512},   {1024, 384, 384},
                                   {1024, 384, 1536}, {1024, 1536, 384}, {1024, 384, 4096},
                                   {512, 1024, 1024}, {1024, 2048, 2048}};
  for (const auto precision : products())
    for (const auto& [rows, inputs, outputs] : sizes) {
      add_linear(subjects, stream, rows, {inputs, outputs, WeightLayout::in_out, precision});
      if (other.make && precision == Precision::fp32)
        subjects.push_back({other.name, size_of(rows, inputs, outputs, precision),
                            2.0 * static_cast<double>(rows * inputs * outputs), precision,
                            other.make(rows, inputs, outputs)});
    }
  for (const auto& shape : {kernels::AttentionShape{4, 256, 6, 6, 64, kernels::Mask::causal},
                            kernels::AttentionShape{4, 64, 4, 4, 32, kernels::Mask::causal},
                            kernels::AttentionShape{4, 197, 6, 6, 64, kernels::Mask::full},
                            kernels::AttentionShape{1, 2048, 8, 2, 64, kernels::Mask::causal}})
    add_attention(subjects, stream, shape);
  for (const auto& shape : {kernels::Conv2dShape{8, 3, 32, 32, 16, 3, 1, 1},
                            kernels::Conv2dShape{8, 8, 16, 16, 8, 3, 1, 1},
                            kernels::Conv2dShape{8, 16, 32, 32, 16, 3, 1, 1},
                            kernels::Conv2dShape{8, 32, 16, 16, 64, 3, 2, 1},
                            kernels::Conv2dShape{8, 64, 16, 16, 64, 3, 1, 1},
                            kernels::Conv2dShape{8, 64, 8, 8, 64, 3, 1, 1},
                            kernels::Conv2dShape{8, 64, 16, 16, 128, 1, 2, 0}})
    add_conv2d(subjects, stream, shape);
  return subjects;
}

double seconds_of(const Subject& subject) {
  // Repeat short kernels until the clock is fine enough.
  constexpr double enough_operations = 2e8;
  const int times = std::max(1, static_cast<int>(enough_operations / subject.operations));
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < times; ++i) subject.run();
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  return taken.count() / times;
}

}  // namespace

std::vector<KernelFigure> measure_kernels(int threads, int rounds, const OtherProduct& other) {
  MemoryPool pool;
  Stream stream(pool, threads);
  prepare_computing_thread();
  const auto subjects = make_subjects(stream, other);
  std::vector<std::vector<double>> seconds(subjects.size());
  std::map<Precision, double> peaks;
  for (int round = 0; round < rounds; ++round) {
    for (const auto precision : products())
      peaks[precision] = std::max(peaks[precision], kernels::fma_peak(stream, precision));
    for (std::size_t i = 0; i < subjects.size(); ++i) seconds[i].push_back(seconds_of(subjects[i]));
  }
  std::vector<KernelFigure> figures;
  for (std::size_t i = 0; i < subjects.size(); ++i) {
    const auto& subject = subjects[i];
    const double peak = peaks[subject.precision];
    const double typical = median(seconds[i]);
    const double rate = subject.operations / typical;
    figures.push_back({subject.kernel, subject.shape, typical, rate, rate / peak});
  }
  return figures;
}

std::string to_table(const std::vector<KernelFigure>& figures) {
  std::string table;
  char line[160];
  for (const auto& f : figures) {
    std::snprintf(line, sizeof line, "%-24s %-30s %9.1f us %7.1f GFLOP/s %6.2f of peak\n",
                  f.kernel.c_str(), f.shape.c_str(), f.seconds * 1e6, f.rate / 1e9, f.share);
    table += line;
  }
  return table;
}

}  // namespace troupe::bench
