#include <omp.h>

#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>
#include <vector>

#include "bench/peers/other_product.h"

namespace troupe::bench {
namespace {

using dnnl::memory;

struct OneDnnProduct {
  static constexpr auto type = memory::data_type::f32;

  OneDnnProduct(std::int64_t rows, std::int64_t inputs, std::int64_t outputs)
      : x_numbers(static_cast<std::size_t>(rows * inputs), 0.1f),
        w_numbers(static_cast<std::size_t>(inputs * outputs), 0.01f),
        y_numbers(static_cast<std::size_t>(rows * outputs)) {
    const memory::desc x({rows, inputs}, type, memory::format_tag::ab);
    const memory::desc w({inputs, outputs}, type, memory::format_tag::ab);
    const memory::desc y({rows, outputs}, type, memory::format_tag::ab);
    const memory::desc any_w({inputs, outputs}, type, memory::format_tag::any);
    const dnnl::matmul::primitive_desc how(dnnl::matmul::desc(x, any_w, y), engine);
    product = dnnl::matmul(how);
    memory plain(w, engine, w_numbers.data());
    memory packed(how.weights_desc(), engine);
    dnnl::reorder(plain, packed).execute(stream, plain, packed);
    stream.wait();
    operands = {{DNNL_ARG_SRC, memory(x, engine, x_numbers.data())},
                {DNNL_ARG_WEIGHTS, packed},
                {DNNL_ARG_DST, memory(y, engine, y_numbers.data())}};
  }

  void run() {
    product.execute(stream, operands);
    stream.wait();
  }

  std::vector<float> x_numbers, w_numbers, y_numbers;
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  dnnl::matmul product;
  std::unordered_map<int, memory> operands;
};

}  // namespace

OtherProduct other_product(int threads) {
  omp_set_num_threads(threads);
  return {"oneDNN forward", [](std::int64_t rows, std::int64_t inputs, std::int64_t outputs) {
            const auto product = std::make_shared<OneDnnProduct>(rows, inputs, outputs);
            return [product] { product->run(); };
          }};
}

}  // namespace troupe::bench
