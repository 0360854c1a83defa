#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "catch.h"
#include "little_run.h"
#include "wires.h"

using namespace troupe;
using namespace troupe::actors;

namespace {

using S = models::StalenessOptions;
using Kind = models::OptimizerConfig::Kind;

/// Returns four stages that step every `step_every` micro-batches and drain after three steps.
Piece late(const std::string& model, int step_every, int replicas = 1) {
  RoundShape shape;
  shape.schedule = "pipedream";
  shape.stages = 4;
  shape.replicas = replicas;
  shape.micro_batches = shape.groups = step_every * replicas;
  shape.flush_steps = 3;
  Piece piece = Piece::of(model, shape);
  piece.steps = 7;
  return piece;
}

Piece with(Piece piece, Kind kind, S staleness, bool recompute = false) {
  const double lr = kind == Kind::sgd ? 0.05 : 3e-3;
  piece.optimizer = models::OptimizerConfig::of(kind);
  piece.optimizer.rate.lr = lr;
  if (kind == Kind::sgd) piece.optimizer.momentum = 0.9;
  piece.staleness = staleness;
  if (recompute) piece.shape.recompute.assign(4, true);
  return piece;
}

struct Named {
  std::string name;
  Piece piece;
};

/// Returns pieces with every remedy for stale weights, over models, optimizers and step counts.
std::vector<Named> pieces() {
  const auto stale = S{};
  auto stash = S{};
  stash.linearize_at = S::LinearizeAt::forward;
  auto msnag = S{};
  msnag.predict = S::Predict::msnag;
  auto aggmsnag = S{};
  aggmsnag.predict = S::Predict::aggmsnag;
  auto linear = S{};
  linear.predict = S::Predict::linear;
  auto msnag_stash = stash;
  msnag_stash.predict = S::Predict::msnag;
  auto gap = S{};
  gap.gap_penalty = S::GapPenalty::elementwise;
  auto stash_gap = stash;
  stash_gap.gap_penalty = S::GapPenalty::elementwise;
  auto all = msnag_stash;
  all.gap_penalty = S::GapPenalty::elementwise;
  auto nag = msnag;
  nag.nag = true;
  auto two_versions = S{};
  two_versions.lag = 1;
  auto mare = S{};
  mare.linearize_at = S::LinearizeAt::extrapolated;
  mare.anneal_steps = 4;
  auto spike = S{};
  spike.spike_compensation = true;
  auto compensated = stash;
  compensated.delay_compensation = 0.5;
  auto later = stash;
  later.synchronous_steps = 4;
  auto here_and_there = with(late("gpt2", 1), Kind::adamw, stale);
  here_and_there.shape.recompute = {true, false, true, false};
  auto clipped = with(late("gpt2", 3), Kind::adamw, all);
  clipped.optimizer.clip_norm = 0.5;
  auto sutskever = with(late("mlp", 1), Kind::sgd, msnag);
  sutskever.optimizer.momentum_form = models::OptimizerConfig::MomentumForm::sutskever;
  sutskever.optimizer.rate.warmup_steps = 3;
  return {
      {"stale", with(late("mlp", 1), Kind::sgd, stale)},
      {"stale, recomputed", with(late("gpt2", 1), Kind::adamw, stale, true)},
      {"stale, steps of 4", with(late("resnet", 4), Kind::adam, stale)},
      {"stash", with(late("gpt2", 1), Kind::adamw, stash)},
      {"stash, recomputed", with(late("vit", 2), Kind::adamw, stash, true)},
      {"stash, two replicas", with(late("llama", 2, 2), Kind::adamw, stash)},
      {"msnag", with(late("mlp", 1), Kind::sgd, msnag)},
      {"msnag, recomputed", with(late("gpt2", 2), Kind::adamw, msnag, true)},
      {"aggmsnag", with(late("mlp", 2), Kind::adam, aggmsnag)},
      {"linear", with(late("vit", 1), Kind::adamw, linear)},
      {"msnag and stash", with(late("gpt2", 1), Kind::adamw, msnag_stash)},
      {"gap, recomputed", with(late("mlp", 1), Kind::sgd, gap, true)},
      {"stash and gap", with(late("resnet", 1), Kind::adamw, stash_gap)},
      {"msnag, stash and gap", with(late("vit", 2), Kind::adam, all)},
      {"look-ahead", with(late("mlp", 4), Kind::sgd, nag)},
      {"two versions", with(late("mlp", 4), Kind::adamw, two_versions)},
      {"PipeMare", with(late("vit", 1), Kind::sgd, mare)},
      {"spike compensation", with(late("mlp", 1), Kind::sgd, spike)},
      {"delay compensation", with(late("mlp", 1), Kind::sgd, compensated)},
      {"nadamw", with(late("llama", 1), Kind::nadamw, stash)},
      {"muon", with(late("gpt2", 1), Kind::muon, stash)},
      {"stash, synchronous at first", with(late("gpt2", 1), Kind::adamw, later)},
      {"stale, two stages recomputed", here_and_there},
      {"msnag, stash and gap of tied weights", clipped},
      {"gap of tied weights, recomputed", with(late("llama", 2), Kind::sgd, gap, true)},
      {"msnag, Sutskever's momentum", sutskever},
      {"stash, skips recomputed", with(late("unet", 2), Kind::adamw, stash, true)},
      {"msnag, stash and gap, skips", with(late("braid", 2), Kind::adam, all)},
  };
}

void one_hash(const Named& named, int seeds) {
  CAPTURE(named.name);
  std::set<std::string> hashes;
  for (int seed = 1; seed <= seeds; ++seed) {
    CAPTURE(seed);
    const auto played = play(named.piece, static_cast<std::uint64_t>(seed));
    REQUIRE(played.ended);
    INFO(played.outcome.why);
    REQUIRE(played.outcome.how == Outcome::How::done);
    CHECK(played.bytes_left == 0);
    hashes.insert(to_string(played.weights));
  }
  CHECK(hashes.size() == 1);
}

}  // namespace

