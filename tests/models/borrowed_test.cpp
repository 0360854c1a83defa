// A parameter owned by an earlier stage: the user sees the version that the owner saw.

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "catch.h"
#include "models/stale/training_stage.h"
#include "training.h"

using namespace troupe;
using namespace troupe::models;

namespace {

constexpr int micro_batches = 4;

OptimizerConfig adamw() {
  auto config = OptimizerConfig::of(OptimizerConfig::Kind::adamw);
  config.rate.lr = 0.01;
  config.clip_norm = 0.5;
  return config;
}

/// A layer that notes the numbers of one of its parameters at each forward pass.
class WatchedLayer final : public Layer {
 public:
  WatchedLayer(LayerPtr layer, std::size_t parameter, std::vector<float>& seen)
      : layer_(std::move(layer)), parameter_(parameter), seen_(seen) {}

  std::vector<Parameter> parameters() const override { return layer_->parameters(); }
  std::vector<Buffer> buffers() const override { return layer_->buffers(); }
  int saved() const override { return layer_->saved(); }
  Shape output(const Shape& input) const override { return layer_->output(input); }
  Work work(const Shape& input) const override { return layer_->work(input); }

  Tensor forward(const In& in, Tensor x, SavedSpan saved, SavedSpan statistics) const override {
    const auto numbers = in.weights[parameter_].value.numbers<float>();
    seen_.assign(numbers.begin(), numbers.end());
    return layer_->forward(in, std::move(x), saved, statistics);
  }
  Tensor backward_input(const In& in, Tensor dy, SavedSpan saved) const override {
    return layer_->backward_input(in, std::move(dy), saved);
  }
  void backward_weight(const In& in, SavedSpan saved, SavedSpan gradients) const override {
    layer_->backward_weight(in, saved, gradients);
  }

 private:
  LayerPtr layer_;
  std::size_t parameter_;
  std::vector<float>& seen_;
};

Model tied_model() { return std::move(small_models()[1]); }

/// Returns the model with a first unit that notes the tied parameter's numbers in `seen`.
Model watched_model(std::vector<float>& seen) {
  auto model = tied_model();
  const int units = static_cast<int>(model.units.size());
  const auto shared = shared_parameters(model, std::vector<UnitRange>{{0, 1}, {1, units}});
  auto& layer = model.units[0].layer;
  const auto parameters = layer->parameters();
  const auto found = std::ranges::find(parameters, shared[0].name, &Parameter::name);
  REQUIRE(found != parameters.end());
  const auto parameter = static_cast<std::size_t>(found - parameters.begin());
  layer = std::make_unique<WatchedLayer>(std::move(layer), parameter, seen);
  return model;
}

/// Two stages; the second has the head, tied to the embedding of the first.
struct Tied {
  Model model;
  MemoryPool memory;
  Stream stream{memory};
  int units = static_cast<int>(model.units.size());
  std::vector<std::string> shared = {
      shared_parameters(model, std::vector<UnitRange>{{0, 1}, {1, units}})[0].name};
  StageOptions options{.precision = kernels::Precision::fp32, .keep = Keep::input, .seed = 7};
  TrainingStage owner, user;
  Optimizer owners, users;
  WeightsPtr owned, used;

  explicit Tied(const StalenessOptions& staleness, Model of = tied_model())
      : model(std::move(of)),
        owner(model, {0, 1}, options, staleness, adamw(), {}),
        user(model, {1, units}, options, staleness, adamw(), shared),
        owners(adamw(), owner.passes().parameters(), owner.passes().buffers(), options.precision,
               {.staleness = staleness, .delay = 0, .borrowed = {}}),
        users(adamw(), user.passes().parameters(), user.passes().buffers(), options.precision,
              {.staleness = staleness, .delay = 0, .borrowed = shared}) {
    owned = owners.initial(stream, 3);
    used = users.initial(stream, 3);
    owner.adopt({owned, {}});
    user.adopt({used, {}});
  }

  Loan forward(const Batch& batch, int m, int samples) {
    const MicroBatch id{.step = owned->version, .index = m, .first_sample = m * samples};
    Bundle x = owner.forward(stream, id, batch.input.slice(m * samples, samples), {}, {});
    const Loan loan = owner.lend(m, shared[0]);
    user.forward(stream, id, std::move(x), batch.target.slice(m * samples, samples), {&loan, 1});
    return loan;
  }

