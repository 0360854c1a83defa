// Worked examples of asynchronous training in double, compared with a simulator of a few scalars.

#include <fstream>
#include <functional>
#include <sstream>

#include "catch.h"
#include "core/json.h"
#include "scalar_pipeline.h"

using namespace troupe;
using namespace troupe::models;

namespace {

using Kind = OptimizerConfig::Kind;
using S = StalenessOptions;
using Change = std::function<void(ScalarRun&)>;

Value read_cases() {
  std::ifstream file(TROUPE_TEST_DATA "/../golden/async-cases.json");
  std::ostringstream text;
  text << file.rdbuf();
  auto cases = parse_json(text.str());
  REQUIRE(cases.ok());
  return *cases;
}

/// Returns one stage; the test supplies the gradients of its output.
ScalarRun unit(int depth, int micro_batches) {
  ScalarRun run;
  run.depths = {depth};
  run.micro_batches = micro_batches;
  run.optimizer = OptimizerConfig::of(Kind::sgd);
  run.optimizer.rate.lr = 0.1;
  run.end = ScalarRun::End::outside;
  return run;
}

/// Returns a run of two weights with a curve between them.
ScalarRun curved(int depth, int micro_batches, double lr) {
  auto run = unit(depth, micro_batches);
  run.weights = {{1, 2}};
  run.c = 0.5;
  run.optimizer.rate.lr = lr;
  return run;
}

ScalarRun pipe(int micro_batches, double lr) {
  ScalarRun run;
  run.weights = {{0.9, 1.1}, {1.2}, {0.8}};
  run.c = 0.2;
  run.depths = {2, 1, 0};
  run.x = {1, 0.5, -1, 2, 1.5, -0.5, 0.25, 1};
  run.t.clear();
  for (const double x : run.x) run.t.push_back(x / 2);
  run.micro_batches = micro_batches;
  run.optimizer = OptimizerConfig::of(Kind::sgd);
  run.optimizer.rate.lr = lr;
  return run;
}

ScalarRun with(ScalarRun run, std::initializer_list<Change> changes) {
  for (const auto& change : changes) change(run);
  return run;
}

Change momentum(double gamma) {
  return [=](ScalarRun& run) { run.optimizer.momentum = gamma; };
}
Change kind(Kind kind) {
  return [=](ScalarRun& run) {
    const auto rate = run.optimizer.rate;
    run.optimizer = OptimizerConfig::of(kind);
    run.optimizer.rate = rate;
    run.optimizer.weight_decay = 0;
  };
}
Change decay(double lambda) {
  return [=](ScalarRun& run) { run.optimizer.weight_decay = lambda; };
}
Change rate(double lr) {
  return [=](ScalarRun& run) { run.optimizer.rate.lr = lr; };
}
Change target(double t) {
  return [=](ScalarRun& run) { run.t.assign(run.t.size(), t); };
}
Change every(int k) {
  return [=](ScalarRun& run) { run.step_every = k; };
}
Change predict(S::Predict predict) {
  return [=](ScalarRun& run) { run.staleness.predict = predict; };
}
void stash(ScalarRun& run) { run.staleness.linearize_at = S::LinearizeAt::forward; }
void keep_all(ScalarRun& run) { run.keep = Keep::everything; }
void frozen(ScalarRun& run) { run.staleness.second_moment = S::SecondMoment::frozen; }
void nag(ScalarRun& run) { run.staleness.nag = true; }
Change gap(S::GapStatistics statistics) {
  return [=](ScalarRun& run) {
    run.staleness.gap_penalty = S::GapPenalty::elementwise;
    run.staleness.gap_statistics = statistics;
  };
}

const auto msnag = predict(S::Predict::msnag);
const auto aggmsnag = predict(S::Predict::aggmsnag);
const auto as_ftpipe = gap(S::GapStatistics::ftpipe);
const auto corrected = gap(S::GapStatistics::corrected);

struct Case {
  std::string_view name;
  ScalarRun run;
};

std::vector<Case> plain_cases() {
  return {
      {"E01_stale_sgd_unit", unit(2, 8)},
      {"E02_stale_two_layer_rc", curved(1, 4, 0.05)},
      {"E02_stale_two_layer_nr", with(curved(1, 4, 0.05), {keep_all})},
      {"E02_ws_two_layer", with(curved(1, 4, 0.05), {stash})},
      {"E03_pipe_stale_rc", pipe(6, 0.05)},
      {"E03_pipe_stale_nr", with(pipe(6, 0.05), {keep_all})},
      {"E04_pipe_ws", with(pipe(6, 0.05), {stash})},
      {"E04_pipe_seq", with(pipe(6, 0.05), {[](auto& run) {
                              run.depths = {0, 0, 0};
                            }})},
      {"E04_pipe_gpipe_k2", with(pipe(6, 0.05), {every(2),
                                                 [](auto& run) {
                                                   run.order = ScalarRun::Order::flush;
                                                   run.depths = {0, 0, 0};
                                                 }})},
      {"E16_pipe_stale_k2", with(pipe(8, 0.1), {every(2)})},
      {"E16_pipe_ws_k2", with(pipe(8, 0.1), {every(2), stash})},
      {"E16_pipe_stale_k2_remainder_renorm", with(pipe(5, 0.1), {every(2)})},
      {"E16_pipe_stale_k2_remainder_seed",
       with(pipe(5, 0.1),
            {every(2), [](auto& run) { run.staleness.remainder = S::Remainder::ftpipe; }})},
      {"E17_2bw_k2", with(pipe(8, 0.1), {every(2), [](auto& run) { run.staleness.lag = 1; }})},
      {"E27_pipe_virtual", with(pipe(6, 0.05), {[](auto& run) {
                                  run.weights = {{0.9}, {1.1}, {1.2}, {0.8}};
                                  run.depths.clear();
                                  for (const int depth : {3, 2, 1, 0})
                                    run.depths.push_back(virtual_depth(depth, 3, 3));
                                }})},
  };
}

std::vector<Case> predicted_cases() {
  const auto sgd = with(unit(2, 7), {momentum(0.9)});
  const auto adam = with(unit(2, 6), {kind(Kind::adam), target(0.25)});
  const auto adamw = with(unit(2, 6), {kind(Kind::adamw), target(0.25), decay(0.01)});
  const auto pipe_sgd = with(pipe(6, 0.02), {momentum(0.9), msnag});
  const auto pipe_k4 = with(pipe(8, 0.05), {momentum(0.9), msnag, every(4), nag});
  return {
      {"E05_msnag_sgd", with(sgd, {msnag})},
      {"E05_msnag_sgd_ws_nag", with(sgd, {msnag, stash, nag})},
      {"E06_msnag_adam", with(adam, {msnag})},
      {"E07_msnag_adamw", with(adamw, {msnag})},
      {"E07_msnag_adam_l2", with(adam, {msnag, decay(0.01)})},
      {"E07_msnag_adam_l2_frozen_v_EXPLODES",
       with(adam, {msnag, decay(0.01), frozen, [](auto& run) { run.micro_batches = 4; }})},
      {"E08_aggmsnag_sgd_wd_k2",
       with(unit(3, 10), {momentum(0.9), decay(0.01), aggmsnag, every(2)})},
      {"E09_aggmsnag_adam_k2",
       with(unit(3, 8), {kind(Kind::adam), target(0.25), aggmsnag, every(2)})},
      {"E09_aggmsnag_adam_k2_frozen_v_EXPLODES",
       with(unit(3, 6), {kind(Kind::adam), target(0.25), aggmsnag, every(2), frozen})},
      {"E09_aggmsnag_adamw_k2",
       with(unit(3, 8), {kind(Kind::adamw), target(0.25), decay(0.01), aggmsnag, every(2)})},
      {"E10_sched_aware_adam",
       with(adam, {msnag,
                   [](auto& run) {
                     run.optimizer.rate = {.kind = LearningRate::Kind::linear,
                                           .lr = 0.1,
                                           .warmup_steps = 2,
                                           .total_steps = 8};
                     run.optimizer.rate.warmup = LearningRate::Warmup::from_zero;
                   }})},
      {"E19_linear_prediction_sgd", with(sgd, {predict(S::Predict::linear)})},
      {"E19_linear_prediction_adam", with(adam, {predict(S::Predict::linear)})},
      {"E25_pipe_msnag_sgd_rc", pipe_sgd},
      {"E25_pipe_msnag_sgd_nr_current", with(pipe_sgd, {keep_all})},
      {"E25_pipe_msnag_sgd_nr_retained", with(pipe_sgd, {keep_all, stash})},
      {"E25_pipe_msnag_sgd_ws", with(pipe_sgd, {stash})},
      {"E25_pipe_msnag_sgd_k4_nag", pipe_k4},
      {"E25_pipe_msnag_sgd_k4_nag_seed",
       with(pipe_k4, {[](auto& run) { run.staleness.nag_return = false; }})},
      {"E26_pipe_msnag_adam_rc", with(pipe(6, 0.05), {kind(Kind::adam), msnag})},
      {"E26_pipe_aggmsnag_adamw_ws_k2",
       with(pipe(8, 0.05), {kind(Kind::adamw), decay(0.01), aggmsnag, stash, every(2)})},
  };
}

std::vector<Case> mended_cases() {
  const auto sgd = with(unit(2, 7), {momentum(0.9), stash});
  const auto adam = with(unit(1, 6), {kind(Kind::adam), target(0.25), stash});
  const auto pipemare = with(unit(2, 7), {momentum(0.9), keep_all, [](auto& run) {
                                            run.c = 0.5;
                                            run.optimizer.rate.lr = 0.05;
                                            run.staleness.linearize_at =
                                                S::LinearizeAt::extrapolated;
                                            run.staleness.drift_memory = 0.5;
                                          }});
  return {
      {"E11_ga_sgd", with(sgd, {as_ftpipe})},
      {"E11_ga_sgd_wd",
       with(sgd, {as_ftpipe, decay(0.01), [](auto& run) { run.micro_batches = 6; }})},
      {"E11_ga_sgd_fix_bias", with(sgd, {corrected})},
      {"E12_ga_adam", with(adam, {as_ftpipe})},
      {"E12_ga_adam_fix_bias", with(adam, {corrected})},
      {"E13_ga_adamw", with(adam, {kind(Kind::adamw), decay(0.01), as_ftpipe})},
      {"E14_ga_jfl_sgd", with(curved(2, 6, 0.02), {momentum(0.9), as_ftpipe})},
      {"E14_ws_msnag_ga_sgd", with(sgd, {msnag, as_ftpipe})},
      {"E15_ga_sgd_k4_d3", with(unit(3, 12), {momentum(0.9), stash, as_ftpipe, every(4)})},
      {"E18_pipemare_t2", pipemare},
      {"E18_pipemare_t1", with(unit(2, 6), {[](auto& run) { run.staleness.anneal_steps = 4; }})},
      {"E20_spike_compensation",
       with(unit(2, 7),
            {momentum(0.9), [](auto& run) { run.staleness.spike_compensation = true; }})},
      {"E21_dc_asgd",
       with(unit(2, 7), {target(0.25), [](auto& run) { run.staleness.delay_compensation = 0.5; }})},
      {"E22_nadamw_delay2",
       with(unit(2, 6), {kind(Kind::nadamw), target(0.25), decay(0.01), rate(0.01), stash,
                         [](auto& run) { run.optimizer.beta1 = 0.99; }})},
  };
}

/// Reads a number or a list of numbers.
std::vector<double> numbers(const Value& value) {
  if (value.is_number()) return {value.number()};
  std::vector<double> all;
  for (const auto& each : *value.list()) all.push_back(each.number());
  return all;
}

void check_equal(const std::vector<double>& found, const Value& wanted) {
  const auto expected = numbers(wanted);
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    CHECK(found[i] == Approx(expected[i]).epsilon(1e-12).margin(1e-15));
}

void check_rows(const std::vector<std::vector<double>>& found, const Value& wanted) {
  const auto& rows = *wanted.list();
  REQUIRE(found.size() == rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CAPTURE(i);
    check_equal(found[i], rows[i]);
  }
}

std::vector<double> as_numbers(const std::vector<int>& delays) {
  return {delays.begin(), delays.end()};
}

void check_penalties(const ScalarTrace& trace, const Value& wanted) {
  const auto& rows = *wanted.list();
  REQUIRE(trace.penalty_most[0].size() == rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CAPTURE(i);
    const auto expected = numbers(rows[i]);
    double sum = 0, most = 1;
    for (const double each : expected) {
      sum += each;
      most = std::max(most, each);
    }
    CHECK(trace.penalty_most[0][i] == Approx(most).epsilon(1e-12));
    CHECK(trace.penalty_mean[0][i] ==
          Approx(sum / static_cast<double>(expected.size())).epsilon(1e-12));
  }
}

void check_case(const Value& wanted, const ScalarRun& settings) {
  const auto trace = run(settings);
  check_equal(trace.loss, *wanted.find("loss"));
  if (const auto* final = wanted.find("theta_final")) {
    std::vector<std::vector<double>> found;
    for (const auto& theta : trace.theta) found.push_back(theta.back());
    check_rows(found, *final);
    for (std::size_t s = 0; s < trace.theta.size(); ++s)
      CHECK(static_cast<double>(trace.theta[s].size() - 1) ==
            (*wanted.find("steps")->list())[s].number());
    if (settings.staleness.lag > 0) return;  // The lag, not the lanes, decides the versions seen.
    for (std::size_t s = 0; s < trace.delays.size(); ++s)
      check_equal(as_numbers(trace.delays[s]), (*wanted.find("delays")->list())[s]);
    return;
  }
  check_rows(trace.theta[0], *wanted.find("theta"));
  check_rows(trace.forward[0], *wanted.find("F"));
  check_equal(as_numbers(trace.delays[0]), *wanted.find("delays"));
  if (const auto* penalty = wanted.find("penalty")) check_penalties(trace, *penalty);
}

void check_all(const std::vector<Case>& cases) {
  const Value golden = read_cases();
  for (const auto& [name, settings] : cases) {
    CAPTURE(name);
    const Value* wanted = golden.find(name);
    REQUIRE(wanted);
    check_case(*wanted, settings);
  }
}

}  // namespace

