#include "storage/data/example_dataset.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>
#include <vector>

#include "core/text.h"
#include "storage/data/documents.h"

namespace troupe::storage {
namespace {

/// Samples of two texts each, one behind the other in memory.
class ExampleDataset final : public Dataset {
 public:
  ExampleDataset(const DataNeeds& needs, std::int32_t padding)
      : context_(length_of(needs, "tokens", needs.context)),
        ignore_(*needs.ignore),
        padding_(padding),
        shape_(shape_for(needs, fields_of_text(context_), {context_})) {}

  void add(const Example& example) {
    const auto context = static_cast<std::size_t>(context_);
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
    const auto context = std::to_string(context_);
    std::string text = grouped(count()) + " prompts with answers";
    if (cut_ > 0) text += ", " + grouped(cut_) + " of them cut to " + context + " tokens";
    if (left_out_ > 0)
      text += "; " + grouped(left_out_) + " more left out, because " + context +
              " tokens have no room for the prompt and an answer";
    return text;
  }

  std::vector<std::string> fields() const override { return names_of(fields_of_text(context_)); }

  Status read(const Place& place, const SampleSpans& to) const override {
    assert(place.sample >= 0 && place.sample < count());
    assert(to.fits(shape_));
    const auto at = static_cast<std::size_t>(place.sample);
    const auto first = at == 0 ? 0 : samples_[at - 1].end;
    const std::span tokens(tokens_.data() + first, samples_[at].end - first);
    const auto own = tokens.first(std::min(tokens.size(), static_cast<std::size_t>(context_)));
    const Window window{.tokens = {own.begin(), own.end()},
                        .behind = {},
                        .ends = {static_cast<std::int64_t>(own.size())}};
    auto made = sample_of_text(window, context_, padding_, ignore_);
    for (auto i = std::max<std::size_t>(1, samples_[at].prompt); i < tokens.size(); ++i)
      made.target[i - 1] = tokens[i];
    made.write(shape_, to);
    return Done{};
  }

 private:
  struct Sample {
    std::size_t end = 0;     // In tokens_.
    std::size_t prompt = 0;  // The tokens of its prompt.
  };

  std::int64_t context_;
  std::int32_t ignore_, padding_;
  SampleShape shape_;
  std::vector<std::int32_t> tokens_;  // All samples, one after another.
  std::vector<Sample> samples_;
  std::int64_t classes_ = 1;
  std::int64_t cut_ = 0, left_out_ = 0;
};

/// Cuts a text to a length. The tokens that end it stay.
void cut_to(std::int64_t length, std::size_t ending, std::vector<std::int32_t>& tokens) {
  const auto most = static_cast<std::size_t>(length);
  if (tokens.size() <= most) return;
  const auto kept = std::min(ending, most);
  const auto behind = tokens.end() - static_cast<std::ptrdiff_t>(kept);
  tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(most - kept), behind);
}

/// Sources that an encoder reads, and targets that a decoder writes.
class PairDataset final : public Dataset {
 public:
  PairDataset(const PairForm& form, const DataNeeds& needs)
      : form_(form), shape_(shape_for(needs, form.offers(), {form.target})) {}

  void add(Example pair) {
    cut_ += static_cast<std::int64_t>(pair.prompt.size()) > form_.source ||
            static_cast<std::int64_t>(pair.answer.size()) > form_.target;
    cut_to(form_.source, pair.prompt_ending, pair.prompt);
    cut_to(form_.target, pair.answer_ending, pair.answer);
    for (const auto* part : {&pair.prompt, &pair.answer}) {
      for (const auto token : *part) classes_ = std::max(classes_, std::int64_t{token} + 1);
      tokens_.insert(tokens_.end(), part->begin(), part->end());
      ends_.push_back(tokens_.size());
    }
  }
  void set_least_classes(std::int64_t classes) { classes_ = std::max(classes_, classes); }

  std::int64_t count() const override { return static_cast<std::int64_t>(ends_.size() / 2); }
  const SampleShape& shape() const override { return shape_; }
  std::int64_t classes() const override { return classes_; }
  std::vector<std::string> fields() const override { return names_of(form_.offers()); }
  std::string description() const override {
    std::string text = grouped(count()) + " sources with targets";
    if (cut_ > 0)
      text += ", " + grouped(cut_) + " of them cut to " + std::to_string(form_.source) + " and " +
              std::to_string(form_.target) + " tokens";
    return text;
  }

  Status read(const Place& place, const SampleSpans& to) const override {
    assert(place.sample >= 0 && place.sample < count());
    assert(to.fits(shape_));
    const auto at = static_cast<std::size_t>(place.sample) * 2;
    form_.make(text(at), text(at + 1)).write(shape_, to);
    return Done{};
  }

