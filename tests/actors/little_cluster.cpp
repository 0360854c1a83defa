#include "little_cluster.h"

#include <algorithm>
#include <functional>
#include <future>
#include <optional>
#include <utility>

#include "actors/caf_shim.h"
#include "actors/nodes/run_orders.h"
#include "actors/play/linked_device.h"
#include "catch.h"

namespace troupe::actors {
namespace {

constexpr const char* killed_by_test = "the test has killed it";

using IsBroken = std::shared_ptr<std::atomic<bool>>;

/// An executor that computes on a thread until it is broken.
class BreakableExecutor final : public Executor {
 public:
  explicit BreakableExecutor(IsBroken is_broken) : is_broken_(std::move(is_broken)) {}

  using Executor::post;
  void post(std::unique_ptr<Job> job) override {
    thread_.post(std::make_unique<Guarded>(std::move(job), is_broken_));
  }
  MemoryPool& memory() override { return thread_.memory(); }
  std::optional<std::string> fault() const override {
    return *is_broken_ ? std::optional<std::string>(why) : std::nullopt;
  }

 private:
  static constexpr const char* why = "the test has broken it";

  class Guarded final : public Job {
   public:
    Guarded(std::unique_ptr<Job> job, IsBroken is_broken)
        : job_(std::move(job)), is_broken_(std::move(is_broken)) {}
    void work(Stream& stream) override {
      if (!*is_broken_) job_->work(stream);
    }
    void done(const WorkTime& worked) override {
      *is_broken_ ? job_->lost(why) : job_->done(worked);
    }

   private:
    std::unique_ptr<Job> job_;
    IsBroken is_broken_;
  };

  IsBroken is_broken_;
  ComputingThread thread_{1};
};

/// The parts of a run that one node has for one attempt.
class LittleHome final : public RunHome {
 public:
  /// Makes one at a time, since the test's records have no locks.
  static std::shared_ptr<LittleHome> make(const Piece& piece, const Placement& placement, int here,
                                          const std::function<LittleDevice()>& make_device) {
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    return std::make_shared<LittleHome>(piece, placement, here, make_device);
  }
  LittleHome(const Piece& piece, const Placement& placement, int here,
             const std::function<LittleDevice()>& make_device)
      : run_(piece), spec_(run_.spec([&]() -> Executor& {
          auto made = make_device();
          linked_.push_back(std::move(made.linked));
          return *executors_.emplace_back(std::move(made.executor));
        })) {
    linked_.resize(spec_->executors.size());  // The last executor is none of the run's devices.
    for (std::size_t i = 0; i < spec_->executors.size(); ++i)
      if (placement.stages[i] != here) {
        spec_->executors[i] = nullptr;
        linked_[i].reset();
      }
  }
  /// All its work is done by now.
  ~LittleHome() override { linked_.clear(); }

  void link(sim_device::SimWorld& world, const std::string& kind) {
    for (std::size_t i = 0; i < linked_.size(); ++i) {
      if (!spec_->executors[i]) continue;
      const int device = world.add_device();
      devices.push_back(device);
      linked_[i] = std::make_unique<LinkedDevice>(spec_->executors[i]->memory());
      linked_[i]->links.push_back(
          std::make_unique<DeviceLinks>(kind, "device " + std::to_string(device),
                                        std::vector<std::string>{}, world.fabric(device)));
    }
  }

  RunSpecPtr spec() override { return spec_; }
  std::vector<LinkedDevice*> linked() override {
    std::vector<LinkedDevice*> all;
    for (const auto& device : linked_) all.push_back(device.get());
    return all;
  }
  std::chrono::nanoseconds head_patience() const override { return std::chrono::minutes(1); }

  void finish(std::function<void()> then) override {
    std::vector<Executor*> all;
    for (const auto& executor : executors_) all.push_back(executor.get());
    actors::finish(all, std::move(then));
  }
  std::size_t bytes_in_use() const {
    std::size_t bytes = 0;
    for (const auto& executor : executors_) bytes += executor->memory().counters().bytes_in_use;
    return bytes;
  }

  std::vector<int> devices;  // Devices of the world.

 private:
  LittleRun run_;
  std::vector<std::unique_ptr<Executor>> executors_;
  std::vector<std::unique_ptr<LinkedDevice>> linked_;  // Indexed by the run's devices.
  std::shared_ptr<RunSpec> spec_;
};

}  // namespace

Piece linked_piece(const std::string& model, std::string_view schedule, int stages, int replicas,
                   int chunks) {
  RoundShape shape;
  shape.schedule = schedule;
  shape.stages = stages;
  shape.chunks = chunks;
  shape.replicas = replicas;
  shape.micro_batches = shape.groups = 8;
  auto piece = Piece::of(model, shape);
  piece.save_every = 1;
  return piece;
}

bool tells_of_death(const std::string& warnings) {
  return warnings.find(killed_by_test) != std::string::npos ||
         warnings.find("the other process died") != std::string::npos;
}

Digest bits_of_plain_loop(Piece piece) {
  piece.layer_fault = {};
  return LittleRun(piece).plainly();
}

/// Acts like a node's process without a connection.
class LittleNode {
 public:
  LittleNode(LittleCluster& cluster, int number)
      : number_(number), cluster_(cluster), loop_(cluster.env_.make_loop({"node"})) {}
  ~LittleNode() { stop(); }

