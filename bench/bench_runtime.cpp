// Measures what the actors cost: the hop of a message; one stage run by actors, compared with a
// plain loop over it; and two stages on two cores, compared with the simulator's prediction from
// the measured times of actions.
//
//     ./dev bench runtime [STEPS]

#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "actors/caf_shim.h"
#include "actors/exchange.h"
#include "actors/inputs_of.h"
#include "actors/lead/supervisor.h"
#include "actors/rounds.h"
#include "bench/figures.h"
#include "config/model_kinds.h"
#include "kernels/instructions.h"
#include "models/description/option.h"
#include "schedules/simulate/simulate.h"
#include "storage/data/dataset.h"
#include "storage/files/files.h"

namespace troupe::bench {

struct Ball {
  int bounces = 0;
};

}  // namespace troupe::bench

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::bench::Ball)

namespace troupe::bench {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Message hops.

template <caf::spawn_options Kind>
double hop_of() {
  constexpr int bounces = 5000;
  actors::caf_shim::Config config(2);
  caf::actor_system system(config);
  std::promise<double> done;
  {
    const auto bounce = [](caf::event_based_actor* self, caf::actor* other,
                           std::promise<double>* end,
                           std::shared_ptr<Clock::time_point> start) -> caf::behavior {
      return {[=](Ball ball) {
        if (ball.bounces == 0) *start = Clock::now();
        if (ball.bounces < bounces) return self->send(*other, Ball{ball.bounces + 1});
        end->set_value(seconds_since(*start) / bounces);
        self->quit();
      }};
    };
    auto start = std::make_shared<Clock::time_point>();
    caf::actor first, second;
    first = system.spawn<Kind>(bounce, &second, &done, start);
    second = system.spawn<Kind>(bounce, &first, &done, start);
    caf::anon_send(first, Ball{});
    const double hop = done.get_future().get();
    caf::anon_send_exit(first, caf::exit_reason::kill);
    caf::anon_send_exit(second, caf::exit_reason::kill);
    std::printf(
        "  %-38s %8.2f us\n",
        Kind == caf::detached ? "message between detached actors" : "message between pooled actors",
        hop * 1e6);
    return hop;
  }
}

double hop_to_executor() {
  constexpr int jobs = 2000;
  actors::ComputingThread executor(1);
  const auto start = Clock::now();
  for (int i = 0; i < jobs; ++i) {
    std::atomic<bool> done = false;
    executor.post([&](Stream&) { done = true; });
    while (!done) {
    }
  }
  const double hop = seconds_since(start) / jobs;
  std::printf("  %-38s %8.2f us\n", "job to a spinning executor and back", hop * 1e6);
  return hop;
}

// A model that trains.

struct Setting {
  const char* name;
  int layers, width, heads, context, vocabulary;
  int micro = 4, micro_batches = 8;
  models::Cuts cuts = models::Cuts::layers;
};

class Bench {
 public:
  explicit Bench(const Setting& setting)
      : setting_(setting),
        model_(build(setting)),
        data_(open(setting)),
        batches_(*data_, {storage::SampleOrder::Kind::shuffled, 1, data_->count()},
                 setting.micro * setting.micro_batches, setting.micro) {
    optimizer_.rate.lr = 1e-4;
    optimizer_.clip_norm = 1;
  }

  /// Returns the seconds of each step of a plain loop over the whole model.
  std::vector<double> plainly(int steps) const {
    MemoryPool memory;
    Stream stream(memory);
    models::Stage stage(model_, {0, units()}, {.seed = 1});
    models::Optimizer optimizer(optimizer_, stage.parameters(), stage.buffers(),
                                kernels::Precision::fp32);
    auto weights = optimizer.initial(stream, 1);
    std::vector<double> seconds;
    for (int step = 0; step < steps; ++step) {
      const auto start = Clock::now();
      stage.begin_step(models::Share::whole(setting_.micro_batches, setting_.micro_batches),
                       targets());
      for (int m = 0; m < setting_.micro_batches; ++m) {
        auto batch = batches_.read(memory, step, m);
        Tensor targets = std::move(batch->target);
        stage.forward(stream, {step, m, m * setting_.micro}, *weights,
                      actors::inputs_of(std::move(*batch)), std::move(targets));
        stage.backward(stream, m, *weights, {});
      }
      auto gradients = models::join(stream, {stage.take_gradients()});
      const double norm = models::global_norm(optimizer.squared_norms(stream, gradients));
      weights = optimizer.step(stream, weights, std::move(gradients), norm);
      seconds.push_back(seconds_since(start));
    }
    return warm(std::move(seconds));
  }

