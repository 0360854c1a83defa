#include "actors/remote_cast.h"

#include <algorithm>
#include <condition_variable>
#include <future>
#include <map>
#include <optional>
#include <random>
#include <thread>
#include <utility>

#include "actors/assembled.h"
#include "actors/cause.h"
#include "actors/checkpoints.h"
#include "actors/envoy.h"
#include "actors/lines.h"
#include "actors/rt.h"
#include "actors/run_orders.h"
#include "actors/site.h"

namespace troupe::actors {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto load_patience = std::chrono::minutes(10);
// In which nodes find a head that has come back.
constexpr auto return_patience = std::chrono::seconds(1);

std::int64_t random_token() {
  static std::random_device random;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  const auto high = static_cast<std::int64_t>(random() & 0x7fffffff);
  return (high << 32) | static_cast<std::int64_t>(random());
}

}  // namespace

/// One attempt: from the search for nodes until the last envoy is gone.
class RemoteCasting::Attempt : public std::enable_shared_from_this<Attempt> {
 public:
  Attempt(RemoteCasting& casting, RemoteOrder order, const Backstage& backstage, int number,
          Origin origin)
      : casting_(casting),
        order_(std::move(order)),
        spec_(backstage.spec),
        supervisor_(caf::actor_cast<caf::weak_actor_ptr>(backstage.supervisor)),
        number_(number),
        origin_(std::move(origin)) {}