 private:
  std::vector<std::int32_t> text(std::size_t number) const {
    const auto first = number == 0 ? 0 : ends_[number - 1];
    return {tokens_.begin() + static_cast<std::ptrdiff_t>(first),
            tokens_.begin() + static_cast<std::ptrdiff_t>(ends_[number])};
  }

  PairForm form_;
  SampleShape shape_;
  std::vector<std::int32_t> tokens_;  // All texts, one after another: a source, its target, ...
  std::vector<std::size_t> ends_;
  std::int64_t classes_ = 1;
  std::int64_t cut_ = 0;
};

/// Cuts two texts to a length of both: always the longer one, and of equal ones the second.
void cut_both_to(std::int64_t length, Example& texts) {
  auto first = std::ssize(texts.prompt), second = std::ssize(texts.answer);
  while (first + second > length) --(first > second ? first : second);
  cut_to(first, texts.prompt_ending, texts.prompt);
  cut_to(second, texts.answer_ending, texts.answer);
}

/// First and second texts, one behind the other.
class SentenceDataset final : public Dataset {
 public:
  explicit SentenceDataset(std::int64_t context) : context_(context) {}

  void add(Example texts) {
    cut_ += std::ssize(texts.prompt) + std::ssize(texts.answer) > context_ ? 1 : 0;
    cut_both_to(context_, texts);
    for (const auto* part : {&texts.prompt, &texts.answer}) {
      for (const auto token : *part) classes_ = std::max(classes_, std::int64_t{token} + 1);
      tokens_.insert(tokens_.end(), part->begin(), part->end());
    }
    samples_.push_back({tokens_.size(), std::ssize(texts.prompt)});
  }
  /// Sets what makes samples, once all texts are there.
  void finish(std::unique_ptr<SampleMaker> maker, const DataNeeds& needs, std::int64_t classes) {
    maker_ = std::move(maker);
    shape_ = shape_for(needs, maker_->offers(), maker_->target());
    classes_ = classes;
  }

  std::int64_t count() const override { return std::ssize(samples_); }
  const SampleShape& shape() const override { return shape_; }
  std::int64_t classes() const override { return classes_; }
  std::vector<std::string> fields() const override { return names_of(maker_->offers()); }
  std::string description() const override {
    std::string text = grouped(count()) + " first texts with second ones";
    if (cut_ > 0)
      text +=
          ", " + grouped(cut_) + " of them cut to " + std::to_string(context_) + " tokens together";
    return text;
  }

  Status read(const Place& place, const SampleSpans& to) const override {
    assert(place.sample >= 0 && place.sample < count());
    assert(to.fits(shape_));
    const auto at = static_cast<std::size_t>(place.sample);
    const auto first = at == 0 ? 0 : samples_[at - 1].end;
    const std::span tokens(tokens_.data() + first, samples_[at].end - first);
    const Window window{.tokens = {tokens.begin(), tokens.end()},
                        .behind = {},
                        .ends = {std::ssize(tokens)},
                        .second = samples_[at].second};
    maker_->make(window, place).write(shape_, to);
    return Done{};
  }

 private:
  struct Sample {
    std::size_t end = 0;      // In tokens_.
    std::int64_t second = 0;  // The beginning of the second text in the sample.
  };

  std::int64_t context_;
  std::unique_ptr<SampleMaker> maker_;
  SampleShape shape_;
  std::vector<std::int32_t> tokens_;  // All samples, one after another.
  std::vector<Sample> samples_;
  std::int64_t classes_ = 1;
  std::int64_t cut_ = 0;
};

/// Refuses options of texts that are not for prompts or pairs.
Status check_options(const TextOptions& options) {
  if (options.documents == TextOptions::Documents::joined && options.mask == 0 &&
      options.corrupt == 0)
    return Done{};
  return Error{"documents, mask and corrupt are for documents, and these are lines of two texts"};
}

/// Calls `add` with each example whose tokens the model has.
template <class Add>
Status add_all(const std::string& path, std::string_view contents, LineKind kind,
               const Tokenizer* tokenizer, const DataNeeds& needs, Add add) {
  const bool is_example = kind == LineKind::examples;
  const std::int64_t most = std::max(needs.classes, is_example ? 0 : needs.vocabulary);
  const std::string what = is_example ? "example" : "pair";
  return for_each_example(path, contents, kind, tokenizer, [&](Example example) -> Status {
    for (const auto* part : {&example.prompt, &example.answer})
      for (const auto token : *part)
        if (most > 0 && token >= most)
          return Error{"the " + what + " has the token " + std::to_string(token) +
                       ", but the model's vocabulary has " + std::to_string(most) +
                       "; set model.vocab to more than the largest token" +
                       (!is_example ? "" : ", or to \"auto\"")};
    add(std::move(example));
    return Done{};
  });
}

}  // namespace