  /// Ends its attempt, and waits for that.
  void stop() {
    std::promise<void> ended;
    const auto posted = loop_->post([&] {
      is_stopping_ = true;
      when_stopped_ = [&] { ended.set_value(); };
      end();
    });
    if (posted != Loop::Posted::yes) return;  // It was stopped before.
    ended.get_future().wait();
    loop_->end();
  }

  std::uint64_t incarnation() const { return static_cast<std::uint64_t>(number_) + 1; }

  void hear(transport::Message message) {
    loop_->post([this, message = std::move(message)]() mutable {
      if (!is_stopping_ && !is_dead_) act_on(std::move(message));
    });
  }
  /// From now on the node receives and sends nothing.
  void die() {
    is_dead_ = true;
    for_each_device([&](int device) { cluster_.world_.kill(device); });
    loop_->post([this] { end(); });
  }
  void break_devices() { *are_broken_ = true; }
  template <class Visit>
  void for_each_device(Visit visit) {
    const std::lock_guard lock(mutex_);
    for (const int device : devices_) visit(device);
  }
  std::uint64_t attempt() const { return attempt_; }
  /// Returns the player of the first of its stages.
  int player() const { return player_; }

 private:
  // The functions below run on the loop.

  void act_on(transport::Message message) {
    if (message.type == Prepare::type) {
      next_ = std::move(message);
      return end();
    }
    if (message.type == Stop::type) {
      if (next_ && next_->epoch <= message.epoch) next_.reset();
      if (attempt() <= message.epoch) end();
      return;
    }
    if (!node_attempt_ || message.epoch != attempt()) return;
    if (message.type == Start::type)
      node_attempt_->start(*transport::from_message<Start>(message));
    else
      (void)node_attempt_->deliver(std::move(message)).ok();
  }

  void prepare(const transport::Message& message) {
    auto order = *transport::from_message<Prepare>(message);
    const auto& stages = order.placement.stages;
    player_ = static_cast<int>(std::ranges::find(stages, order.here) - stages.begin());
    attempt_ = message.epoch;
    node_attempt_ = std::make_unique<NodeAttempt>(
        NodeAttempt::Context{cluster_.env_, *loop_, cluster_.network_, cluster_.system_},
        NodeAttemptOrder{
            .open_home = [this, placement = order.placement,
                          here = order.here] { return open(placement, here); },
            .find_store = [](RunHome&) { return nullptr; },
            .prepare = std::move(order),
            .attempt = static_cast<int>(message.epoch),
            .epoch = epoch_of(message.run, message.epoch),
            .carriers = cluster_.order_.carriers,
            .edges = cluster_.order_.patience,
            .stuck =
                [this](const std::string& why) {
                  cluster_.tell_stuck(why);
                  // Simulates the end of the process: a dead device touches no memory, and the next
                  // process finds its devices working.
                  for_each_device([&](int device) { cluster_.world_.kill(device); });
                  *are_broken_ = false;
                },
            .tell_head = [this, epoch = message.epoch](transport::Message said) -> Status {
              tell(epoch, std::move(said));
              return Done{};
            }},
        [](const Status&) {});
  }

  /// Runs aside.
  Result<std::shared_ptr<RunHome>> open(const Placement& placement, int here) {
    auto make_device = cluster_.order_.make_device;
    const bool is_played = !make_device;
    if (is_played)
      make_device = [this] {
        return LittleDevice{std::make_unique<BreakableExecutor>(are_broken_), nullptr};
      };
    auto home = LittleHome::make(cluster_.piece_, placement, here, make_device);
    if (is_played && number_ != cluster_.order_.without_links)
      home->link(cluster_.world_, number_ == cluster_.order_.of_another_kind ? "other" : "played");
    {
      const std::lock_guard lock(mutex_);
      devices_ = home->devices;
    }
    if (number_ == cluster_.order_.born_frozen && std::exchange(is_first_, false))
      cluster_.freeze_devices(number_);
    // The attempt lets go of it once its jobs are done.
    return std::shared_ptr<RunHome>(
        home.get(), [this, home](RunHome*) { cluster_.bytes_left_ += home->bytes_in_use(); });
  }

  /// Ends the attempt if there is one, and then goes on.
  void end() {
    if (!node_attempt_) return go_on();
    if (std::exchange(is_ending_, true)) return;
    node_attempt_->end([this] {
      node_attempt_.reset();
      is_ending_ = false;
      go_on();
    });
  }

  void go_on() {
    if (const auto stopped = std::exchange(when_stopped_, nullptr)) return stopped();
    const auto next = std::exchange(next_, std::nullopt);
    if (next && !is_stopping_ && !is_dead_) prepare(*next);
  }