  ~Attempt() {
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
    }
    changed_.notify_all();
    casting_.nodes_.wake();
    if (assembling_.joinable()) assembling_.join();
    for (const auto& node : used_) (void)say(node, transport::to_message(Stop{}));
    mesh_.reset();
  }

  void assemble(std::map<PlayerId, caf::weak_actor_ptr> envoys) {
    envoys_ = std::move(envoys);
    assembling_ = std::thread([this] {
      if (auto assembled = gather(); !assembled) cannot_begin(assembled.error().text);
    });
  }

  /// From an envoy, once all are assembled: to its player.
  Status carry(PlayerId to, Dispatch dispatch) {
    const std::lock_guard lock(mutex_);
    const auto process = static_cast<std::size_t>(placement_.process_of(to));
    return say(used_[process], as_message(to, std::move(dispatch)));
  }

  void heard(std::uint64_t node, transport::Message message) {
    if (message.epoch != static_cast<std::uint64_t>(number_)) return;
    if (message.type == Prepared::type) return prepared(node, message);
    if (message.type == PrepareFailed::type) {
      const auto failed = transport::from_message<PrepareFailed>(message);
      return failed ? end_all_of(node, failed->why, failed->cause)
                    : refuse(node, failed.error().text);
    }
    if (message.type == StageFailed::type) {
      const auto failed = transport::from_message<StageFailed>(message);
      return failed ? end(*failed) : refuse(node, failed.error().text);
    }
    auto addressed = as_dispatch(std::move(message));
    if (!addressed) return refuse(node, addressed.error().text);
    if (auto supervisor = caf::actor_cast<caf::actor>(supervisor_))
      if (auto told = deliver(std::move(addressed->dispatch), *spec_, supervisor); !told)
        refuse(node, told.error().text);
  }

  /// Where this player is; nothing where what ended the attempt is no node's fault.
  std::optional<NodeHere> blamed(PlayerId player) {
    const std::lock_guard lock(mutex_);
    if (cannot_begin_ || used_.empty()) return {};
    const auto process = static_cast<std::size_t>(placement_.process_of(player));
    return process < used_.size() ? std::optional(used_[process]) : std::nullopt;
  }

  /// All players that are there end.
  void end_all_of(std::uint64_t node, const std::string& why, Cause cause) {
    std::string text;
    int process = -1;
    {
      const std::lock_guard lock(mutex_);
      process = process_of(node);
      if (process < 0) return;
      text = used_[static_cast<std::size_t>(process)].title() + ": " + why;
      if (failure_.empty()) failure_ = text;
    }
    changed_.notify_all();
    end_process(process, {text, cause});
  }

 private:
  Status gather() {
    const auto began = Clock::now();
    const auto& order = order_;
    std::vector<NodeHere> nodes;
    const auto patience = casting_.has_played_ ? order.suspend_patience : order.node_patience;
    wait("waits for nodes", patience, [&](std::chrono::milliseconds slice) {
      nodes =
          casting_.nodes_.wait_for(order.fewest, order.least, slice, [this] { return is_over(); });
      return is_over() || static_cast<int>(nodes.size()) >= order.fewest;
    });
    if (is_over()) return Done{};
    if (static_cast<int>(nodes.size()) < order.fewest)
      return too_few(nodes.size(), order.fewest, order.least, casting_.nodes_.usable());
    if (const int wanted = had_before(nodes);
        !casting_.has_played_ && static_cast<int>(nodes.size()) < wanted) {
      nodes = casting_.nodes_.wait_for(wanted, order.least, return_patience,
                                       [this] { return is_over(); });
      if (is_over()) return Done{};
    }
    const auto lineup = line_up(*spec_, casting_.choose(std::move(nodes)), order.most);
    const auto& placement = lineup.placement;
    {
      const std::lock_guard lock(mutex_);
      placement_ = placement;
      used_ = lineup.nodes;
      addresses_.resize(static_cast<std::size_t>(placement.processes));
      kept_.resize(used_.size());
    }
    if (order.placed) order.placed(lineup);
    const auto found = Clock::now();
    if (auto prepared = prepare(placement); !prepared) return prepared;
    const auto ready = Clock::now();
    if (auto state = find_state(placement); !state) return state;
    if (auto started = start(placement); !started) {
      // Somebody could not be reached.
      const std::lock_guard lock(mutex_);
      cause_ = Cause::lost;
      return started;
    }
    casting_.has_played_ = true;
    int copies = 0;
    for (const auto& keepers : keepers_) copies += static_cast<int>(keepers.size());
    rt::post(supervisor_,
             Assembled{number_, step_, in_memory_.has_value(), static_cast<int>(used_.size()),
                       copies, found - began, ready - found, Clock::now() - ready});
    return Done{};
  }

  /// Nodes on which the run was played in the life of the head before, as far as one of them is
  /// here; no more than it takes.
  int had_before(const std::vector<NodeHere>& nodes) const {
    int most = 0;
    for (const auto& node : nodes)
      for (const auto& kept : node.inventory.kept)
        if (kept.run == order_.run) most = std::max(most, kept.nodes);
    return std::min(most, order_.most);
  }

  /// Waits slice by slice; meanwhile the supervisor hears that nobody stands still.
  template <class IsDone>
  bool wait(const std::string& what, std::chrono::milliseconds patience, IsDone is_done) {
    constexpr std::chrono::milliseconds slice(500);
    for (std::chrono::milliseconds waited(0); waited < patience; waited += slice) {
      if (is_done(std::min(slice, patience - waited))) return true;
      const auto supervisor = caf::actor_cast<caf::actor>(supervisor_);
      if (!supervisor) continue;
      const Wait wait = waits("it " + what + ", for " + std::to_string(waited.count()) + " ms");
      for (const auto& [player, envoy] : envoys_)
        rt::post(supervisor, Pulse{number_, player, wait, 0});
    }
    return false;
  }

  Status prepare(const Placement& placement) {
    const auto processes = static_cast<std::size_t>(placement.processes);
    tokens_.assign(processes, std::vector<std::int64_t>(processes));  // [to][from]
    for (auto& to : tokens_)
      for (auto& token : to) token = random_token();
    const auto head = static_cast<std::size_t>(placement.head());
    const auto weak = weak_from_this();
    auto mesh = Mesh::open(
        casting_.channels_,
        {.epoch = epoch_of(order_.run, static_cast<std::uint64_t>(number_)),
         .here = placement.head(),
         .processes = placement.processes,
         .tokens = {tokens_[head].begin(), tokens_[head].end()},
         .bound = bound_of(*spec_),
         .memory = &casting_.memory_,
         .interface = order_.interface,
         .carriers = order_.carriers,
         .on_dispatch =
             [this](int from, PlayerId, Dispatch dispatch) {
               auto supervisor = caf::actor_cast<caf::actor>(supervisor_);
               if (!supervisor) return;
               if (auto delivered = deliver(std::move(dispatch), *spec_, supervisor); !delivered)
                 end_process(from, {delivered.error().text, Cause::failed});
             },
         .on_lost =
             [this](int process, const std::string& why) {
               doubt(process);
               end_process(process,
                           {"the channel to " + name_of(process) + ": " + why, Cause::lost});
             }});
    if (!mesh) return mesh.error();
    mesh_ = std::move(*mesh);
    addresses_[head] = mesh_->address();
    for (std::size_t i = 0; i < used_.size(); ++i) {
      const auto message =
          transport::to_message(Prepare{order_.config, placement, static_cast<int>(i), tokens_[i]});
      if (auto said = say(used_[i], message); !said) return said;
    }
    const bool all = wait("waits for nodes to prepare", order_.prepare_patience,
                          [&](std::chrono::milliseconds slice) {
                            std::unique_lock lock(mutex_);
                            return changed_.wait_for(lock, slice, [&] {
                              return is_over_ || !failure_.empty() || prepared_ == used_.size();
                            });
                          });
    if (!all)
      for (const auto& late : unprepared())
        end_all_of(late.incarnation,
                   "it has not prepared within " +
                       std::to_string(order_.prepare_patience.count() / 1000) + " s",
                   Cause::failed);
    const std::lock_guard lock(mutex_);
    if (!failure_.empty()) return Error{failure_};
    return Done{};
  }
  std::vector<NodeHere> unprepared() {
    const std::lock_guard lock(mutex_);
    std::vector<NodeHere> late;
    for (std::size_t i = 0; i < used_.size(); ++i)
      if (addresses_[i].tcp.empty()) late.push_back(used_[i]);
    return late;
  }

  /// In the memory of these nodes, or else on the disk.
  Status find_state(const Placement& placement) {
    if (is_over()) return Done{};
    {
      const std::lock_guard lock(mutex_);
      in_memory_ = find_newest(kept_, placement.optimizers, origin_.committed);
    }
    if (in_memory_ && in_memory_->step < origin_.saved) in_memory_.reset();
    if (in_memory_) {
      step_ = in_memory_->step;
      return Done{};
    }
    auto loading = std::async(std::launch::async, origin_.load);
    wait("waits for the newest checkpoint to be read", load_patience,
         [&](std::chrono::milliseconds slice) {
           return loading.wait_for(slice) == std::future_status::ready;
         });
    auto loaded = loading.get();
    origin_.load = nullptr;  // It holds what is not needed any more.
    if (!loaded) return loaded.error();
    loaded_ = std::move(*loaded);
    step_ = loaded_.step;
    return Done{};
  }

  Status start(const Placement& placement) {
    if (is_over()) return Done{};
    const auto head = static_cast<std::size_t>(placement.head());
    const auto tokens_of = [&](std::size_t from) {
      std::vector<std::int64_t> tokens;
      for (const auto& to : tokens_) tokens.push_back(to[from]);
      return tokens;
    };
    const bool is_loaded = !loaded_.weights.empty();
    const auto optimizers = placement.optimizers.size();
    const auto states = in_memory_  ? in_memory_->from
                        : is_loaded ? std::vector(optimizers, placement.head())
                                    : std::vector<int>();
    if (spec_->copies > 1) {
      std::vector<std::string> machines;
      for (std::size_t i = 0; i < used_.size(); ++i) machines.push_back(addresses_[i].machine);
      keepers_ = keepers_of(placement.optimizers, machines, spec_->copies);
    }
    for (std::size_t i = 0; i < used_.size(); ++i) {
      const auto message =
          transport::to_message(Start{addresses_, tokens_of(i), step_, states, keepers_});
      if (auto said = say(used_[i], message); !said) return said;
    }
    const auto tokens = tokens_of(head);
    if (auto connected = mesh_->connect(addresses_, {tokens.begin(), tokens.end()}); !connected)
      return connected;
    for (int i = 0; is_loaded && i < static_cast<int>(optimizers); ++i) {
      const PlayerId optimizer{PlayerId::Kind::optimizer, i};
      auto part = part_of(loaded_, *spec_, i);
      const auto dispatch =
          to_dispatch(Snapshot{0, i, part.step, std::move(part.weights), std::move(part.moments)},
                      casting_.memory_);
      if (auto sent = mesh_->send(placement.process_of(optimizer), optimizer, dispatch); !sent)
        return sent;
    }
    loaded_ = {};
    return Done{};
  }

  void prepared(std::uint64_t node, const transport::Message& message) {
    auto read = transport::from_message<Prepared>(message);
    if (!read) return refuse(node, read.error().text);
    {
      const std::lock_guard lock(mutex_);
      for (std::size_t i = 0; i < used_.size(); ++i)
        if (used_[i].incarnation == node && addresses_[i].tcp.empty()) {
          addresses_[i] = std::move(read->address);
          kept_[i] = std::move(read->kept);
          ++prepared_;
        }
    }
    changed_.notify_all();
  }

  /// With the lock held; -1 where it has no part.
  int process_of(std::uint64_t node) const {
    const auto found = std::ranges::find(used_, node, &NodeHere::incarnation);
    return found == used_.end() ? -1 : static_cast<int>(found - used_.begin());
  }

  Status say(const NodeHere& node, transport::Message message) const {
    message.run = order_.run;
    message.epoch = static_cast<std::uint64_t>(number_);
    auto sent = casting_.nodes_.send(node.incarnation, message);
    if (!sent) return within(node.title(), sent.error());
    return Done{};
  }

  void end(const StageFailed& failed) const {
    if (const auto found = envoys_.find(failed.player); found != envoys_.end())
      rt::post(found->second, PlayerEnded{failed.why, failed.cause});
  }
  void end_process(int process, const PlayerEnded& ended) const {
    for (const auto& [player, envoy] : envoys_)
      if (placement_.process_of(player) == process) rt::post(envoy, ended);
  }
  /// Where it is not known already that a node is to blame.
  void cannot_begin(const std::string& why) {
    const std::unique_lock lock(mutex_);
    if (!failure_.empty()) return;
    cannot_begin_ = true;
    for (const auto& [player, envoy] : envoys_) rt::post(envoy, PlayerEnded{why, cause_});
  }
  /// Perhaps it is dead: no other attempt uses it before it is heard again.
  void doubt(int process) {
    const std::lock_guard lock(mutex_);
    if (!is_over_)
      casting_.nodes_.set_away(used_[static_cast<std::size_t>(process)].incarnation, true);
  }
  /// It has said what a sane node does not say.
  void refuse(std::uint64_t node, const std::string& why) { end_all_of(node, why, Cause::failed); }
  std::string name_of(int process) const {
    return process < static_cast<int>(used_.size())
               ? used_[static_cast<std::size_t>(process)].title()
               : "the head";
  }
  bool is_over() {
    const std::lock_guard lock(mutex_);
    return is_over_;
  }

  RemoteCasting& casting_;
  RemoteOrder order_;
  RunSpecPtr spec_;
  caf::weak_actor_ptr supervisor_;
  int number_;
  Origin origin_;
  std::map<PlayerId, caf::weak_actor_ptr> envoys_;

  // Of the thread that assembles.
  std::optional<Found> in_memory_;
  StartPoint loaded_;  // Where nothing newer is in memory.
  std::int64_t step_ = 0;
  std::vector<std::vector<int>> keepers_;  // By optimizer.

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_over_ = false;
  bool cannot_begin_ = false;  // For no fault of a node's.
  std::string failure_;        // Of the first node that had one.
  Cause cause_ = Cause::failed;
  std::size_t prepared_ = 0;
  std::vector<NodeHere> used_;  // By process.
  Placement placement_;
  std::vector<MeshAddress> addresses_;
  std::vector<std::vector<KeptStep>> kept_;  // Likewise.
  std::vector<std::vector<std::int64_t>> tokens_;
  std::unique_ptr<Mesh> mesh_;
  std::thread assembling_;
};

