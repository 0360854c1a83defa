#include "kernels/cuda/cudnn/descriptor.h"

#include <stdexcept>
#include <utility>

namespace troupe::kernels::cudnn {
namespace {

constexpr std::size_t longest_words = 1 << 15;

void check(cudnnStatus_t outcome) {
  if (outcome == CUDNN_STATUS_SUCCESS) return;
  const std::string reason = last_words();
  throw std::runtime_error(std::string(cudnnGetErrorString(outcome)) +
                           (reason.empty() ? "" : ": " + reason));
}

}  // namespace

std::string last_words() {
  std::string said(longest_words, '\0');
  cudnnGetLastErrorString(said.data(), said.size());
  said.resize(said.find('\0'));
  return said;
}

Descriptor::Descriptor(cudnnBackendDescriptorType_t type) {
  check(cudnnBackendCreateDescriptor(type, &raw_));
}

Descriptor::~Descriptor() {
  if (raw_) (void)cudnnBackendDestroyDescriptor(raw_);
}

Descriptor::Descriptor(Descriptor&& other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}

void Descriptor::set(cudnnBackendAttributeName_t name, const Descriptor& value) {
  set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value.raw_);
}

void Descriptor::set(cudnnBackendAttributeName_t name, const std::vector<Descriptor>& values) {
  std::vector<cudnnBackendDescriptor_t> raw;
  raw.reserve(values.size());
  for (const auto& value : values) raw.push_back(value.raw_);
  set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<std::int64_t>(raw.size()), raw.data());
}

void Descriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                     std::int64_t count, const void* values) {
  check(cudnnBackendSetAttribute(raw_, name, type, count, values));
}

void Descriptor::finalize() { check(cudnnBackendFinalize(raw_)); }

std::int64_t Descriptor::integer(cudnnBackendAttributeName_t name) const {
  std::int64_t count = 0, value = 0;
  check(cudnnBackendGetAttribute(raw_, name, CUDNN_TYPE_INT64, 1, &count, &value));
  return value;
}

std::vector<Descriptor> Descriptor::parts(cudnnBackendAttributeName_t name,
                                          cudnnBackendDescriptorType_t type,
                                          std::size_t most) const {
  // cuDNN fills in descriptors that are there already.
  std::vector<Descriptor> parts;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (std::size_t i = 0; i < most; ++i) raw.push_back(parts.emplace_back(type).raw_);
  std::int64_t count = 0;
  check(cudnnBackendGetAttribute(raw_, name, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                 static_cast<std::int64_t>(raw.size()), &count, raw.data()));
  while (static_cast<std::int64_t>(parts.size()) > count) parts.pop_back();
  return parts;
}

}  // namespace troupe::kernels::cudnn