  struct Played {
    std::vector<double> seconds;  // For each step.
    schedules::Timeline timeline;
    actors::RoundPtr round;
  };

  /// Trains the same model by actors, each device with this many threads.
  Played by_actors(const actors::RoundShape& given, int cut, int steps, int threads = 1) const {
    auto shape = given;
    shape.micro_batches = shape.groups = setting_.micro_batches;
    const auto rounds = actors::Rounds::make(shape);
    if (!rounds) {
      std::fprintf(stderr, "%s\n", rounds.error().text.c_str());
      std::exit(1);
    }
    Played played;
    played.round = rounds->at(0, steps);
    auto spec = std::make_shared<actors::RunSpec>();
    spec->name = setting_.name;
    spec->model = &model_;
    if (shape.stages == 1)
      spec->stages = {{0, units()}};
    else
      spec->stages = {{0, cut}, {cut, units()}};
    spec->keep = rounds->keep();
    spec->optimizer = optimizer_;
    spec->delays = rounds->delays();
    spec->clip =
        rounds->asynchronous() ? actors::ClipScope::each_stage : actors::ClipScope::all_stages;
    spec->seed = 1;
    spec->batches = &batches_;
    spec->micro = setting_.micro;
    spec->samples_in_step = setting_.micro * setting_.micro_batches;
    spec->targets_in_step = targets();
    spec->round = [&](std::int64_t first, std::int64_t left) { return rounds->at(first, left); };
    spec->rounds_ahead = rounds->asynchronous() ? 1 : 2;
    spec->evaluation = actors::evaluation_round(*rounds->of_one_step(), 1);
    spec->steps = steps;
    spec->save_every_steps = 1'000'000;
    spec->trace_rounds = steps;
    std::vector<std::unique_ptr<actors::Executor>> executors;
    for (int device = 0; device < rounds->of_one_step()->devices(); ++device) {
      executors.push_back(std::make_unique<actors::ComputingThread>(threads));
      spec->executors.push_back(executors.back().get());
    }
    actors::cut_stages(*spec, actors::Exchange::all_to_all);
    actors::ComputingThread reader(1);
    spec->reader = &reader;
    Nowhere nowhere;
    spec->checkpoints = &nowhere;
    spec->record = [&](const Value& event) {
      if (*event.find("type")->text() == "step")
        played.seconds.push_back(event.find("seconds")->number());
    };
    spec->keep_timeline = [&](const schedules::Timeline& timeline) { played.timeline = timeline; };
    actors::caf_shim::Config config(2);
    std::promise<void> ended;
    {
      caf::actor_system system(config);
      const auto supervisor =
          actors::spawn_supervisor(system, spec, {}, [&](actors::Outcome outcome) {
            outcome.weights.clear();
            ended.set_value();
          });
      ended.get_future().wait();
    }
    played.seconds = warm(std::move(played.seconds));
    return played;
  }

  double tokens() const { return 1.0 * setting_.micro * setting_.micro_batches * setting_.context; }

 private:
  /// A store that saves nothing, so that only steps are measured.
  class Nowhere final : public actors::CheckpointStore {
    void save(storage::CheckpointContent, std::function<void(Status)> done) override {
      done(Done{});
    }
    Result<actors::StartPoint> load(std::int64_t, MemoryPool&) override {
      return Error{"there is none"};
    }
    std::vector<std::int64_t> steps() override { return {}; }
  };

