#include "simulation/head.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "actors/decide/reconciler_journal.h"
#include "simulation/played_message.h"

namespace troupe::simulation {
namespace {

constexpr Duration look_every = std::chrono::milliseconds(50);
constexpr Duration journal_again = std::chrono::seconds(1);

const std::string journal_path = std::string(folder) + "/journal";
const std::string ledger_path = std::string(folder) + "/ledger";
const std::string checkpoints = std::string(folder) + "/checkpoints";

/// Returns the file that claims a term. Its creator leads; heads of earlier terms no longer do.
std::string term_path(std::uint64_t term) {
  return std::string(folder) + "/term-" + std::to_string(term);
}

/// Decodes a node's message as an event of the reconciler.
std::optional<recon::Event> event_in(const transport::Message& message) {
  std::optional<recon::Event> found;
  const auto try_one = [&]<class Said>(const Said*) {
    if (found || message.type != Said::type) return;
    if (auto read = from_played<Said>(message)) found = std::move(*read);
  };
  const auto try_all = [&]<class... Said>(const std::tuple<Said...>*) {
    (try_one(static_cast<const Said*>(nullptr)), ...);
  };
  try_all(static_cast<
          const std::tuple<recon::Attached, recon::Notice, recon::Prepared, recon::PrepareFailed,
                           recon::Loaded, recon::LoadFailed, recon::Frozen, recon::StepDecided,
                           recon::StepFailed, recon::SavePoint>*>(nullptr));
  return found;
}

}  // namespace

Head::Head(World& world, Network::Address address, const recon::Limits& limits, Planner planner,
           HeadHooks hooks)
    : world_(world),
      address_(address),
      limits_(limits),
      planner_(std::move(planner)),
      hooks_(std::move(hooks)) {
  boot();
}

Head::~Head() {
  *alive_ = false;
  world_.network.close(address_);
  if (world_.head == address_) world_.head = 0;
}

void Head::later(Duration time, std::function<void()> what) {
  world_.clock.after(time, [this, alive = alive_, what = std::move(what)] {
    if (!*alive || ended_) return;
    if (world_.clock.now() < paused_until_) return later(paused_until_ - world_.clock.now(), what);
    what();
  });
}

void Head::boot() {
  using Health = recon::JournalRead::Health;
  recon::JournalRead read;
  if (*world_.files.exists(journal_path)) {
    const auto bytes = world_.files.read(journal_path);
    read = recon::read_journal(bytes->text()).read;
  }
  if (read.health == Health::damaged) return take(read);
  if (auto claimed = claim_term(read); !claimed) return later(journal_again, [this] { boot(); });
  auto journal = storage::RecordWriter::open(world_.files, journal_path);
  auto ledger = storage::Ledger::open(world_.files, ledger_path, world_.model.terms());
  // A full disk may have space later.
  if (!journal || !ledger) return later(journal_again, [this] { boot(); });
  journal_ = std::move(*journal);
  ledger_ = std::move(*ledger);
  if (const auto bytes = world_.files.read(ledger_path))
    read.committed = entered_ = storage::audit(bytes->text()).steps;
  if (const auto listed = storage::list_checkpoints(world_.files, checkpoints))
    for (auto one = listed->rbegin(); one != listed->rend(); ++one)
      if (one->state == storage::ListedCheckpoint::State::complete) read.saved.push_back(one->step);
  if (world_.bug == Bug::newest_not_found && !read.saved.empty()) read.saved.pop_back();
  world_.network.open(
      address_, [this](Network::Address, const transport::Message& message) { receive(message); });
  last_look_ = world_.clock.now();
  later(look_every, [this] { look(); });
  take(read);
}

/// Claims the next term by creating its file, which is exclusive even if the folder's lock fails.
Status Head::claim_term(recon::JournalRead& read) {
  auto term = recon::remember(read.records).term;
  // A head that created these files ended before it could write its term record.
  for (; *world_.files.exists(term_path(term + 1)); ++term)
    read.records.push_back({recon::Record::Kind::term, term + 1, 0, 0, {}, {}, {}});
  term_ = term + 1;
  if (world_.bug == Bug::term_not_claimed) return Done{};
  if (auto made = storage::write_new_file(world_.files, term_path(term_), {}); !made) return made;
  return world_.files.sync_directory(folder);
}

bool Head::is_superseded() const { return *world_.files.exists(term_path(term_ + 1)); }

/// Judges the silence of all nodes and reports suspected and dead ones.
void Head::look() {
  if (!world_.beats) return;
  later(look_every, [this] { look(); });
  be_found();
  actors::DetectorLimits limits;
  limits.nodes = static_cast<int>(evidence_.size());
  std::vector<std::string> keys;
  std::vector<actors::Evidence*> all;
  for (auto& [key, evidence] : evidence_) {
    keys.push_back(key);
    all.push_back(&evidence);
  }
  const auto found = actors::judge_all(all, last_look_, look_every, world_.clock.now(), limits);
  last_look_ = world_.clock.now();
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const auto& key = keys[i];
    const auto& presence = found[i];
    const Life life = std::stoll(key);
    switch (presence.is) {
      case actors::Presence::Is::alive:
        suspected_.erase(key);
        break;
      case actors::Presence::Is::suspect:
        if (suspected_.insert(key).second) take(recon::Suspected{life, presence.reason});
        break;
      case actors::Presence::Is::dead:
        evidence_.erase(key);
        if (world_.bug != Bug::deaths_not_heard) take(recon::Lost{life, presence.reason});
        break;
    }
  }
}