TEST_CASE("training with stale or stashed weights matches the worked examples", "[models]") {
  check_all(plain_cases());
}

TEST_CASE("training with predicted weights matches the worked examples", "[models]") {
  check_all(predicted_cases());
}

TEST_CASE("training with corrected gradients matches the worked examples", "[models]") {
  check_all(mended_cases());
}

TEST_CASE("every worked example has a test", "[models]") {
  const std::size_t apart = 2;  // Virtual depths and the table of delays, which are tested below.
  CHECK(plain_cases().size() + predicted_cases().size() + mended_cases().size() + apart ==
        read_cases().map()->size());
}

TEST_CASE("virtual depths match the worked example", "[models]") {
  const Value golden = read_cases();
  const Value& wanted = *golden.find("E23_virtual_depths");
  const int stages = static_cast<int>(wanted.find("P")->number());
  const int cap = static_cast<int>(wanted.find("supremum")->number());
  std::vector<double> found;
  for (int s = 0; s < stages; ++s) found.push_back(virtual_depth(stages - 1 - s, stages - 1, cap));
  check_equal(found, *wanted.find("depth_by_stage"));
}

TEST_CASE("delays match the worked table", "[models]") {
  const Value golden = read_cases();
  for (const int depth : {0, 1, 3, 7})
    for (const int k : {1, 2, 4, 8}) {
      const std::string name = "d" + std::to_string(depth) + "_k" + std::to_string(k);
      CAPTURE(name);
      std::vector<double> found;
      for (int m = 0; m < 12; ++m) found.push_back(delay_of(m, depth, k));
      check_equal(found, *golden.find("E24_delay_table")->find(name));
    }
}
