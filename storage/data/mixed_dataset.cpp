#include "storage/data/mixed_dataset.h"

#include <algorithm>
#include <cassert>

#include "core/text.h"

namespace troupe::storage {
namespace {

class MixedDataset final : public Dataset {
 public:
  explicit MixedDataset(std::string mixture) : mixture_(std::move(mixture)) {}

  void add(std::shared_ptr<const Dataset> source) {
    firsts_.push_back(count_);
    count_ += source->count();
    classes_ = std::max(classes_, source->classes());
    sources_.push_back(std::move(source));
  }

  std::int64_t count() const override { return count_; }
  const SampleShape& shape() const override { return sources_.front()->shape(); }
  std::int64_t classes() const override { return classes_; }
  std::string description() const override {
    return "a mixture of " + mixture_ + ", " + grouped(count_) + " samples";
  }

  std::vector<std::string> fields() const override { return sources_.front()->fields(); }

  Status read(const Place& place, const SampleSpans& to) const override {
    assert(place.sample >= 0 && place.sample < count_);
    const auto behind = std::ranges::upper_bound(firsts_, place.sample);
    const auto source = static_cast<std::size_t>(behind - firsts_.begin()) - 1;
    return sources_[source]->read({place.pass, place.sample - firsts_[source]}, to);
  }

 private:
  std::string mixture_;
  std::vector<std::shared_ptr<const Dataset>> sources_;
  std::vector<std::int64_t> firsts_;  // The number of the first sample of each source.
  std::int64_t count_ = 0, classes_ = 0;
};

bool same_samples(const SampleShape& a, const SampleShape& b) {
  return a.input == b.input && a.input_type == b.input_type && a.target == b.target &&
         a.target_type == b.target_type && a.more == b.more;
}

}  // namespace

Result<OpenedMixture> open_mixture(const Mixture& mixture, const DataNeeds& needs, Files& files) {
  OpenedMixture opened;
  auto mixed = std::make_shared<MixedDataset>(mixture.text());
  for (const auto& source : mixture.sources) {
    auto data = open_data(source, needs, files);
    if (!data) return within(source, data.error());
    const auto& shape = data->dataset->shape();
    if (!opened.counts.empty() && !same_samples(shape, mixed->shape()))
      return Error{source + ": has samples of " + to_string(shape.input) + ", and \"" +
                   mixture.sources.front() + "\" has samples of " +
                   to_string(mixed->shape().input) + "; samples of one shape can be mixed"};
    opened.counts.push_back(data->dataset->count());
    mixed->add(std::move(data->dataset));
    // A file of two sources, such as a tokenizer, counts once.
    for (auto& file : data->files)
      if (std::ranges::find(opened.data.files, file) == opened.data.files.end())
        opened.data.files.push_back(std::move(file));
  }
  opened.data.dataset = std::move(mixed);
  return opened;
}

}  // namespace troupe::storage