  static models::Model build(const Setting& setting) {
    const auto* kind = config::find_model_kind("gpt2");
    Value options;
    for (const auto& [key, number] : std::map<std::string, int>{{"layers", setting.layers},
                                                                {"width", setting.width},
                                                                {"heads", setting.heads},
                                                                {"context", setting.context},
                                                                {"vocab", setting.vocabulary}})
      options.set(key, number);
    return *kind->build(*models::complete(kind->options(), options), setting.cuts);
  }
  std::unique_ptr<storage::Dataset> open(const Setting& setting) {
    return *storage::open_dataset("made:markov?states=64", {setting.context, setting.vocabulary},
                                  *files_);
  }
  /// Drops the first step, which allocates memory and fills caches.
  static std::vector<double> warm(std::vector<double> seconds) {
    seconds.erase(seconds.begin(),
                  seconds.begin() + std::min<std::ptrdiff_t>(1, std::ssize(seconds)));
    return seconds;
  }
  int units() const { return static_cast<int>(model_.units.size()); }
  std::int64_t targets() const { return static_cast<std::int64_t>(tokens()); }

  Setting setting_;
  std::unique_ptr<storage::Files> files_ = storage::disk_files();
  models::Model model_;
  std::unique_ptr<storage::Dataset> data_;
  storage::MicroBatches batches_;
  models::OptimizerConfig optimizer_ =
      models::OptimizerConfig::of(models::OptimizerConfig::Kind::adamw);
};

/// Returns the median time of every kind of action on every stage.
schedules::Costs costs_of(const Bench::Played& played) {
  using schedules::Kind;
  std::map<std::pair<int, Kind>, std::vector<double>> times;
  for (const auto& span : played.timeline.spans)
    times[{span.action.stage, span.action.kind}].push_back(span.end - span.start);
  schedules::Costs costs;
  for (int stage = 0; stage < played.round->schedule.stages; ++stage) {
    const auto of = [&](Kind kind) { return median(times[{stage, kind}]); };
    schedules::StageCosts stage_costs;
    stage_costs.forward = of(Kind::forward);
    stage_costs.backward = of(Kind::backward);
    stage_costs.backward_input = of(Kind::backward_input);
    stage_costs.backward_weight = of(Kind::backward_weight);
    stage_costs.recompute = of(Kind::recompute);
    stage_costs.update = of(Kind::update);
    costs.stages.push_back(stage_costs);
  }
  return costs;
}

/// Returns a single lane's seconds from first to last action, and how many of them it idled.
std::pair<double, double> idle_of(const schedules::Timeline& timeline) {
  double start = timeline.spans.front().start, end = start, busy = 0;
  for (const auto& span : timeline.spans) {
    start = std::min(start, span.start);
    end = std::max(end, span.end);
    busy += span.end - span.start;
  }
  return {end - start, end - start - busy};
}

/// One core for all threads started from now on, because cores of a virtual machine may differ.
class OneCore {
 public:
  OneCore() {
    sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
  }
  ~OneCore() { sched_setaffinity(0, sizeof before_, &before_); }
  OneCore(const OneCore&) = delete;
  OneCore& operator=(const OneCore&) = delete;

