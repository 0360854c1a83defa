#pragma once

#include <cudnn_graph.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace troupe::kernels::cudnn {

/// What cuDNN has said since it was asked last, in many lines; empty if nothing.
std::string last_words();

/// What cuDNN calls the type of an attribute.
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

/// A thing of cuDNN's backend: made empty, then given its attributes, then finalized. What an
/// attribute refers to must outlive it. Whatever cuDNN refuses is thrown, in its words.
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
  /// The descriptors that an attribute has, the first `most` of them.
  std::vector<Descriptor> parts(cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type,
                                std::size_t most) const;

 private:
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count,
           const void* values);

  cudnnBackendDescriptor_t raw_ = nullptr;
};

}  // namespace troupe::kernels::cudnn
