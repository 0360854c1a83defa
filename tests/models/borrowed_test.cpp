// A parameter owned by an earlier stage: the user sees the version that the owner saw.

#include <algorithm>
#include <cstring>
#include <utility>

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

/// Two stages; the second has the head, tied to the embedding of the first.
struct Tied {
  Model model = std::move(small_models()[1]);
  MemoryPool memory;
  Stream stream{memory};
  int units = static_cast<int>(model.units.size());
  std::vector<std::string> shared = {
      shared_parameters(model, std::vector<UnitRange>{{0, 1}, {1, units}})[0].name};
  StageOptions options{.precision = kernels::Precision::fp32, .keep = Keep::input, .seed = 7};
  TrainingStage owner, user;
  Optimizer owners, users;
  WeightsPtr owned, used;

  explicit Tied(const StalenessOptions& staleness)
      : owner(model, {0, 1}, options, staleness, adamw(), {}),
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
    Tensor x = owner.forward(stream, id, batch.input.slice(m * samples, samples), {}, {});
    const Loan loan = owner.lend(m, shared[0]);
    user.forward(stream, id, std::move(x), batch.target.slice(m * samples, samples), {&loan, 1});
    return loan;
  }

  void backward(int m) {
    user.recompute(stream, m);
    Tensor dy = user.backward(stream, m, {});
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

TEST_CASE("loans get a new tag with each version and differ from the owner's latest weights",
          "[models]") {
  StalenessOptions staleness;
  staleness.predict = StalenessOptions::Predict::aggmsnag;
  Tied tied(staleness);
  const Batch batch = made_batch(tied.stream, tied.model, 4, 0);
  const Round round{.delays = {0, 1, 1, 1},
                    .step_every = 1,
                    .share = Share::whole(1, 1),
                    .targets_in_step = batch.target.count() / 4};
  tied.owner.begin_round(round);
  tied.user.begin_round(round);
  std::vector<Loan> loans;
  loans.push_back(tied.forward(batch, 0, 1));
  for (int m = 1; m < 4; ++m) {
    loans.push_back(tied.forward(batch, m, 1));
    tied.backward(m - 1);
    tied.step();
  }
  tied.backward(3);
  tied.step();
  for (std::size_t a = 0; a < loans.size(); ++a)
    for (std::size_t b = a + 1; b < loans.size(); ++b) CHECK(loans[a].tag != loans[b].tag);
  CHECK(tied.owner.lend(tied.shared[0]).tag != loans[3].tag);
  // The loan is predicted, so no version has these numbers.
  CHECK_FALSE(equal(loans[2].value, tied.owner.lend(tied.shared[0]).value));
}