void Head::exited(Life life, const std::string& how) {
  if (!world_.beats) return take(recon::Lost{life, how});
  if (const auto found = evidence_.find(std::to_string(life)); found != evidence_.end())
    found->second.exited = how;
}

void Head::closed(Life life) {
  const auto found = evidence_.find(std::to_string(life));
  if (found != evidence_.end() && !found->second.closed) found->second.closed = world_.clock.now();
}

/// Delivers messages in order of arrival, even across several pauses.
void Head::receive(const transport::Message& message) {
  if (world_.clock.now() >= paused_until_ && unheard_.empty()) return hear(message);
  unheard_.push_back(message);
  if (unheard_.size() > 1) return;
  later(paused_until_ - world_.clock.now(), [this, alive = alive_] {
    for (const auto& one : std::exchange(unheard_, {}))
      if (*alive) hear(one);
  });
}

void Head::hear(const transport::Message& message) {
  if (ended_) return;
  const auto life = static_cast<Life>(message.incarnation);
  const auto key = std::to_string(life);
  if (message.type == recon::Attached::type)
    evidence_.try_emplace(key, actors::Evidence{actors::Pulses(world_.clock.now()), {}, {}, 0});
  const auto known = evidence_.find(key);
  if (known == evidence_.end()) {
    // The node was given up. It must return with a new life.
    return tell({life}, recon::Reject{life, "it was given up as dead"});
  }
  known->second.pulses.heard(world_.clock.now());
  known->second.closed.reset();
  if (message.type == "node.heartbeat") return;
  if (message.type == "deposed")
    return take(recon::Deposed{static_cast<std::uint64_t>(integer_in(message.body, "term"))});
  if (message.type == "member.part_written") return part_written(message);
  if (message.type == "member.part_failed")
    return take(recon::SaveFailed{static_cast<std::uint64_t>(integer_in(message.body, "save")),
                                  text_in(message.body, "why")});
  auto event = event_in(message);
  if (!event) return world_.monitor.violated("a head cannot read " + message.type);
  if (message.type == recon::StepDecided::type) enter_in_ledger(message);
  // The simulated store knows what all nodes keep, without messages.
  if (auto* prepared = std::get_if<recon::Prepared>(&*event); prepared && world_.copies.are_kept())
    prepared->kept = {{newest_kept(), {}}};
  take(*event);
}

// Events are answered one after another.