  void backward(int m) {
    user.recompute(stream, m);
    Bundle dy = user.backward(stream, m, {});
    owner.recompute(stream, m);
    owner.backward(stream, m, std::move(dy));
  }

  void step() {
    auto first = join(stream, {owner.take_gradients(stream)});
    auto later = join(stream, {user.take_gradients(stream)});
    owners.add_use(stream, first, shared[0], users.gradient(stream, later, shared[0]));
    auto squares = owners.squared_norms(stream, first);
    for (auto& square : users.squared_norms(stream, later)) squares.push_back(std::move(square));
    const double norm = global_norm(squares);
    owned = owners.step(stream, owned, std::move(first), norm);
    used = users.step(stream, used, std::move(later), norm);
    owner.adopt({owned, owners.moments()});
    user.adopt({used, users.moments()});
  }
};

bool equal(const Tensor& a, const Tensor& b) {
  return a.bytes() == b.bytes() && std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
}

}  // namespace

TEST_CASE("a borrowed parameter takes the same steps as one that two stages own", "[models]") {
  Tied tied({});
  Pipeline pipeline({.model = tied.model, .optimizer = adamw(), .micro_batches = micro_batches},
                    {.cuts = {1}, .keep = Keep::input});
  pipeline.start(3);
  for (std::uint64_t step = 0; step < 3; ++step) {
    const Batch batch = made_batch(tied.stream, tied.model, 8, step);
    pipeline.step(batch);
    const Round round{.delays = std::vector<int>(micro_batches, 0),
                      .step_every = micro_batches,
                      .share = Share::whole(micro_batches, 1),
                      .targets_in_step = batch.target.count()};
    tied.owner.begin_round(round);
    tied.user.begin_round(round);
    for (int m = 0; m < micro_batches; ++m) tied.forward(batch, m, 2);
    for (int m = 0; m < micro_batches; ++m) tied.backward(m);
    tied.step();
  }
  auto found = tied.owners.named(*tied.owned);
  const auto rest = tied.users.named(*tied.used);
  found.insert(found.end(), rest.begin(), rest.end());
  const auto wanted = pipeline.weights();
  REQUIRE(found.size() == wanted.size());
  for (const auto& one : wanted) {
    CAPTURE(one.name);
    const auto same = [&](const NamedTensor& each) {
      return each.name == one.name && equal(each.tensor, one.tensor);
    };
    CHECK(std::ranges::count_if(found, same) == 1);
  }
  for (const auto& [name, tensor] : tied.users.state()) CHECK(!name.starts_with(tied.shared[0]));
}

TEST_CASE("a loan equals the weights of the owner's passes and gets a new tag with each version",
          "[models]") {
  std::vector<float> seen;  // Noted by the last forward pass or recomputation.
  const auto is_seen = [&](const Loan& loan) {
    return std::ranges::equal(loan.value.numbers<float>(), seen);
  };
  StalenessOptions staleness;
  staleness.predict = StalenessOptions::Predict::aggmsnag;
  Tied tied(staleness, watched_model(seen));
  const Batch batch = made_batch(tied.stream, tied.model, 4, 0);
  const Round round{.delays = {0, 1, 1, 1},
                    .step_every = 1,
                    .share = Share::whole(1, 1),
                    .targets_in_step = batch.target.count() / 4};
  tied.owner.begin_round(round);
  tied.user.begin_round(round);
  std::vector<Loan> loans;
  const auto forward = [&](int m) {
    CAPTURE(m);
    loans.push_back(tied.forward(batch, m, 1));
    CHECK(is_seen(loans.back()));
  };
  const auto backward = [&](int m) {
    CAPTURE(m);
    seen.clear();
    tied.backward(m);
    CHECK(is_seen(loans[static_cast<std::size_t>(m)]));
    tied.step();
  };
  forward(0);
  for (int m = 1; m < 4; ++m) {
    forward(m);
    backward(m - 1);
  }
  backward(3);
  for (std::size_t a = 0; a < loans.size(); ++a)
    for (std::size_t b = a + 1; b < loans.size(); ++b) CHECK(loans[a].tag != loans[b].tag);
  CHECK(tied.owner.lend(tied.shared[0]).tag != loans[3].tag);
  // The loan is predicted, so no version has these numbers.
  CHECK_FALSE(equal(loans[2].value, tied.owner.lend(tied.shared[0]).value));
}
