#include "kernels/cuda/cudnn/descriptor.h"

#include <algorithm>
#include <utility>

#include "kernels/cuda/cudnn/library.h"

namespace troupe::kernels::cudnn {
namespace {

constexpr std::size_t longest_words = 1 << 15;

/// Returns whether an outcome belongs to a category.
constexpr bool is_a(cudnnStatus_t category, cudnnStatus_t outcome) {
  return CUDNN_STATUS_CATEGORY(outcome) == category;
}

/// Returns whether compiling or loading kernels failed, which finalizing a plan does. Running out
/// of memory does not count: the outcome, and with it the bits, would depend on the day.
constexpr bool is_of_kernels(cudnnStatus_t outcome) {
  return outcome == CUDNN_STATUS_INTERNAL_ERROR_COMPILATION_FAILED ||
         is_a(CUDNN_STATUS_EXECUTION_FAILED, outcome);
}

}  // namespace

void check(cudnnStatus_t outcome) {
  if (outcome == CUDNN_STATUS_SUCCESS) return;
  const std::string reason = last_words();
  const std::string text =
      std::string(library()->text_of(outcome)) + (reason.empty() ? "" : ": " + reason);
  if (is_a(CUDNN_STATUS_NOT_SUPPORTED, outcome)) throw NotSupported(text);
  if (is_of_kernels(outcome)) throw WayFailed(text);
  throw std::runtime_error(text);
}

std::string last_words() {
  std::string said(longest_words, '\0');
  library()->last_words(said.data(), said.size());
  said.resize(said.find('\0'));
  return said;
}

Descriptor::Descriptor(cudnnBackendDescriptorType_t type) {
  check(library()->create_descriptor(type, &raw_));
}

Descriptor::~Descriptor() {
  if (raw_) (void)library()->destroy_descriptor(raw_);
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
  check(library()->set_attribute(raw_, name, type, count, values));
}

void Descriptor::finalize() { check(library()->finalize(raw_)); }

std::size_t Descriptor::get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                            std::size_t most, void* values) const {
  std::int64_t count = 0;
  check(
      library()->get_attribute(raw_, name, type, static_cast<std::int64_t>(most), &count, values));
  return std::min(most, static_cast<std::size_t>(count));
}

std::int64_t Descriptor::integer(cudnnBackendAttributeName_t name) const {
  return values<std::int64_t>(name, 1).at(0);
}

std::vector<Descriptor> Descriptor::parts(cudnnBackendAttributeName_t name,
                                          cudnnBackendDescriptorType_t type,
                                          std::size_t most) const {
  // cuDNN fills existing descriptors.
  std::vector<Descriptor> parts;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (std::size_t i = 0; i < most; ++i) raw.push_back(parts.emplace_back(type).raw_);
  const auto count = get(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, raw.size(), raw.data());
  while (parts.size() > count) parts.pop_back();
  return parts;
}

}  // namespace troupe::kernels::cudnn