void Head::take(const recon::Event& event) {
  waiting_.push_back(event);
  if (waiting_.size() > 10'000) world_.monitor.violated("more than 10000 events wait in a head");
  answer_next();
}

void Head::answer_next() {
  while (!answers_ && !waiting_.empty() && !ended_) {
    const auto event = waiting_.front();
    auto answer = recon::react(state_, event, world_.clock.now(), limits_);
    check(event, answer);
    if (answer.records.empty()) {
      waiting_.pop_front();
      carry_out(answer);
      continue;
    }
    answers_ = true;
    later(world_.costs.journal, [this, answer = std::move(answer)] {
      answers_ = false;
      if (is_superseded())
        return carry_out(
            recon::react(state_, recon::Deposed{term_ + 1}, world_.clock.now(), limits_));
      if (auto written = write(answer.records); !written) {
        (void)journal_->take_back();
        // The event counts as unanswered and is answered again later.
        auto failed = recon::react(state_, recon::JournalFailed{written.error().text},
                                   world_.clock.now(), limits_);
        carry_out(failed);
        answers_ = true;
        return later(journal_again, [this] {
          answers_ = false;
          answer_next();
        });
      }
      waiting_.pop_front();
      carry_out(answer);
      answer_next();
    });
  }
}

/// Checks that events of an earlier attempt change nothing.
void Head::check(const recon::Event& event, const recon::Answer& answer) const {
  const auto epoch = std::visit(
      [](const auto& one) -> std::optional<std::uint64_t> {
        // A node that attaches reports its attempt, which may be old.
        if constexpr (std::is_same_v<decltype(one), const recon::Attached&>) return {};
        if constexpr (requires { one.epoch; }) return one.epoch;
        return {};
      },
      event);
  if (!epoch || *epoch >= state_.epoch) return;
  if (!answer.rows.empty() || !answer.records.empty() || !answer.orders.empty())
    world_.monitor.violated("what a node said of an earlier epoch was heard: " + answer.reason);
}

Status Head::write(const std::vector<recon::Record>& records) {
  if (hooks_.writes) hooks_.writes();
  for (const auto& record : records) {
    using Kind = recon::Record::Kind;
    if (world_.bug == Bug::epoch_not_recorded && record.kind == Kind::epoch) continue;
    if (auto appended = journal_->append(transport::to_value(record)); !appended) return appended;
  }
  return world_.bug == Bug::journal_not_synced ? Done{} : journal_->sync();
}

/// Publishes the head's address once it knows its term, unless another head is published.
void Head::be_found() {
  if (state_.phase != recon::Phase::boot && world_.head == 0) world_.head = address_;
}

void Head::carry_out(const recon::Answer& answer) {
  state_ = answer.state;
  // No order may go out before its record is on disk.
  if (!answer.records.empty() && !world_.files.is_durable(journal_path) && !is_superseded())
    world_.monitor.violated("orders went out, and their records are not on the disk");
  be_found();
  if (hooks_.answered) hooks_.answered(answer);
  for (const auto& order : answer.orders) {
    std::visit([this](const auto& one) { on(one); }, order);
    if (ended_) break;
  }
  if (hooks_.changed) hooks_.changed(state_);
}

// The orders of the reconciler, carried out on the simulated world.

void Head::on(const recon::SetTimer& set) {
  if (world_.bug == Bug::timers_lost) return;
  later(set.after, [this, set] { take(recon::Timeout{set.timer}); });
}

void Head::on(const recon::MakePlan& make) {
  later(world_.costs.plan, [this, make] { take(planner_(make)); });
}

/// Returns the newest step in memory that the ledger on disk includes, because nodes report only
/// later steps again. Excludes the run's last step, which must be saved to disk.
std::int64_t Head::newest_kept() {
  auto entered = entered_;
  if (world_.bug == Bug::kept_beyond_ledger)
    entered = world_.steps;
  else if (!ledger_->sync())
    return 0;
  return world_.copies.newest(world_.model.units(), std::min(entered, world_.steps - 1));
}

void Head::on(const recon::Prepare& order) { tell(order.plan.members, order); }

void Head::on(const recon::Load& order) {
  tell(order.nodes, order);
  if (world_.bug == Bug::activated_before_loaded)
    for (const Life life : order.nodes)
      take(recon::Loaded{life, order.epoch, order.source.step, "believed"});
}

void Head::on(const recon::Activate& order) {
  // Skip this if the order is only repeated.
  if (order.epoch != begun_) {
    begun_ = order.epoch;
    if (world_.bug != Bug::ledger_without_beginnings) (void)ledger_->begin(order.step);
    entered_ = order.step;
  }
  tell(order.nodes, order);
}

void Head::on(const recon::Adopt& order) {
  begun_ = order.epoch;
  // The ledger continues after its last step; the nodes report later steps again.
  (void)ledger_->begin(entered_);
  tell(order.nodes, order);
}
void Head::on(const recon::Freeze& order) { tell(order.nodes, order); }
void Head::on(const recon::Abort& order) { tell(order.nodes, order); }
void Head::on(const recon::AskSavePoint& order) { tell(state_.plan.members, order); }
void Head::on(const recon::GoOn& order) { tell(state_.plan.members, order); }

/// Rejects a node and ignores its later messages.
void Head::on(const recon::Reject& order) {
  evidence_.erase(std::to_string(order.life));
  tell({order.life}, order);
}

void Head::on(const recon::End& end) {
  ended_ = end;
  if (world_.head == address_) world_.head = 0;
}

template <class Order>
void Head::tell(const std::vector<Life>& nodes, const Order& order) {
  auto message = to_played(order);
  message.term = state_.term;
  for (const Life life : nodes) world_.network.send(address_, life, message);
}

// Steps and saves.

void Head::enter_in_ledger(const transport::Message& message) {
  const auto step = integer_in(message.body, "step");
  const bool is_next = step == entered_ + 1;
  if (static_cast<std::uint64_t>(integer_in(message.body, "epoch")) != begun_) return;
  if (is_superseded()) return;
  if (!is_next && world_.bug != Bug::ledger_doubled) return;
  storage::LedgerStep entry;
  entry.step = step;
  entry.samples = world_.model.terms().global;
  entry.first = (step - 1) * entry.samples;
  if (!from_text(text_in(message.body, "ids"), entry.ids)) return;
  (void)ledger_->enter(entry);
  entered_ = step;
  world_.copies.entered(step);
  if (hooks_.decided) hooks_.decided(step);
}

void Head::on(const recon::Save& order) {
  if (world_.bug == Bug::save_skipped_in_hold && order.meanwhile == recon::Meanwhile::hold) {
    take(recon::Saved{order.save, order.step});
    return;
  }
  writes_ = Write{order, {state_.plan.members.begin(), state_.plan.members.end()}, {}};
  tell(state_.plan.members, order);
}

void Head::part_written(const transport::Message& message) {
  const auto save = static_cast<std::uint64_t>(integer_in(message.body, "save"));
  if (!writes_ || writes_->save.save != save) return;
  if (writes_->waits_for.erase(static_cast<Life>(message.incarnation)) == 0) return;
  if (const auto file = text_in(message.body, "file"); !file.empty()) {
    storage::Part part;
    part.file = file;
    part.bytes = static_cast<std::uint64_t>(integer_in(message.body, "bytes"));
    (void)from_text(text_in(message.body, "digest"), part.digest);
    for (const auto& one : *message.body.find("tensors")->list()) {
      storage::TensorDigest tensor{text_in(one, "name"), storage::StoredType::f32, Shape{2}, {}};
      (void)from_text(text_in(one, "digest"), tensor.digest);
      part.tensors.push_back(std::move(tensor));
    }
    writes_->parts.push_back(std::move(part));
  }
  const bool is_first = world_.bug == Bug::commit_before_all_parts && writes_->parts.size() == 1;
  if (writes_->waits_for.empty() || is_first) take(recon::ShardsWritten{save});
}

void Head::on(const recon::CommitSave& order) {
  later(world_.costs.commit, [this, order] {
    if (!writes_ || writes_->save.save != order.save) return;
    const auto committed = commit(order);
    writes_.reset();
    if (committed)
      take(recon::Saved{order.save, order.step});
    else
      take(recon::SaveFailed{order.save, committed.error().text});
  });
}

Status Head::commit(const recon::CommitSave& order) {
  if (is_superseded()) return Error{"another head leads"};
  // The ledger must contain all steps of a checkpoint.
  if (entered_ < order.step)
    return Error{"the ledger has " + std::to_string(entered_) + " steps only"};
  if (world_.bug != Bug::ledger_not_synced)
    if (auto synced = ledger_->sync(); !synced) return synced;
  storage::Manifest manifest;
  manifest.step = order.step;
  manifest.samples = order.step * world_.model.terms().global;
  manifest.recipe = manifest.model = manifest.state = Value(Value::Map{});
  manifest.parts = writes_->parts;
  auto saved =
      storage::commit_checkpoint(world_.files, checkpoint_folder(order.step), std::move(manifest));
  if (!saved) return saved.error();
  (void)storage::prune_checkpoints(world_.files, checkpoints, {limits_.keep});
  return Done{};
}

void Head::on(const recon::AbortSave& order) {
  writes_.reset();
  tell(state_.plan.members, order);
}

}  // namespace troupe::simulation
