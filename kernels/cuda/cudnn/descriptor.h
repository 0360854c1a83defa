#pragma once

#include <cudnn_graph.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace troupe::kernels::cudnn {

/// Returns cuDNN's messages since the last call, in many lines; empty if there are none.
std::string last_words();

/// A failure of a compiler or the driver. Another engine may still compute the graph.
class WayFailed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// cuDNN's refusal of something that it cannot do, as opposed to an error.
class NotSupported : public WayFailed {
 public:
  using WayFailed::WayFailed;
};

/// Throws an error with cuDNN's messages if the call failed.
void check(cudnnStatus_t outcome);

/// cuDNN's name for the type of an attribute.
template <class T>
constexpr cudnnBackendAttributeType_t attribute_type = CUDNN_TYPE_BACKEND_DESCRIPTOR;
template <>
constexpr cudnnBackendAttributeType_t attribute_type<std::int32_t> = CUDNN_TYPE_INT32;
template <>
constexpr cudnnBackendAttributeType_t attribute_type<std::int64_t> = CUDNN_TYPE_INT64;
template <>
constexpr cudnnBackendAttributeType_t attribute_type<bool> = CUDNN_TYPE_BOOLEAN;
template <>
constexpr cudnnBackendAttributeType_t attribute_type<float> = CUDNN_TYPE_FLOAT;
template <>
constexpr cudnnBackendAttributeType_t attribute_type<char> = CUDNN_TYPE_CHAR;
template <>
constexpr cudnnBackendAttributeType_t attribute_type<cudnnDataType_t> = CUDNN_TYPE_DATA_TYPE;
template <>
constexpr cudnnBackendAttributeType_t attribute_type<cudnnPointwiseMode_t> =
    CUDNN_TYPE_POINTWISE_MODE;
template <>
constexpr cudnnBackendAttributeType_t attribute_type<cudnnReduceTensorOp_t> =
    CUDNN_TYPE_REDUCTION_OPERATOR_TYPE;
template <>
constexpr cudnnBackendAttributeType_t attribute_type<cudnnConvolutionMode_t> =
    CUDNN_TYPE_CONVOLUTION_MODE;
template <>
constexpr cudnnBackendAttributeType_t attribute_type<cudnnBackendHeurMode_t> = CUDNN_TYPE_HEUR_MODE;
template <>
constexpr cudnnBackendAttributeType_t attribute_type<cudnnBackendNumericalNote_t> =
    CUDNN_TYPE_NUMERICAL_NOTE;
template <>
constexpr cudnnBackendAttributeType_t attribute_type<cudnnHandle_t> = CUDNN_TYPE_HANDLE;
template <>
constexpr cudnnBackendAttributeType_t attribute_type<void*> = CUDNN_TYPE_VOID_PTR;

/// An object of cuDNN's backend: it is created empty, gets its attributes and is finalized. Objects
/// that attributes refer to must outlive it. Throws cuDNN's messages if cuDNN refuses anything.
class Descriptor {
 public:
  explicit Descriptor(cudnnBackendDescriptorType_t type);
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) = delete;

  template <class T>
  void set(cudnnBackendAttributeName_t name, const T& value) {
    set(name, attribute_type<T>, 1, &value);
  }
  template <class T>
  void set(cudnnBackendAttributeName_t name, std::span<const T> values) {
    set(name, attribute_type<T>, static_cast<std::int64_t>(values.size()), values.data());
  }
  void set(cudnnBackendAttributeName_t name, const Descriptor& value);
  void set(cudnnBackendAttributeName_t name, const std::vector<Descriptor>& values);
  void finalize();

  std::int64_t integer(cudnnBackendAttributeName_t name) const;
  /// Returns the first `most` values of an attribute.
  template <class T>
  std::vector<T> values(cudnnBackendAttributeName_t name, std::size_t most) const {
    std::vector<T> values(most);
    values.resize(get(name, attribute_type<T>, most, values.data()));
    return values;
  }
  /// Returns the first `most` descriptors of an attribute.
  std::vector<Descriptor> parts(cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type,
                                std::size_t most) const;

  cudnnBackendDescriptor_t raw() const { return raw_; }

 private:
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count,
           const void* values);
  std::size_t get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                  std::size_t most, void* values) const;

  cudnnBackendDescriptor_t raw_ = nullptr;
};

}  // namespace troupe::kernels::cudnn
