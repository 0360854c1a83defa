#include <algorithm>
#include <cassert>
#include <cstring>
#include <optional>

#include "core/text.h"
#include "storage/data/array_dataset.h"
#include "storage/files/safetensors.h"

namespace troupe::storage {
namespace {

/// Reads an integer of any type in the format, from bytes of any alignment.
template <class T>
std::int64_t integer_at(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return static_cast<std::int64_t>(value);
}

using ReadInteger = std::int64_t (*)(const std::byte*);

/// Returns null for a type that is no integer, or that does not fit into i64.
ReadInteger integer_reader(StoredType type) {
  switch (type) {
    case StoredType::u8:
      return integer_at<std::uint8_t>;
    case StoredType::i8:
      return integer_at<std::int8_t>;
    case StoredType::i16:
      return integer_at<std::int16_t>;
    case StoredType::u16:
      return integer_at<std::uint16_t>;
    case StoredType::i32:
      return integer_at<std::int32_t>;
    case StoredType::u32:
      return integer_at<std::uint32_t>;
    case StoredType::i64:
      return integer_at<std::int64_t>;
    case StoredType::boolean:
    case StoredType::f8_e5m2:
    case StoredType::f8_e4m3:
    case StoredType::f16:
    case StoredType::bf16:
    case StoredType::f32:
    case StoredType::f64:
    case StoredType::u64:
      return nullptr;
  }
  return nullptr;
}

/// Copies numbers from bytes of any alignment.
std::vector<float> floats_of(std::span<const std::byte> bytes) {
  std::vector<float> numbers(bytes.size() / sizeof(float));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

/// A tensor, cut into samples.
struct Column {
  TensorView view;
  ReadInteger integer;  // Null if the elements are f32.
  Shape sample;
  std::int64_t limit = INT32_MAX;  // Integers are in [0, limit).
  bool are_spans = false;          // Integers are pairs, whose first is not behind the end.
  std::optional<std::int64_t> ignore = {};  // An integer that is accepted besides.
  std::optional<NumberBounds> bounds = {};  // The bounds of f32.
  DType type() const { return integer ? DType::i32 : DType::f32; }
  std::size_t elements() const { return static_cast<std::size_t>(sample.count()); }

  bool accepts(std::int64_t value) const {
    return (value >= 0 && value < limit) || value == ignore;
  }
  /// Copies a sample. Returns false if there is a number that it does not accept.
  bool copy(std::int64_t index, std::span<std::byte> out) const {
    const auto width = bytes_of(view.type);
    const auto* from = view.bytes.data() + static_cast<std::size_t>(index) * elements() * width;
    if (!integer) {
      std::memcpy(out.data(), from, out.size());
      return !bounds || out_of_bounds(floats_of(out), *bounds, {}).empty();
    }
    for (std::size_t i = 0; i < elements(); ++i) {
      const auto value = integer(from + i * width);
      if (!accepts(value)) return false;
      if (are_spans && i % 2 == 1 && value < integer(from + (i - 1) * width)) return false;
      const auto narrow = static_cast<std::int32_t>(value);
      std::memcpy(&out[i * sizeof narrow], &narrow, sizeof narrow);
    }
    return true;
  }
};

/// Returns the names of the tensors that may be inputs.
std::vector<std::string> names_in(const Safetensors& file) {
  std::vector<std::string> names;
  for (const auto& tensor : file.tensors())
    if (tensor.name != "target") names.push_back(tensor.name);
  return names;
}

class Tensors final : public Dataset {
 public:
  Tensors(std::string path, Safetensors file, std::vector<Column> inputs, Column target,
          std::int64_t classes)
      : path_(std::move(path)),
        file_(std::move(file)),
        inputs_(std::move(inputs)),
        target_(std::move(target)),
        shape_{inputs_[0].sample, inputs_[0].type(), target_.sample, target_.type()},
        classes_(classes) {
    shape_.input_name = inputs_[0].view.name;
    for (std::size_t i = 1; i < inputs_.size(); ++i)
      shape_.more.push_back({inputs_[i].view.name, inputs_[i].sample, inputs_[i].type()});
  }

  std::vector<std::string> fields() const override { return names_in(file_); }
  std::int64_t count() const override { return target_.view.shape[0]; }
  const SampleShape& shape() const override { return shape_; }
  std::int64_t classes() const override { return classes_; }
  std::string description() const override {
    const bool are_numbers = shape_.target_type == DType::f32;
    return grouped(count()) + " samples, input " + to_string(shape_.input) + ", target " +
           to_string(shape_.target) +
           (are_numbers ? " of numbers" : ", " + std::to_string(classes_) + " classes");
  }

  Status read(const Place& place, const SampleSpans& to) const override {
    const auto index = place.sample;
    assert(index >= 0 && index < count());
    assert(to.fits(shape_));
    if (auto same = file_.unchanged(); !same) return same;
    bool is_good = target_.copy(index, to.target);
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      is_good &= inputs_[i].copy(index, to.inputs[i]);
    if (is_good) return Done{};
    return Error{path_ + ": changed while in use: sample " + std::to_string(index) +
                 (target_.integer ? " holds a class that was not there before"
                                  : " holds a target that was not there before")};
  }

 private:
  std::string path_;
  Safetensors file_;  // Owns the bytes of the columns.
  std::vector<Column> inputs_;
  Column target_;
  SampleShape shape_;
  std::int64_t classes_;
};

Result<Column> column(const Safetensors& file, const std::string& name) {
  const auto* view = file.find(name);
  if (!view)
    return Error{"there is no tensor \"" + name + "\"; data has an `input` and a `target`"};
  const auto integer = integer_reader(view->type);
  if (!integer && view->type != StoredType::f32)
    return Error{name + " has elements of type " + std::string(to_string(view->type)) +
                 "; F32 or an integer type was wanted"};
  if (view->shape.rank() < 1 || view->shape.count() == 0)
    return Error{name + " has shape " + to_string(view->shape) +
                 "; at least one sample was wanted, the samples along the first dimension"};
  Column found{.view = *view, .integer = integer, .sample = {}};
  for (int i = 1; i < view->shape.rank(); ++i) found.sample.append(view->shape[i]);
  return found;
}

/// Returns an error that names the first sample of an f32 column with a number out of its bounds.
Status check_numbers(const Column& column) {
  if (!column.bounds) return Done{};
  const auto size = column.elements() * sizeof(float);
  for (std::int64_t sample = 0; sample < column.view.shape[0]; ++sample) {
    const std::span from(column.view.bytes.data() + static_cast<std::size_t>(sample) * size, size);
    const auto fault = out_of_bounds(floats_of(from), *column.bounds,
                                     column.view.name + "[" + std::to_string(sample) + "]");
    if (!fault.empty()) return Error{"found " + fault};
  }
  return Done{};
}

/// Returns the largest integer of a column. The error names the first that the column does not
/// accept.
Result<std::int64_t> largest(const Column& column) {
  std::int64_t most = 0, before = 0;
  if (!column.integer) return most;
  const auto width = bytes_of(column.view.type);
  for (std::int64_t i = 0; i < column.view.shape.count(); ++i) {
    const auto value =
        column.integer(column.view.bytes.data() + static_cast<std::size_t>(i) * width);
    const auto place = [&] {
      return column.view.name + "[" +
             std::to_string(i / static_cast<std::int64_t>(column.elements())) + "]";
    };
    if (!column.accepts(value))
      return Error{
          place() + " holds " + std::to_string(value) + "; the model has room for 0 to " +
          std::to_string(column.limit - 1) +
          (value < 0 && column.view.name == "target" ? ", and for model.loss.ignore" : "")};
    if (column.are_spans && i % 2 == 1 && value < before)
      return Error{place() + " holds a span from " + std::to_string(before) + " to " +
                   std::to_string(value) + "; a span does not end before its first"};
    before = value;
    if (value < column.limit) most = std::max(most, value);
  }
  return most;
}

/// Returns the columns that a model takes as its inputs.
Result<std::vector<Column>> input_columns(const Safetensors& file, const DataNeeds& needs,
                                          std::int64_t limit) {
  std::vector<Column> columns;
  if (needs.inputs.empty()) {
    auto input = column(file, "input");
    if (!input) return input.error();
    input->limit = limit;
    columns.push_back(std::move(*input));
  }
  for (const auto& [field, bounds, of_vocabulary] : needs.inputs) {
    auto input = column(file, field.name);
    if (!input) return input.error();
    if (bounds.below > 0) input->limit = bounds.below;
    input->are_spans = bounds.are_spans && input->sample.last() == 2;
    columns.push_back(std::move(*input));
  }
  return columns;
}

}  // namespace

Result<std::unique_ptr<Dataset>> open_tensors(DataSpec spec, const DataNeeds& needs, Files& files) {
  if (auto status = spec.finish(); !status) return status.error();
  const auto& path = spec.name();
  auto file = Safetensors::open(files, path);
  if (!file) return file.error();
  if (auto good = check_offered(path, names_in(*file), needs); !good) return good.error();
  const auto limit = needs.classes > 0 ? needs.classes : std::int64_t{INT32_MAX};
  auto inputs = input_columns(*file, needs, limit);
  if (!inputs) return within(path, inputs.error());
  auto target = column(*file, "target");
  if (!target) return within(path, target.error());
  target->limit = limit;
  if (needs.ignore) target->ignore = *needs.ignore;
  if (!target->integer) target->bounds = needs.target_bounds;
  // Several inputs have bounds of their own, unless they are below the vocabulary.
  const auto counts = [&](std::size_t i) {
    return needs.inputs.empty() || needs.inputs[i].of_vocabulary;
  };
  std::int64_t most = 0;
  for (std::size_t i = 0; i < inputs->size(); ++i) {
    const auto& input = (*inputs)[i];
    if (input.view.shape[0] != target->view.shape[0])
      return Error{path + ": " + input.view.name + " has " + std::to_string(input.view.shape[0]) +
                   " samples and target " + std::to_string(target->view.shape[0]) +
                   "; as many were wanted"};
    const auto of_input = largest(input);
    if (!of_input) return within(path, of_input.error());
    if (counts(i)) most = std::max(most, *of_input);
  }
  if (auto good = check_numbers(*target); !good) return within(path, good.error());
  const auto of_target = largest(*target);
  if (!of_target) return within(path, of_target.error());
  const auto classes = std::max(most, *of_target) + 1;
  for (std::size_t i = 0; i < inputs->size(); ++i)
    if (counts(i)) (*inputs)[i].limit = classes;
  if (counts(0)) target->limit = classes;
  return std::unique_ptr<Dataset>(std::make_unique<Tensors>(
      path, std::move(*file), std::move(*inputs), std::move(*target), classes));
}

}  // namespace troupe::storage