  void tell(std::uint64_t epoch, transport::Message message) {
    if (is_dead_) return;
    message.run = "little";
    message.epoch = epoch;
    cluster_.heard(incarnation(), std::move(message));
  }

  const int number_;
  LittleCluster& cluster_;
  std::unique_ptr<NodeAttempt> node_attempt_;
  bool is_ending_ = false;                  // The attempt is about to end.
  std::optional<transport::Message> next_;  // An order to prepare, which waits for that.
  bool is_stopping_ = false;
  std::function<void()> when_stopped_;  // Called once when it has stopped.
  bool is_first_ = true;

  mutable std::mutex mutex_;
  std::vector<int> devices_;
  // Shared with its devices.
  const IsBroken are_broken_ = std::make_shared<std::atomic<bool>>(false);
  std::atomic<std::uint64_t> attempt_ = 0;
  std::atomic<int> player_ = 0;
  std::atomic<bool> is_dead_ = false;
  const std::unique_ptr<Loop> loop_;
};

LittleCluster::LittleCluster(const Piece& piece, const ClusterOrder& order)
    : piece_(piece),
      order_(order),
      world_(1),
      devices_([this] {
        while (!stopping_)
          if (!world_.step()) std::this_thread::yield();
      }),
      pool_([this](std::uint64_t to, const transport::Message& said) { return send(to, said); }) {
  player_host_ = std::make_unique<RemotePlayerHost>(env_, network_, pool_,
                                                    RemoteOrder{.run = "little",
                                                                .config = {},
                                                                .fewest = 1,
                                                                .most = order.nodes,
                                                                .carriers = order.carriers,
                                                                .placed = {}},
                                                    DecisionLog{});
  for (int i = 0; i < order.nodes; ++i) {
    nodes_.push_back(std::make_unique<LittleNode>(*this, i));
    Inventory inventory;
    inventory.precision = "fp32";
    pool_.add(nodes_.back()->incarnation(), "node-" + std::to_string(i), std::move(inventory));
  }
}

LittleCluster::~LittleCluster() {
  nodes_.clear();
  stopping_ = true;
  devices_.join();
}

Played LittleCluster::play() {
  LittleRun run(piece_);
  ComputingThread reader(1);
  const auto spec = run.spec([&]() -> Executor& { return reader; });
  for (auto& executor : spec->executors) executor = nullptr;
  spec->player_host = player_host_.get();
  Played played;
  {
    std::promise<Outcome> ended;
    const auto gone = std::make_shared<std::promise<void>>();
    const auto group = std::make_shared<caf_shim::ActorGroup>();
    {
      const auto supervisor = spawn_supervisor({system_, group}, spec, {}, [&](Outcome outcome) {
        ended.set_value(std::move(outcome));
      });
      played.outcome = ended.get_future().get();
    }
    group->when_empty([gone] { gone->set_value(); });
    gone->get_future().wait();
  }
  played.ended = true;
  played.events = run.events();
  played.numbers = numbers_of_weights(played.outcome.weights);
  played.weights = digest_of_weights(std::exchange(played.outcome.weights, {}));
  for (const auto& node : nodes_) node->stop();
  player_host_.reset();
  played.bytes_left = bytes_left_;
  return played;
}

Status LittleCluster::send(std::uint64_t incarnation, const transport::Message& message) {
  nodes_[incarnation - 1]->hear(message);
  return Done{};
}

void LittleCluster::heard(std::uint64_t incarnation, transport::Message message) {
  player_host_->heard(incarnation, std::move(message));
}

void LittleCluster::kill(int node) {
  auto& dying = *nodes_[static_cast<std::size_t>(node)];
  dying.die();
  (void)pool_.remove(dying.incarnation());
  NodeHere gone;
  gone.incarnation = dying.incarnation();
  player_host_->lost(gone, {.why = killed_by_test});
}

void LittleCluster::freeze_devices(int node) {
  nodes_[static_cast<std::size_t>(node)]->for_each_device([&](int device) { world_.kill(device); });
}

void LittleCluster::block_devices(int node) {
  nodes_[static_cast<std::size_t>(node)]->for_each_device(
      [&](int device) { world_.block(device); });
}

void LittleCluster::break_devices(int node) {
  nodes_[static_cast<std::size_t>(node)]->break_devices();
}

void LittleCluster::fail_player(int node) {
  const auto& at = *nodes_[static_cast<std::size_t>(node)];
  say(node, transport::to_message(StageFailed{
                {PlayerId::Kind::stage, at.player()}, "the test has said so", EndCause::lost}));
}

void LittleCluster::say(int node, transport::Message message) {
  const auto& at = *nodes_[static_cast<std::size_t>(node)];
  message.run = "little";
  message.epoch = at.attempt();
  heard(at.incarnation(), std::move(message));
}

void LittleCluster::tell_stuck(const std::string& why) {
  const std::lock_guard lock(mutex_);
  stuck_ += why + "\n";
}

std::string LittleCluster::stuck() const {
  const std::lock_guard lock(mutex_);
  return stuck_;
}

}  // namespace troupe::actors
