#include <cassert>
#include <cstdio>
#include <cstring>

#include "storage/data/made_data.h"
#include "storage/data/markov_chain.h"

namespace troupe::storage {
namespace {

class Markov final : public Dataset {
 public:
  Markov(const MarkovOptions& options, std::int64_t context)
      : options_(options),
        chain_(MarkovChain::drawn(options.key.seed, options.states, options.successors)),
        entropy_rate_(chain_.entropy_rate()),
        shape_{Shape{context}, DType::i32, Shape{context}, DType::i32, "tokens"} {}

  std::int64_t count() const override { return options_.samples; }
  const SampleShape& shape() const override { return shape_; }
  std::int64_t classes() const override { return options_.states; }
  std::optional<double> entropy_rate() const override { return entropy_rate_; }
  std::string description() const override {
    char rate[48];
    std::snprintf(rate, sizeof rate, "%.4f", entropy_rate_);
    return "Markov source, " + std::to_string(options_.states) + " states with " +
           std::to_string(options_.successors) + " successors each, entropy rate " + rate +
           " nats a token";
  }

  Status read(const Place& place, const SampleSpans& to) const override {
    const auto index = place.sample;
    const auto input = to.inputs[0], target = to.target;
    assert(index >= 0 && index < count());
    assert(to.fits(shape_));
    Draws draws(options_.key, index);
    std::int32_t state = chain_.start(draws.next());
    for (std::size_t at = 0; at < input.size(); at += sizeof state) {
      std::memcpy(&input[at], &state, sizeof state);
      state = chain_.next(state, draws.next());
      std::memcpy(&target[at], &state, sizeof state);
    }
    return Done{};
  }

 private:
  MarkovOptions options_;
  MarkovChain chain_;
  double entropy_rate_;
  SampleShape shape_;
};

}  // namespace

std::unique_ptr<Dataset> make_markov(const MarkovOptions& options, std::int64_t context) {
  return std::make_unique<Markov>(options, context);
}

}  // namespace troupe::storage