RemoteCasting::RemoteCasting(NodePool& nodes, transport::ChannelThread& channels, RemoteOrder order)
    : nodes_(nodes), channels_(channels), order_(std::move(order)) {}

RemoteCasting::~RemoteCasting() = default;

Company RemoteCasting::begin(caf::actor_system& system, const Backstage& backstage, int number,
                             Origin origin) {
  const auto attempt =
      std::make_shared<Attempt>(*this, order(), backstage, number, std::move(origin));
  std::map<PlayerId, caf::weak_actor_ptr> envoys;
  auto company = company_of(backstage, number, [&](PlayerId id) {
    auto envoy = spawn_envoy(
        system, id,
        [attempt](PlayerId to, Dispatch dispatch) {
          return attempt->carry(to, std::move(dispatch));
        },
        memory_);
    envoys.emplace(id, rt::weak(envoy));
    return envoy;
  });
  {
    const std::lock_guard lock(mutex_);
    attempt_ = attempt;
  }
  for (const auto& player : company.players) rt::post(player.actor, Meet{company.cast});
  attempt->assemble(std::move(envoys));
  return company;
}

std::optional<std::string> RemoteCasting::set_aside(PlayerId player, const std::string& why) {
  const auto attempt = current();
  const auto node = attempt ? attempt->blamed(player) : std::nullopt;
  if (!node) return {};
  const auto now = SetAside::Clock::now();
  const auto seconds =
      std::chrono::duration_cast<std::chrono::seconds>(set_aside_.add(node->name, now));
  const auto others = choose(nodes_.usable(order().least));
  if (std::ranges::count(others, node->name, &NodeHere::name) > 0) return {};
  const Unfit unfit{order().run, "something failed on it: " + why + "; it may get one again in " +
                                     std::to_string(seconds.count()) + " s"};
  (void)nodes_.send(node->incarnation, transport::to_message(unfit));
  return node->name;
}

std::vector<NodeHere> RemoteCasting::choose(std::vector<NodeHere> nodes) const {
  return set_aside_.choose(std::move(nodes), order().fewest, SetAside::Clock::now());
}

void RemoteCasting::over(Outcome::How how) {
  if (comes_back_ && how == Outcome::How::stopped) return;
  auto message = transport::to_message(Forget{});
  message.run = order().run;
  for (const auto& node : nodes_.all()) (void)nodes_.send(node.incarnation, message);
}

void RemoteCasting::change(RemoteOrder order) {
  const std::lock_guard lock(mutex_);
  order_ = std::move(order);
}

RemoteOrder RemoteCasting::order() const {
  const std::lock_guard lock(mutex_);
  return order_;
}

std::shared_ptr<RemoteCasting::Attempt> RemoteCasting::current() {
  const std::lock_guard lock(mutex_);
  return attempt_.lock();
}

void RemoteCasting::heard(std::uint64_t node, transport::Message message) {
  if (const auto attempt = current()) attempt->heard(node, std::move(message));
}

void RemoteCasting::lost(std::uint64_t node, const std::string& why) {
  if (const auto attempt = current()) attempt->end_all_of(node, why, Cause::lost);
}

}  // namespace troupe::actors
