#include "storage/data/example_dataset.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>
#include <vector>

#include "storage/data/documents.h"

namespace troupe::storage {
namespace {

class ExampleDataset final : public Dataset {
 public:
  ExampleDataset(std::int64_t context, std::int32_t ignore, std::int32_t padding)
      : shape_{Shape{context}, DType::i32, Shape{context}, DType::i32, "tokens"},
        ignore_(ignore),
        padding_(padding) {}

  void add(const Example& example) {
    const auto context = static_cast<std::size_t>(shape_.input.last());
    std::vector<std::int32_t> tokens = example.prompt;
    tokens.insert(tokens.end(), example.answer.begin(), example.answer.end());
    const bool is_cut = tokens.size() > context + 1;
    if (is_cut) tokens.resize(context + 1);
    const auto first =
        tokens.begin() + static_cast<std::ptrdiff_t>(std::min(
                             std::max<std::size_t>(1, example.prompt.size()), tokens.size()));
    if (std::all_of(first, tokens.end(), [&](auto token) { return token == ignore_; })) {
      ++left_out_;
      return;
    }
    cut_ += is_cut ? 1 : 0;
    for (const auto token : tokens) classes_ = std::max(classes_, std::int64_t{token} + 1);
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
    samples_.push_back({tokens_.size(), example.prompt.size()});
  }
  void set_least_classes(std::int64_t classes) { classes_ = std::max(classes_, classes); }

  std::int64_t count() const override { return static_cast<std::int64_t>(samples_.size()); }
  const SampleShape& shape() const override { return shape_; }
  std::int64_t classes() const override { return classes_; }
  std::string description() const override {
    const auto context = std::to_string(shape_.input.last());
    std::string text = std::to_string(count()) + " prompts with answers";
    if (cut_ > 0) text += ", " + std::to_string(cut_) + " of them cut to " + context + " tokens";
    if (left_out_ > 0)
      text += "; " + std::to_string(left_out_) + " more left out, because " + context +
              " tokens have no room for the prompt and an answer";
    return text;
  }

  Status read(const Place& place, const SampleSpans& to) const override {
    const auto index = place.sample;
    const auto input = to.inputs[0], target = to.target;
    assert(index >= 0 && index < count());
    assert(to.fits(shape_));
    const auto at = static_cast<std::size_t>(index);
    const auto first = at == 0 ? 0 : samples_[at - 1].end;
    const std::span tokens(tokens_.data() + first, samples_[at].end - first);
    const auto context = static_cast<std::size_t>(shape_.input.last());
    std::vector<std::int32_t> inputs(context, padding_), targets(context, ignore_);
    std::copy_n(tokens.begin(), std::min(tokens.size(), context), inputs.begin());
    for (auto i = std::max<std::size_t>(1, samples_[at].prompt); i < tokens.size(); ++i)
      targets[i - 1] = tokens[i];
    std::memcpy(input.data(), inputs.data(), input.size());
    std::memcpy(target.data(), targets.data(), target.size());
    return Done{};
  }

 private:
  struct Sample {
    std::size_t end = 0;     // In tokens_.
    std::size_t prompt = 0;  // The tokens of its prompt.
  };

  SampleShape shape_;
  std::int32_t ignore_, padding_;
  std::vector<std::int32_t> tokens_;  // All samples, one after another.
  std::vector<Sample> samples_;
  std::int64_t classes_ = 1;
  std::int64_t cut_ = 0, left_out_ = 0;
};

}  // namespace

Result<std::unique_ptr<Dataset>> make_example_dataset(const std::string& path,
                                                      std::string_view contents,
                                                      const Tokenizer* tokenizer,
                                                      const DataNeeds& needs) {
  if (!needs.ignore)
    return Error{path +
                 ": has prompts with answers, of which the answers alone count; set "
                 "model.loss.ignore = -100, the target that stands for the others"};
  const auto* end = tokenizer ? tokenizer->end_of_text() : nullptr;
  auto dataset = std::make_unique<ExampleDataset>(needs.context, *needs.ignore, end ? end->id : 0);
  const auto status = for_each_example(path, contents, tokenizer, [&](Example example) -> Status {
    for (const auto* part : {&example.prompt, &example.answer})
      for (const auto token : *part)
        if (needs.classes > 0 && token >= needs.classes)
          return Error{"the example has the token " + std::to_string(token) +
                       ", but the model's vocabulary has " + std::to_string(needs.classes) +
                       "; set model.vocab to more than the largest token, or to \"auto\""};
    dataset->add(example);
    return Done{};
  });
  if (!status) return status.error();
  if (dataset->count() == 0)
    return Error{path + ": has no prompt that leaves room for an answer in model.context = " +
                 std::to_string(needs.context) + " tokens"};
  dataset->set_least_classes(tokenizer ? tokenizer->vocabulary() : 0);
  return std::unique_ptr<Dataset>(std::move(dataset));
}

}  // namespace troupe::storage
