#include <cassert>
#include <cstring>

#include "storage/data/made_data.h"

namespace troupe::storage {
namespace {

class Gaussians final : public Dataset {
 public:
  explicit Gaussians(const GaussianOptions& options)
      : options_(options), shape_{Shape{options.dims}, DType::f32, Shape{}, DType::i32} {
    for (std::int32_t label = 0; label < options.classes; ++label) {
      Draws draws({options.key.seed, source_stream}, label);
      centres_.push_back(point(draws));
    }
  }

  std::int64_t count() const override { return options_.samples; }
  const SampleShape& shape() const override { return shape_; }
  std::int64_t classes() const override { return options_.classes; }
  std::string description() const override {
    return "Gaussian clouds, " + std::to_string(options_.classes) + " classes in " +
           std::to_string(options_.dims) + " dimensions";
  }

  Status read(const Place& place, const SampleSpans& to) const override {
    const auto index = place.sample;
    const auto input = to.inputs[0], target = to.target;
    assert(index >= 0 && index < count());
    assert(to.fits(shape_));
    Draws draws(options_.key, index);
    const auto label = draws.between(0, options_.classes - 1);
    const auto& centre = centres_[static_cast<std::size_t>(label)];
    auto x = point(draws);
    const float spread = static_cast<float>(options_.spread) / 100.0f;
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = centre[i] + spread * x[i];
    std::memcpy(input.data(), x.data(), input.size());
    std::memcpy(target.data(), &label, sizeof label);
    return Done{};
  }

 private:
  std::vector<float> point(Draws& draws) const {
    std::vector<float> x;
    while (x.size() < static_cast<std::size_t>(options_.dims)) {
      const auto a = draws.next();
      const auto pair = normal_pair(a, draws.next());
      x.insert(x.end(), pair.begin(), pair.end());
    }
    x.resize(static_cast<std::size_t>(options_.dims));
    return x;
  }

  GaussianOptions options_;
  SampleShape shape_;
  std::vector<std::vector<float>> centres_;
};

}  // namespace

std::unique_ptr<Dataset> make_gaussians(const GaussianOptions& options) {
  return std::make_unique<Gaussians>(options);
}

}  // namespace troupe::storage
