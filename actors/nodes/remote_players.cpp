#include "actors/nodes/remote_players.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "actors/caf_shim.h"

namespace troupe::actors {
namespace {

constexpr auto look_every = std::chrono::milliseconds(100);
// A node with a failure is avoided for a while, twice as long each time.
constexpr transport::StrikeRules strike_rules{.most = 1,
                                              .within = std::chrono::minutes(1),
                                              .quarantine = std::chrono::minutes(1),
                                              .longest = std::chrono::hours(1)};

int last_attempt_of(const decide::JournalRead& before) {
  return static_cast<int>(
      std::max(decide::remember(before.records).attempt, before.earlier_attempts));
}

decide::Life life_of(const NodeHere& node) { return static_cast<decide::Life>(node.incarnation); }

}  // namespace

RemotePlayerHost::RemotePlayerHost(Env& env, transport::Network& network, NodePool& nodes,
                                   RemoteOrder order, DecisionLog decisions, UnledRun unled)
    : env_(env),
      network_(network),
      nodes_(nodes),
      order_(std::move(order)),
      decisions_(std::move(decisions)),
      unled_(std::move(unled)),
      has_begun_before_(decide::remember(decisions_.before.records).has_planned),
      last_attempt_(last_attempt_of(decisions_.before)),
      loop_(env.make_loop({"deciding"})),
      driver_(env, *loop_,
              {[this](const decide::State& state) { return limits(state); }, decisions_.write,
               [this](const decide::Answer& answer) { carry_out(answer); }}) {}

RemotePlayerHost::~RemotePlayerHost() { end(); }

decide::Limits RemotePlayerHost::limits(const decide::State& state) const {
  const auto order = this->order();
  decide::Limits limits;
  limits.fewest = order.fewest;
  // All present nodes take part, and no others are waited for.
  limits.most = std::max(order.fewest, std::min(order.most, nodes_.count_usable(order.least)));
  limits.start_patience = order.node_patience;
  limits.gather_patience = order.gather_patience;
  limits.prepare_patience = order.prepare_patience;
  limits.load_patience = order.load_patience;
  const bool is_new = !has_begun_before_ && !has_played_ &&
                      state.attempt <= static_cast<std::uint64_t>(last_attempt_);
  limits.suspend_patience = is_new ? std::chrono::milliseconds(0) : order.suspend_patience;
  limits.keep = order.keep;
  limits.copies = order.copies;
  limits.failures = {order.strikes, order.strike_window};
  limits.strikes = strike_rules;
  limits.futile_attempts = order.futile_epochs;
  limits.most_futile = order.futile_epochs + order.strikes;
  return limits;
}

void RemotePlayerHost::open() {
  driver_.post([this] {
    boot();
    look_at_nodes();
    tick(progress_.number);
  });
}

// The functions below are called by the supervisor.

Team RemotePlayerHost::begin(const caf_shim::Spawner& spawner,
                             const AttemptContext& attempt_context, int number, Origin origin) {
  const auto order = this->order();
  if (number == last_attempt_ + 1)
    driver_.post([this, saves = decide::SavesRead{origin.all_saved(), origin.committed}] {
      boot();
      take(saves);
    });
  const auto own = std::make_shared<Attempt>(
      Attempt::Context{
          env_, *loop_, nodes_, network_, memory_, order.run, order.interface, order.carriers,
          order.keys, order.plain,
          [this, number](std::uint64_t node, std::vector<KeptStep> kept) {
            driver_.post([this, number, node, kept = std::move(kept)] {
              if (progress_.number != number) return;
              hear_ledger();
              driver_.hear(decide::Prepared{static_cast<Life>(node), progress_.id, kept});
            });
          },
          [this, number](const NodeHere& one, const NodeHere& other, const std::string& why) {
            driver_.post([this, number, one = life_of(one), other = life_of(other), why] {
              if (progress_.number != number) return;
              take(decide::PairLost{one, other, progress_.id, why});
            });
          }},
      attempt_context, number, std::move(origin));
  // The attempt is over when its last proxy is gone, even if it still works aside. The loop
  // destroys it, because the end of its channels waits for their thread, which may wait for the
  // thread that drops the last proxy. Weak pointers keep this function, which must not keep the
  // attempt.
  const std::shared_ptr<Attempt> attempt(own.get(), [this, held = own](Attempt*) mutable {
    held->end();
    loop_->post([last = std::move(held)] {});
  });
  auto team = team_of(attempt_context, number, [&](PlayerId id) {
    auto proxy = spawn_proxy(spawner, id, {[attempt](PlayerId to, WireMessage wire_message) {
                               return attempt->carry(to, std::move(wire_message));
                             }},
                             memory_);
    attempt->proxies().emplace(id, caf_shim::weak(proxy));
    return proxy;
  });
  {
    const std::lock_guard lock(mutex_);
    attempt_ = attempt;
    blame_ = attempt->blame();
    supervisor_ = caf::actor_cast<caf::weak_actor_ptr>(attempt_context.supervisor);
  }
  for (const auto& player : team.all) caf_shim::post(player.actor, Meet{team.players});
  driver_.post([this, number, weak = std::weak_ptr(attempt)] { stage_is_free(number, weak); });
  return team;
}

void RemotePlayerHost::failed(std::optional<PlayerId> player, const std::string& why) {
  const auto node = player ? blamed(*player) : std::nullopt;
  driver_.post([this, life = node ? life_of(*node) : 0, attempt = playing_.load(), why] {
    failed_on(life, attempt, why);
  });
}

void RemotePlayerHost::refuse(PlayerId player, const std::string& why) {
  if (const auto node = blamed(player)) nodes_.strike(node->incarnation, why);
}

std::optional<std::string> RemotePlayerHost::node_of(PlayerId player) const {
  const auto node = blamed(player);
  return node ? std::optional(node->name) : std::nullopt;
}

void RemotePlayerHost::tell(decide::Event event) { take(of_attempt(playing_, std::move(event))); }

std::vector<NodeHere> RemotePlayerHost::choose(std::vector<NodeHere> nodes) const {
  const auto state = driver_.state();
  const auto lives = decide::usable(state, env_.now(), limits(state));
  std::erase_if(nodes, [&](const NodeHere& node) {
    return !std::ranges::binary_search(lives, life_of(node));
  });
  return nodes;
}

void RemotePlayerHost::over(Outcome::How how) {
  const bool goes_on = comes_back_ && how == Outcome::How::stopped;
  const auto state = driver_.state();
  std::vector<decide::Record> last;
  // A later head that resumes the run then waits for no nodes.
  if (!goes_on && state.attempt > 0)
    last.push_back({.kind = decide::Record::Kind::aborted,
                    .term = state.term,
                    .attempt = state.attempt,
                    .step = state.decided,
                    .why = "the run has ended"});
  driver_.rest(last);
  if (goes_on) return;
  auto message = transport::to_message(Forget{});
  message.run = order().run;
  for (const auto& node : nodes_.all()) (void)nodes_.send(node.incarnation, message);
}

void RemotePlayerHost::change(RemoteOrder order) {
  const std::lock_guard lock(mutex_);
  order_ = std::move(order);
}

void RemotePlayerHost::change_config(Value config) {
  const std::lock_guard lock(mutex_);
  order_.config = std::move(config);
}

RemoteOrder RemotePlayerHost::order() const {
  const std::lock_guard lock(mutex_);
  return order_;
}

std::shared_ptr<Attempt> RemotePlayerHost::newest() const {
  const std::lock_guard lock(mutex_);
  return attempt_.lock();
}

/// Returns the player's node in the newest attempt, be it gone or not.
std::optional<NodeHere> RemotePlayerHost::blamed(PlayerId player) const {
  std::shared_ptr<const Blame> blame;
  {
    const std::lock_guard lock(mutex_);
    blame = blame_;
  }
  return blame ? blame->of(player) : std::nullopt;
}

// The functions below are called for nodes.

void RemotePlayerHost::heard(std::uint64_t node, transport::Message message) {
  if (const auto attempt = newest()) attempt->heard(node, std::move(message));
}

void RemotePlayerHost::arrived() {
  if (looks_soon_.exchange(true)) return;
  driver_.post([this] {
    // Many nodes may come at once: the first is looked at now, and the others together.
    const Duration wait = looked_ + look_every - env_.now();
    driver_.after(std::max(wait, Duration::zero()), [this] {
      looks_soon_ = false;
      looked_ = env_.now();
      look_at_nodes();
      foresee();
    });
  });
}

void RemotePlayerHost::lost(const NodeHere& node, const NodeLoss& loss) {
  if (const auto attempt = newest())
    attempt->end_all_of(node.incarnation, loss.why, EndCause::lost);
  if (loss.has_ended)
    driver_.post([this, text = "on node " + node.name + " " + loss.why] { last_end_ = text; });
  take(decide::NodeLost{life_of(node), loss.why, !loss.has_ended,
                        loss.has_ended ? std::optional(loss.signal) : std::nullopt});
  if (foresees_soon_.exchange(true)) return;
  // Many nodes may go at once.
  driver_.after(look_every, [this] {
    foresees_soon_ = false;
    foresee();
  });
}

// The functions below run on the run's loop.

/// Tells the machine once what earlier heads decided.
void RemotePlayerHost::boot() {
  if (driver_.state().phase == decide::Phase::boot) take(decisions_.before);
}

/// Lets the machine know which steps the ledger has now, since an attempt is about to begin after
/// one of them. The supervisor tells it as well, but may be late.
void RemotePlayerHost::hear_ledger() {
  const auto attempt = progress_.attempt.lock();
  if (!attempt || !attempt->spec().ledger) return;
  driver_.hear(decide::StepEntered{0, attempt->spec().ledger->steps()});
}

/// Starts a new attempt, after the previous one is gone.
void RemotePlayerHost::stage_is_free(int number, std::weak_ptr<Attempt> attempt) {
  progress_ = {.number = number, .attempt = std::move(attempt), .began = env_.now()};
  playing_ = 0;
  is_led_ = has_asked_ = true;
  if (early_end_) return post(*early_end_);
  look_at_nodes();
  driver_.post([this] { take(decide::AttemptEnded{driver_.state().attempt}); });
  tick(number);
}

/// Repeats while an attempt waits to begin, or the run for its first plan.
void RemotePlayerHost::tick(int number) {
  const auto attempt = progress_.attempt.lock();
  if ((!attempt && is_led_) || progress_.number != number) return;
  const auto state = driver_.state();
  if (state.phase == decide::Phase::run && progress_.is_planned) return;
  if (state.phase == decide::Phase::ended) return;
  if (attempt)
    attempt->wait(state.phase == decide::Phase::prepare ? "nodes to prepare"
                  : state.phase == decide::Phase::load  ? "the state to be read"
                                                        : "nodes");
  look_at_nodes();
  plan();
  driver_.after(look_every, [this, number] { tick(number); });
}

/// Tells the machine which nodes joined, and which of those that it knows became usable or
/// unusable.
void RemotePlayerHost::look_at_nodes() {
  const auto state = driver_.state();
  const auto least = order().least;
  for (const auto& node : nodes_.all()) {
    const Life life = life_of(node);
    const auto known = state.nodes.find(life);
    if (known == state.nodes.end()) {
      if (!node.away && !node.cordoned && has(node.inventory, least))
        take(decide::NodeCame{life, node.name});
      continue;
    }
    if (known->second.is_heard == node.away) take(decide::NodeHeard{life, !node.away});
    if (known->second.is_cordoned != node.cordoned) take(decide::NodeCordoned{life, node.cordoned});
  }
}

void RemotePlayerHost::failed_on(decide::Life life, std::uint64_t attempt, const std::string& why) {
  const auto state = driver_.state();
  if (attempt != state.attempt) return;
  if (life != 0 && state.phase == decide::Phase::prepare)
    take(decide::PrepareFailed{life, state.attempt, why});
  else if (life != 0 && state.phase == decide::Phase::load)
    take(decide::LoadFailed{life, state.attempt, state.line, decide::LoadFailed::Cause::node, why});
  else
    take(decide::PlayerFailed{life, state.attempt, why});
}

namespace {

/// Returns whether only steps or saves are done: they are events of their own.
bool is_routine(const decide::Answer& answer) {
  using enum decide::Row;
  constexpr std::array routine{step_done, save_begins, save_collected, save_waits,
                               saved,     save_failed, boundary_asked, boundary_passed};
  return std::ranges::all_of(answer.rows,
                             [&](decide::Row row) { return std::ranges::count(routine, row) > 0; });
}

}  // namespace

void RemotePlayerHost::carry_out(const decide::Answer& answer) {
  // A decision that is tried again and again, because the disk is full, is told once.
  const bool is_new = answer.rows != last_rows_ || answer.reason != last_reason_;
  if (!is_routine(answer) && is_new) order().decided(answer);
  if (!answer.rows.empty()) last_rows_ = answer.rows;
  if (!answer.reason.empty()) last_reason_ = answer.reason;
  for (const auto& record : answer.records)
    if (record.kind == decide::Record::Kind::strike) hold_against(record);
  for (const auto& order : answer.orders) std::visit([this](const auto& one) { on(one); }, order);
}

/// Handles a strike: ends the players on the struck nodes, and informs nodes that are avoided for a
/// while.
void RemotePlayerHost::hold_against(const decide::Record& strike) {
  const auto state = driver_.state();
  const auto chosen = choose(nodes_.usable(order().least));
  for (const auto& node : nodes_.all()) {
    if (std::ranges::count(strike.names, node.name) == 0) continue;
    if (const auto attempt = progress_.attempt.lock(); attempt && progress_.id == strike.attempt)
      attempt->end_all_of(node.incarnation, strike.why, EndCause::failed);
    const auto left = state.strikes.quarantine_left(node.name, env_.now());
    if (!left || std::ranges::count(chosen, node.name, &NodeHere::name) > 0) continue;
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(*left).count();
    const Unfit unfit{order().run, "something failed on it: " + strike.why +
                                       "; it may get one again in " + std::to_string(seconds) +
                                       " s"};
    (void)nodes_.send(node.incarnation, transport::to_message(unfit));
  }
}

void RemotePlayerHost::on(const decide::MakePlan& order) {
  asked_ = order;
  // Further nodes may have joined whose events are still queued.
  driver_.post([this] { plan(); });
}

/// Makes the run's plan with the nodes that are there now. A run without a supervisor chooses its
/// plan first, and the answer waits for its first attempt.
void RemotePlayerHost::plan() {
  const auto attempt = progress_.attempt.lock();
  if (!asked_ || progress_.is_planned || (!attempt && has_asked_)) return;
  const auto asked = *asked_;
  const auto order = this->order();
  auto nodes = choose(nodes_.usable(order.least));
  const bool is_current = asked.number == driver_.state().plan_number;
  const bool is_enough = static_cast<int>(nodes.size()) >= order.fewest;
  if (!attempt && is_current && is_enough) {
    has_asked_ = true;
    return unled_.choose(std::move(nodes));
  }
  asked_.reset();
  if (!is_current) return;
  if (!is_enough)
    return take(decide::PlanMade{asked.number, {}, "some of them are not there any more"});
  const auto& spec = attempt->spec();
  lineup_ = line_up(spec, nodes, loss_plans_.shares(sharing_of(spec, nodes, order.most)), lineup_);
  decide::PlanChoice choice{{}, to_text(lineup_), lineup_.placement.optimizers};
  for (const auto& node : lineup_.nodes) choice.members.push_back(life_of(node));
  take(decide::PlanMade{
      asked.number, std::move(choice), {}, static_cast<std::uint64_t>(progress_.number)});
}

/// Computes plans for possible losses in advance.
void RemotePlayerHost::foresee() {
  const auto attempt = progress_.attempt.lock();
  if (!attempt || !progress_.has_begun) return;
  const auto order = this->order();
  const auto nodes = choose(nodes_.usable(order.least));
  if (!nodes.empty()) loss_plans_.look_ahead(sharing_of(attempt->spec(), nodes, order.most));
}

void RemotePlayerHost::on(const decide::Prepare& order) {
  const auto attempt = progress_.attempt.lock();
  if (!attempt || progress_.is_planned) return;
  progress_.is_planned = true;
  progress_.id = order.attempt;
  progress_.found = env_.now();
  playing_ = order.attempt;
  const auto run = this->order();
  if (run.placed) run.placed(lineup_);
  if (auto prepared = attempt->prepare(lineup_, run.config); !prepared)
    attempt->cannot_begin(prepared.error().text, EndCause::lost);
}

void RemotePlayerHost::on(const decide::Load& order) {
  const auto attempt = progress_.attempt.lock();
  if (!attempt || progress_.id != order.attempt) return;
  if (progress_.ready == Env::Time()) progress_.ready = env_.now();
  attempt->load(order.source, [this, order](const Status& loaded) {
    if (loaded) return start(order);
    take(decide::LoadFailed{0, order.attempt, order.source.step, decide::LoadFailed::Cause::source,
                            loaded.error().text});
  });
}

/// Starts the players, whose state is there.
void RemotePlayerHost::start(const decide::Load& order) {
  const auto attempt = progress_.attempt.lock();
  if (!attempt || progress_.id != order.attempt) return;
  attempt->start([this, order, number = progress_.number](const Status& started) {
    if (!started)  // Some process could not be reached.
      return driver_.post(
          [=, this, why = started.error().text] { end_attempt(number, why, EndCause::lost); });
    take(decide::Loaded{order.attempt, order.source.step});
    driver_.post([this, number] { tell_keepers(number); });
  });
}

void RemotePlayerHost::tell_keepers(int number) {
  const auto attempt = progress_.attempt.lock();
  if (!attempt || progress_.number != number) return;
  decide::KeptBy kept{progress_.id, {}};
  for (const auto& nodes : attempt->keepers()) {
    auto& lives = kept.keepers.emplace_back();
    for (const auto node : nodes) lives.push_back(static_cast<Life>(node));
  }
  take(std::move(kept));
}

void RemotePlayerHost::on(const decide::Begin& order) {
  const auto attempt = progress_.attempt.lock();
  if (!attempt || progress_.id != order.attempt || std::exchange(progress_.has_begun, true)) return;
  has_played_ = true;
  attempt->begin(progress_.found - progress_.began, progress_.ready - progress_.found,
                 env_.now() - progress_.ready);
  foresee();
}

void RemotePlayerHost::on(const decide::EndAttempt& order) {
  const auto attempt = progress_.attempt.lock();
  if (!attempt || progress_.id != order.attempt) return;
  attempt->cannot_begin(last_reason_, EndCause::lost);
}

void RemotePlayerHost::on(const decide::Warn& order) {
  if (is_led_) return post(Remark{order.text});
  unled_.warn(order.text);
}

void RemotePlayerHost::on(const decide::End& order) {
  const auto end = told(order);
  if (is_led_) return post(end);
  early_end_ = end;
  unled_.end(end);
}

/// Returns the end with a reason for people.
decide::End RemotePlayerHost::told(decide::End end) {
  if (end.how != decide::End::How::failed) return end;
  const auto run = this->order();
  const auto fitting = nodes_.usable(run.least).size();
  lacked_nodes_ = end.code == decide::exit_too_few && static_cast<int>(fitting) < run.fewest;
  if (lacked_nodes_)
    end.why = too_few(fitting, run.fewest, run.least, nodes_.usable()).text;
  else if (!last_end_.empty())
    end.why += "; the last process that ended: " + last_end_;
  return end;
}

/// Ends the attempt of this number, unless it is over.
void RemotePlayerHost::end_attempt(int number, const std::string& why, EndCause cause) {
  if (const auto attempt = progress_.attempt.lock(); attempt && progress_.number == number)
    attempt->cannot_begin(why, cause);
}

}  // namespace troupe::actors
