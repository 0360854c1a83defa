#include <algorithm>
#include <cassert>
#include <cstring>
#include <optional>

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

/// One of the two tensors, cut into samples.
struct Column {
  TensorView view;
  ReadInteger integer;  // Null if the elements are f32.
  Shape sample;
  std::optional<std::int64_t> ignore = {};  // An integer that is accepted besides.
  DType type() const { return integer ? DType::i32 : DType::f32; }
  std::size_t elements() const { return static_cast<std::size_t>(sample.count()); }

  bool accepts(std::int64_t value, std::int64_t classes) const {
    return (value >= 0 && value < classes) || value == ignore;
  }
  /// Copies a sample. Returns false if there is an integer that it does not accept.
  bool copy(std::int64_t index, std::span<std::byte> out, std::int64_t classes) const {
    const auto width = bytes_of(view.type);
    const auto* from = view.bytes.data() + static_cast<std::size_t>(index) * elements() * width;
    if (!integer) {
      std::memcpy(out.data(), from, out.size());
      return true;
    }
    for (std::size_t i = 0; i < elements(); ++i) {
      const auto value = integer(from + i * width);
      if (!accepts(value, classes)) return false;
      const auto narrow = static_cast<std::int32_t>(value);
      std::memcpy(&out[i * sizeof narrow], &narrow, sizeof narrow);
    }
    return true;
  }
};

class Tensors final : public Dataset {
 public:
  Tensors(std::string path, Safetensors file, Column input, Column target, std::int64_t classes)
      : path_(std::move(path)),
        file_(std::move(file)),
        input_(std::move(input)),
        target_(std::move(target)),
        shape_{input_.sample, input_.type(), target_.sample, target_.type()},
        classes_(classes) {}

  std::int64_t count() const override { return input_.view.shape[0]; }
  const SampleShape& shape() const override { return shape_; }
  std::int64_t classes() const override { return classes_; }
  std::string description() const override {
    return std::to_string(count()) + " samples, input " + to_string(shape_.input) + ", target " +
           to_string(shape_.target) + ", " + std::to_string(classes_) + " classes";
  }

  Status read(std::int64_t index, std::span<std::byte> input,
              std::span<std::byte> target) const override {
    assert(index >= 0 && index < count());
    assert(input.size() == shape_.input_bytes() && target.size() == shape_.target_bytes());
    if (auto same = file_.unchanged(); !same) return same;
    if (input_.copy(index, input, classes_) && target_.copy(index, target, classes_)) return Done{};
    return Error{path_ + ": changed while in use: sample " + std::to_string(index) +
                 " holds a class that was not there before"};
  }

 private:
  std::string path_;
  Safetensors file_;  // Owns the bytes of the columns.
  Column input_, target_;
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
  Column found{*view, integer, {}, {}};
  for (int i = 1; i < view->shape.rank(); ++i) found.sample.append(view->shape[i]);
  return found;
}

/// Returns the largest integer of a column. The error names the first that is not in [0, limit).
Result<std::int64_t> largest(const Column& column, std::int64_t limit) {
  std::int64_t most = 0;
  if (!column.integer) return most;
  const auto width = bytes_of(column.view.type);
  for (std::int64_t i = 0; i < column.view.shape.count(); ++i) {
    const auto value =
        column.integer(column.view.bytes.data() + static_cast<std::size_t>(i) * width);
    if (!column.accepts(value, limit))
      return Error{
          column.view.name + "[" +
          std::to_string(i / static_cast<std::int64_t>(column.elements())) + "] holds " +
          std::to_string(value) + "; the model has room for 0 to " + std::to_string(limit - 1) +
          (value < 0 && column.view.name == "target" ? ", and for model.loss.ignore" : "")};
    if (value < limit) most = std::max(most, value);
  }
  return most;
}

}  // namespace

Result<std::unique_ptr<Dataset>> open_tensors(DataSpec spec, const DataNeeds& needs, Files& files) {
  if (auto status = spec.finish(); !status) return status.error();
  const auto& path = spec.name();
  auto file = Safetensors::open(files, path);
  if (!file) return file.error();
  auto input = column(*file, "input");
  if (!input) return within(path, input.error());
  auto target = column(*file, "target");
  if (!target) return within(path, target.error());
  if (needs.ignore) target->ignore = *needs.ignore;
  if (input->view.shape[0] != target->view.shape[0])
    return Error{path + ": input has " + std::to_string(input->view.shape[0]) +
                 " samples and target " + std::to_string(target->view.shape[0]) +
                 "; as many were wanted"};
  const auto limit = needs.classes > 0 ? needs.classes : std::int64_t{INT32_MAX};
  const auto of_input = largest(*input, limit);
  if (!of_input) return within(path, of_input.error());
  const auto of_target = largest(*target, limit);
  if (!of_target) return within(path, of_target.error());
  const auto classes = std::max(*of_input, *of_target) + 1;
  return std::unique_ptr<Dataset>(std::make_unique<Tensors>(
      path, std::move(*file), std::move(*input), std::move(*target), classes));
}

}  // namespace troupe::storage