TEST_CASE("results with each remedy for stale weights do not depend on the order of messages",
          "[actors]") {
  for (const auto& named : pieces()) one_hash(named, 5);
}

TEST_CASE("1,000 orders of messages give one hash for each remedy", "[.all]") {
  for (const auto& named : pieces()) one_hash(named, 1000);
}

TEST_CASE("results with each remedy do not depend on how replicas exchange gradients", "[actors]") {
  for (const auto& named : pieces()) {
    // This prediction does not support replicas.
    if (named.piece.staleness.predict == S::Predict::aggmsnag) continue;
    CAPTURE(named.name);
    Piece piece = named.piece;
    if (piece.shape.replicas == 1) {
      piece.shape.replicas = 2;
      piece.shape.groups = piece.shape.micro_batches *= 2;
    }
    piece.exchange = Exchange::server;
    const auto server = play(piece, 1);
    piece.exchange = Exchange::all_to_all;
    const auto all_to_all = play(piece, 2);
    INFO(all_to_all.outcome.why);
    REQUIRE(server.outcome.how == Outcome::How::done);
    CHECK(all_to_all.outcome.how == Outcome::How::done);
    CHECK(all_to_all.weights == server.weights);
    CHECK(all_to_all.bytes_left == 0);
  }
  // In the wide model a matrix is cut into sections, and the history for its predictions with it.
  Piece piece = with(late("wide", 1, 2), Kind::adamw, {});
  piece.shape.stages = 2;
  piece.staleness.predict = S::Predict::msnag;
  piece.staleness.linearize_at = S::LinearizeAt::forward;
  piece.staleness.gap_penalty = S::GapPenalty::elementwise;
  const auto all_to_all = play(piece, 1);
  piece.exchange = Exchange::server;
  CHECK(play(piece, 2).weights == all_to_all.weights);
}

TEST_CASE("runs over the wire give the same bits with every remedy for stale weights", "[actors]") {
  auto all = pieces();
  for (const auto source : {S::GapSource::stash, S::GapSource::last_update})
    for (const auto factor : {S::GapFactor::scalar, S::GapFactor::max})
      for (const std::string model : {"gpt2", "resnet", "braid", "pair"}) {
        S staleness;
        staleness.linearize_at = S::LinearizeAt::forward;
        staleness.gap_penalty = S::GapPenalty::tensor_norm;
        staleness.gap_source = source;
        staleness.gap_factor = factor;
        all.push_back({model + " with a gap factor", with(late(model, 2), Kind::adamw, staleness)});
      }
  for (auto& [name, piece] : all) {
    const bool may_have_replicas = piece.staleness.predict != S::Predict::aggmsnag;
    for (const int replicas : {1, 2}) {
      if (replicas == 2 && (!may_have_replicas || piece.shape.replicas == 2)) continue;
      CAPTURE(name, replicas);
      Piece other = piece;
      if (replicas == 2) {
        other.shape.replicas = 2;
        other.shape.groups = other.shape.micro_batches *= 2;
      }
      MemoryPool memory;
      LittleRun run(other);
      Scene scene(run, 7);
      Wires wires(3, memory);
      scene.spec().player_host = &wires;
      scene.begin();
      const auto over_wires = scene.finish();
      INFO(over_wires.outcome.why);
      CHECK(over_wires.outcome.how == Outcome::How::done);
      CHECK(over_wires.weights == play(other, 1).weights);
    }
  }
}