 private:
  cpu_set_t before_;
};

void compare_with_loop(const Setting& setting, int steps) {
  const OneCore pinned;
  const Bench bench(setting);
  std::vector<double> plain, played;
  double time = 0, idle = 0;
  // Interleaved, so that a disturbance affects both alike.
  for (int round = 0; round < 5; ++round) {
    std::ranges::copy(bench.plainly(steps), std::back_inserter(plain));
    const auto actors = bench.by_actors({.schedule = "1f1b"}, 0, steps);
    std::ranges::copy(actors.seconds, std::back_inserter(played));
    const auto [lane_time, lane_idle] = idle_of(actors.timeline);
    time += lane_time;
    idle += lane_idle;
  }
  std::printf(
      "  %-10s one stage, one core: %8.0f tokens/s in a loop, %8.0f by actors: %.3f; the lane is "
      "idle for %.3f %% of its time\n",
      setting.name, bench.tokens() / median(plain), bench.tokens() / median(played),
      median(plain) / median(played), 100 * idle / time);
}

void compare_with_simulator(const Setting& setting, int cut, int steps) {
  const Bench bench(setting);
  for (const char* schedule : {"1f1b", "zb-h1", "pipedream"}) {
    const auto played =
        bench.by_actors({.schedule = schedule, .stages = 2, .flush_steps = steps}, cut, steps);
    const auto simulated = schedules::simulate(played.round->schedule, costs_of(played));
    if (!simulated) {
      std::printf("  %s: %s\n", schedule, simulated.error().text.c_str());
      continue;
    }
    const double predicted =
        (played.round->steps > 1 ? simulated->makespan : simulated->period) / played.round->steps;
    const double measured = median(played.seconds);
    std::printf("  %-10s %-10s two stages, cut at %d: %8.0f tokens/s, predicted %8.0f: %.3f\n",
                setting.name, schedule, cut, bench.tokens() / measured, bench.tokens() / predicted,
                predicted / measured);
  }
}

/// Says where the time of two stages goes, compared with one stage that has both cores: into
/// actions that take longer on a core of their own, the bubble that 1F1B has with equal stages, the
/// stages' inequality, and what the simulator does not know.
void explain_two_stages(const Setting& setting, int cut, int steps) {
  constexpr int rounds = 3;
  const Bench bench(setting);
  std::vector<double> one, two, busy[2], simulated;
  // Interleaved, so that a disturbance affects both alike.
  for (int round = 0; round < rounds; ++round) {
    const auto together = bench.by_actors({.schedule = "1f1b"}, 0, steps, 2);
    std::ranges::copy(together.seconds, std::back_inserter(one));
    const auto apart = bench.by_actors({.schedule = "1f1b", .stages = 2}, cut, steps);
    std::ranges::copy(apart.seconds, std::back_inserter(two));
    const auto costs = costs_of(apart);
    for (int stage = 0; stage < 2; ++stage) {
      const auto& cost = costs.stages[static_cast<std::size_t>(stage)];
      busy[stage].push_back(setting.micro_batches * (cost.forward + cost.backward) + cost.update);
    }
    if (const auto played = schedules::simulate(apart.round->schedule, costs))
      simulated.push_back(played->period);
  }
  const double whole = median(two), first = median(busy[0]), second = median(busy[1]);
  const double equal = (first + second) / 2;
  const double bubble = equal / setting.micro_batches;
  const auto percent = [&](double seconds) { return 100 * seconds / whole; };
  std::printf(
      "  %-10s one stage, two threads: %.4f s a step; two stages, cut at %d: %.4f s: %.3f\n"
      "             the stages' actions take %.4f and %.4f s; of a step of two stages\n"
      "             actions slower than in one stage %.1f %%, bubble of equal stages %.1f %%,\n"
      "             unequal stages %.1f %%, not foretold by the simulator %.1f %%\n",
      setting.name, median(one), cut, whole, median(one) / whole, first, second,
      percent(equal - median(one)), percent(bubble), percent(median(simulated) - equal - bubble),
      percent(whole - median(simulated)));
}

int run(int steps) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  constexpr Setting small{"gpt-small", 6, 384, 6, 256, 4096};
  constexpr Setting tiny{"gpt-tiny", 4, 128, 4, 64, 512};
  std::puts("hops");
  hop_of<caf::no_spawn_options>();
  hop_of<caf::detached>();
  hop_to_executor();
  std::puts("actors against a loop");
  compare_with_loop(tiny, 10 * steps);
  compare_with_loop(small, steps);
  std::puts("two stages against the simulator, which knows the times of their actions");
  compare_with_simulator(tiny, 2, 10 * steps);
  compare_with_simulator(small, 3, steps);
  std::puts("two stages against one with both cores");
  explain_two_stages(tiny, 2, 10 * steps);
  explain_two_stages(small, 3, steps);
  explain_two_stages(small, 4, steps);
  Setting sublayers = small;
  sublayers.name = "gpt-small, sublayers";
  sublayers.cuts = models::Cuts::sublayers;
  explain_two_stages(sublayers, 7, steps);
  return 0;
}

}  // namespace
}  // namespace troupe::bench

int main(int count, char** words) {
  if (const auto obeyed = troupe::kernels::obey_instructions_variable(); !obeyed) {
    std::fprintf(stderr, "error: %s\n", obeyed.error().text.c_str());
    return 3;
  }
  return troupe::bench::run(count > 1 ? std::max(3, std::atoi(words[1])) : 6);
}
