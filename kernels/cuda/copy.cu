#include "kernels/combine.h"
#include "kernels/copy.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/tile.cuh"
#include "kernels/patches.h"

// Elementwise kernels that copy, fill or combine numbers.
namespace troupe::kernels::cuda {
namespace {

struct Fill {
  float value;
  float* y;
  __device__ void operator()(std::int64_t i) const { y[i] = value; }
};

struct Copy {
  RowsIn from;
  RowsOut to;
  std::int64_t columns;
  __device__ void operator()(std::int64_t i) const {
    const std::int64_t row = i / columns, column = i % columns;
    to.data[row * to.stride + column] = from.data[row * from.stride + column];
  }
};

struct CombineFactors {
  float a, b;
};
struct Combine {
  Changing<CombineFactors> factors;
  const float *x, *z;
  float* y;
  __device__ void operator()(std::int64_t i) const {
    const CombineFactors by = factors.read();
    y[i] = by.a * x[i] + by.b * z[i];
  }
};

struct Multiply {
  const float* x;
  float* y;
  __device__ void operator()(std::int64_t i) const { y[i] *= x[i]; }
};

/// The offset in the images of a number of the patches.
struct PatchPlace {
  PatchShape shape;
  __device__ std::int64_t operator()(std::int64_t i) const {
    const std::int64_t size = shape.size, across = shape.width / size;
    const std::int64_t x = i % size, y = i / size % size;
    const std::int64_t channel = i / (size * size) % shape.channels;
    const std::int64_t patch = i / (size * size * shape.channels) % shape.patches();
    const std::int64_t image = i / (size * size * shape.channels * shape.patches());
    return ((image * shape.channels + channel) * shape.height + patch / across * size + y) *
               shape.width +
           patch % across * size + x;
  }
};

struct CutPatches {
  PatchPlace place;
  const float* images;
  float* patches;
  __device__ void operator()(std::int64_t i) const { patches[i] = images[place(i)]; }
};

struct JoinPatches {
  PatchPlace place;
  const float* patches;
  float* images;
  __device__ void operator()(std::int64_t i) const { images[place(i)] = patches[i]; }
};

std::int64_t numbers_of(const PatchShape& shape) {
  return shape.batch * shape.channels * shape.height * shape.width;
}

}  // namespace

cudaError_t look_for_code() {
  cudaFuncAttributes found;
  return cudaFuncGetAttributes(&found, walk<Fill>);
}

void fill(Stream& stream, float value, float* y, std::int64_t count) {
  for_elements(stream, count, Fill{value, y});
}
void copy_rows(Stream& stream, RowsIn from, RowsOut to, std::int64_t rows, std::int64_t columns) {
  for_elements(stream, rows * columns, Copy{from, to, columns});
}
void combine(Stream& stream, float a, const float* x, float b, const float* z, float* y,
             std::int64_t count) {
  for_elements(stream, count, Combine{queue_of(stream).changing(CombineFactors{a, b}), x, z, y});
}
void multiply(Stream& stream, const float* x, float* y, std::int64_t count) {
  for_elements(stream, count, Multiply{x, y});
}
void cut_patches(Stream& stream, const PatchShape& shape, const float* images, float* patches) {
  for_elements(stream, numbers_of(shape), CutPatches{{shape}, images, patches});
}
void join_patches(Stream& stream, const PatchShape& shape, const float* patches, float* images) {
  for_elements(stream, numbers_of(shape), JoinPatches{{shape}, patches, images});
}

}  // namespace troupe::kernels::cuda