TEST_CASE("each remedy trains differently from the others", "[actors]") {
  std::set<std::string> hashes;
  const auto all = pieces();
  for (const auto& named : all) hashes.insert(to_string(play(named.piece, 1).weights));
  CHECK(hashes.size() == all.size());
}

TEST_CASE("a step's event contains the delays of its gradients", "[actors]") {
  // The piece uses msnag and stash, and steps after every micro-batch.
  Piece piece = pieces()[10].piece;
  piece.measures_staleness = true;
  const auto played = play(piece, 1);
  REQUIRE(played.ended);
  std::vector<Value> steps;
  for (const auto& event : played.events)
    if (*event.find("type")->text() == "step") steps.push_back(event);
  REQUIRE(steps.size() == 7);
  const auto* stages = steps[2].find("staleness");
  REQUIRE(stages);
  REQUIRE(stages->list()->size() == 4);
  // On the first stage the third micro-batch after a drain is two steps late, as three stages
  // follow.
  const auto& first = stages->list()->front();
  CHECK(*first.find("delays") == Value(Value::List{0, 0, 1}));
  CHECK(first.find("gap")->number() > 0);
  CHECK(*stages->list()->back().find("delays") == Value(Value::List{1}));
  // Measuring must not change the weights.
  CHECK(played.weights == play(pieces()[10].piece, 1).weights);
}

TEST_CASE("a run that drains after each step has the bits of a plain loop", "[actors]") {
  for (auto& named : pieces()) {
    CAPTURE(named.name);
    Piece piece = named.piece;
    piece.staleness.synchronous_steps = piece.steps;
    piece.staleness.nag = false;
    // Off, since clipping works per stage here but per model in the plain loop.
    piece.optimizer.clip_norm = 0;
    const auto played = play(piece, 1);
    INFO(played.outcome.why);
    CHECK(played.outcome.how == Outcome::How::done);
    CHECK(played.weights == LittleRun(piece).plainly());
  }
}

TEST_CASE("with one stage no remedy changes a bit", "[actors]") {
  std::set<std::string> hashes;
  for (const auto& named : pieces()) {
    if (named.name != "stale" && named.name != "msnag" && named.name != "gap, recomputed") continue;
    Piece piece = named.piece;
    piece.shape.stages = 1;
    piece.shape.recompute.clear();
    hashes.insert(to_string(play(piece, 1).weights));
  }
  CHECK(hashes.size() == 1);
}

// Weights w with momentum v whose passes see p = w - lr mu v: p takes the steps of PyTorch's
// nesterov. In the last step w changed by lr v.
TEST_CASE("a look-ahead equals Nesterov's method if no gradient is late", "[actors]") {
  S nag;
  nag.predict = S::Predict::msnag;
  nag.nag = true;
  for (const int stages : {1, 4}) {
    CAPTURE(stages);
    Piece piece = with(late("mlp", 2), Kind::sgd, nag);
    piece.shape.stages = stages;
    piece.shape.flush_steps = 1;
    const auto after = [&](const Piece& of, std::int64_t steps) {
      Piece part = of;
      part.steps = steps;
      auto played = play(part, 1);
      REQUIRE(played.outcome.how == Outcome::How::done);
      return played;
    };
    const auto last = after(piece, 7);
    const auto before = after(piece, 6).numbers;
    Piece nesterov = with(piece, Kind::sgd, {});
    nesterov.optimizer.nesterov = true;
    const auto wanted = after(nesterov, 7).numbers;
    REQUIRE(!wanted.empty());
    REQUIRE(last.numbers.size() == wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const double ahead = last.numbers[i] + 0.9 * (last.numbers[i] - before[i]);
      CHECK(wanted[i] == Approx(ahead).margin(1e-5));
    }
    CHECK(last.weights != after(with(piece, Kind::sgd, {}), 7).weights);
    if (stages == 1) continue;
    // The same steps in a different configuration.
    Piece drained = piece;
    drained.shape.flush_steps = 3;
    drained.staleness.synchronous_steps = drained.shape.synchronous_steps = 7;
    CHECK(after(drained, 7).weights == last.weights);
  }
}
