#include <algorithm>
#include <cassert>
#include <cstring>

#include "core/text.h"
#include "storage/data/array_dataset.h"
#include "storage/data/idx.h"

namespace troupe::storage {
namespace {

class Images final : public Dataset {
 public:
  Images(IdxArray images, IdxArray labels, std::int64_t classes)
      : images_(std::move(images)), labels_(std::move(labels)), classes_(classes) {
    shape_.input_name = "image";
    if (images_.shape().rank() == 3) shape_.input.append(1);
    for (int i = 1; i < images_.shape().rank(); ++i) shape_.input.append(images_.shape()[i]);
  }

  std::int64_t count() const override { return images_.shape()[0]; }
  const SampleShape& shape() const override { return shape_; }
  std::int64_t classes() const override { return classes_; }
  std::string description() const override {
    return grouped(count()) + " images of " + to_string(shape_.input) + ", " +
           std::to_string(classes_) + " classes";
  }

  Status read(const Place& place, const SampleSpans& to) const override {
    const auto index = place.sample;
    const auto input = to.inputs[0], target = to.target;
    assert(index >= 0 && index < count());
    assert(to.fits(shape_));
    if (auto same = images_.unchanged(); !same) return same;
    if (auto same = labels_.unchanged(); !same) return same;
    const auto pixels = static_cast<std::size_t>(shape_.input.count());
    const auto own = images_.values().subspan(static_cast<std::size_t>(index) * pixels, pixels);
    for (std::size_t i = 0; i < pixels; ++i) {
      const float pixel = static_cast<float>(own[i]) / 255.0f;
      std::memcpy(&input[i * sizeof pixel], &pixel, sizeof pixel);
    }
    const std::int32_t label = labels_.values()[static_cast<std::size_t>(index)];
    std::memcpy(target.data(), &label, sizeof label);
    return Done{};
  }

 private:
  IdxArray images_, labels_;
  std::int64_t classes_;
  SampleShape shape_;
};

}  // namespace

std::optional<std::string> labels_beside(const std::string& path) {
  const auto name = path.rfind("images");
  if (name == std::string::npos || name < path.size() - name_of(path).size()) return {};
  auto labels = path;
  labels.replace(name, std::string_view("images").size(), "labels");
  const auto rank = labels.find("idx", name);
  if (rank != std::string::npos && rank + 3 < labels.size() &&
      (labels[rank + 3] == '3' || labels[rank + 3] == '4'))
    labels[rank + 3] = '1';
  return labels;
}

Result<std::unique_ptr<Dataset>> open_images(DataSpec spec, const DataNeeds& needs, Files& files) {
  const auto& path = spec.name();
  auto labels_path = spec.text("labels");
  if (auto status = spec.finish(); !status) return status.error();
  if (!labels_path) labels_path = labels_beside(path);
  if (!labels_path)
    return Error{path + ": the labels are missing; name them: " + path + "?labels=PATH"};
  auto images = IdxArray::open(files, path);
  if (!images) return images.error();
  auto labels = IdxArray::open(files, *labels_path);
  if (!labels) return labels.error();

  const auto& shape = images->shape();
  if (shape.rank() != 3 && shape.rank() != 4)
    return Error{path + ": has shape " + to_string(shape) +
                 "; images of [n, height, width] or [n, channels, height, width] were wanted"};
  if (labels->shape() != Shape{shape[0]})
    return Error{*labels_path + ": has shape " + to_string(labels->shape()) +
                 "; one label for each " + "of the " + std::to_string(shape[0]) + " images of " +
                 path + " was wanted"};
  const auto values = labels->values();
  const auto largest = std::max_element(values.begin(), values.end());
  if (needs.classes > 0 && *largest >= needs.classes)
    return Error{*labels_path + ": label " + std::to_string(largest - values.begin()) + " is " +
                 std::to_string(*largest) + ", but the model has " + std::to_string(needs.classes) +
                 " classes; set model.classes to more than the largest label"};
  const std::int64_t classes = *largest + 1;
  return std::unique_ptr<Dataset>(
      std::make_unique<Images>(std::move(*images), std::move(*labels), classes));
}

}  // namespace troupe::storage