Result<std::unique_ptr<Dataset>> make_example_dataset(const std::string& path,
                                                      std::string_view contents,
                                                      const Tokenizer* tokenizer,
                                                      const TextOptions& options,
                                                      const DataNeeds& needs) {
  if (auto good = check_options(options); !good) return within(path, good.error());
  if (!needs.ignore)
    return Error{path +
                 ": has prompts with answers, of which the answers alone count; set "
                 "model.loss.ignore = -100, the target that stands for the others"};
  const auto* end = tokenizer ? tokenizer->end_of_text() : nullptr;
  auto dataset = std::make_unique<ExampleDataset>(needs, options.pad.value_or(end ? end->id : 0));
  const auto status = add_all(path, contents, LineKind::examples, tokenizer, needs,
                              [&](const Example& example) { dataset->add(example); });
  if (!status) return status.error();
  if (dataset->count() == 0)
    return Error{path + ": has no prompt that leaves room for an answer in model.context = " +
                 std::to_string(needs.context) + " tokens"};
  dataset->set_least_classes(
      std::max(options.pad.value_or(0) + std::int64_t{1}, tokenizer ? tokenizer->vocabulary() : 0));
  return std::unique_ptr<Dataset>(std::move(dataset));
}

Result<std::unique_ptr<Dataset>> make_pair_dataset(const std::string& path,
                                                   std::string_view contents,
                                                   const Tokenizer* tokenizer,
                                                   const TextOptions& options,
                                                   const DataNeeds& needs) {
  if (auto good = check_options(options); !good) return within(path, good.error());
  if (needs.inputs.empty())
    return Error{path +
                 ": has sources with targets, for a model with an encoder and a decoder, but the "
                 "model takes one input"};
  if (!needs.ignore)
    return Error{path +
                 ": has sources with targets of several lengths, so not all targets count; set "
                 "model.loss.ignore = -100, the target that stands for the others"};
  auto dataset = std::make_unique<PairDataset>(PairForm::of(options, needs), needs);
  const auto status = add_all(path, contents, LineKind::pairs, tokenizer, needs,
                              [&](Example pair) { dataset->add(std::move(pair)); });
  if (!status) return status.error();
  if (dataset->count() == 0) return Error{path + ": has no source with a target"};
  dataset->set_least_classes(
      std::max(options.least_with_padding(), tokenizer ? tokenizer->vocabulary() : 0));
  return std::unique_ptr<Dataset>(std::move(dataset));
}

Result<std::unique_ptr<Dataset>> make_sentence_dataset(const std::string& path,
                                                       std::string_view contents,
                                                       const Tokenizer* tokenizer,
                                                       const TextOptions& options,
                                                       const DataNeeds& needs) {
  if (options.documents != TextOptions::Documents::joined || options.corrupt > 0)
    return Error{path + ": documents and corrupt are for documents, and these are lines of two " +
                 "texts; leave them out"};
  if (options.mask == 0)
    return Error{path +
                 ": has a first and a second text on each line, of which words are masked; " +
                 "give mask and mask_id: mask=0.15&mask_id=103"};
  if (!needs.ignore)
    return Error{path +
                 ": not all of its targets count; set model.loss.ignore = -100, the target " +
                 "that stands for the others"};
  const auto context = length_of(needs, "tokens", needs.context);
  auto dataset = std::make_unique<SentenceDataset>(context);
  const auto status = add_all(path, contents, LineKind::sentences, tokenizer, needs,
                              [&](Example texts) { dataset->add(std::move(texts)); });
  if (!status) return status.error();
  if (dataset->count() == 0) return Error{path + ": has no first text with a second one"};
  const auto given = std::max(needs.vocabulary, needs.classes);
  const auto known = std::max(tokenizer ? tokenizer->vocabulary() : 0, options.least_vocabulary());
  const auto classes = std::max(dataset->classes(), given > 0 ? given : known);
  auto maker = make_sample_maker(options, needs, classes);
  if (!maker) return within(path, maker.error());
  dataset->finish(std::move(*maker), needs,
                  std::max(classes, options.pad.value_or(0) + std::int64_t{1}));
  return std::unique_ptr<Dataset>(std::move(dataset));
}

}  // namespace troupe::storage
