#include "actors/nodes/node_attempt.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "actors/nodes/node/attempt_work.h"

namespace troupe::actors {
namespace {

/// Names the attempt too, so that losses of different attempts count as different failures.
std::string name_of_process(int process, int head, int attempt) {
  return process == head
             ? "the head"
             : "node " + std::to_string(process) + " of attempt " + std::to_string(attempt);
}

}  // namespace

transport::Bound bound_of(const RunSpec& spec) {
  std::size_t parameters = 0, samples = 0;
  for (const auto& unit : spec.model->units)
    for (const auto& parameter : unit.layer->parameters())
      parameters += static_cast<std::size_t>(parameter.shape.count());
  samples = static_cast<std::size_t>(spec.samples_in_step);
  // Two states with two moments each (one to start from, one to keep), gradients of several groups,
  // and the activations of a step.
  constexpr std::size_t room = std::size_t{256} << 20;
  return {.bytes = parameters * sizeof(float) * 20 + samples * (std::size_t{1} << 20) + room,
          .parcels = 65'536};
}

NodeAttempt::NodeAttempt(Context context, NodeAttemptOrder order, std::function<void(Status)> then)
    : work_(std::make_shared<Work>(context, std::move(order))) {
  work_->prepare(std::move(then));
}
NodeAttempt::~NodeAttempt() {
  auto& work = *work_;
  work.drop(std::move(work_));
}

NodeAttempt::Phase NodeAttempt::phase() const { return work_->phase(); }
void NodeAttempt::start(const Start& start) { work_->start(start); }
Status NodeAttempt::deliver(transport::Message message) {
  return work_->deliver(std::move(message));
}
void NodeAttempt::end(std::function<void()> then) { work_->end(std::move(then)); }

/// Returns whether the event has a step.
bool NodeAttempt::Work::enter(Event event) {
  const auto* step = std::ranges::find_if(
      steps, [&](const Step& one) { return one.from == phase_ && one.event == event; });
  if (step == std::end(steps)) return false;
  phase_ = step->to;
  return true;
}

/// Runs work of a phase aside. If the attempt is to end meanwhile, its end goes on after the work.
void NodeAttempt::Work::aside(const std::string& name, Loop::Task work, Loop::Task then) {
  assert(!is_working_ && "a phase has one work at most");
  is_working_ = true;
  context_.loop.aside(name, std::move(work), [this, then = std::move(then)] {
    is_working_ = false;
    if (phase_ == Phase::ending) return await_actors();
    then();
  });
}

/// Posts a task to the loop, from any thread.
void NodeAttempt::Work::post(Loop::Task task) {
  const std::lock_guard lock(telling_);
  if (!is_dropped_) context_.loop.post(std::move(task));
}

/// Looks for states on the loop, unless the attempt has ended by then.
void NodeAttempt::Work::look_soon() {
  post([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->look_for_states();
  });
}

void NodeAttempt::Work::stop_timers() {
  for (auto* const timer : {&timer_, &measuring_}) {
    if (*timer) context_.loop.cancel(**timer);
    timer->reset();
  }
}

void NodeAttempt::Work::prepare(std::function<void(Status)> then) {
  const auto opened = std::make_shared<Status>(Done{});
  aside(
      devices_aside,
      [this, opened] {
        auto home = order_.open_home();
        if (home)
          home_ = std::move(*home);
        else
          *opened = home.error();
      },
      [this, opened, then = std::move(then)] {
        auto ready = *opened ? take_home() : *opened;
        enter(ready ? Event::opened : Event::failed);
        (void)tell(ready ? transport::to_message(Prepared{
                               mesh_->address(), store_ ? store_->kept() : std::vector<KeptStep>(),
                               data_here()})
                         : transport::to_message(PrepareFailed{ready.error().text}));
        then(std::move(ready));
      });
}

/// Takes over the opened configuration, and opens the doors.
Status NodeAttempt::Work::take_home() {
  spec_ = home_->spec();
  bounds_.emplace(RunBounds::of(*spec_));
  store_ = order_.find_store(*home_);
  const auto& given = order_.prepare;
  if (auto good = check(given.placement, *spec_); !good) return good;
  if (given.here >= given.placement.head() ||
      given.tokens.size() != static_cast<std::size_t>(given.placement.processes))
    return Error{"found an order for node " + std::to_string(given.here) + " with " +
                 std::to_string(given.tokens.size()) + " tokens for " +
                 std::to_string(given.placement.processes) + " processes"};
  MeshOrder mesh{
      .epoch = order_.epoch,
      .here = given.here,
      .processes = given.placement.processes,
      .tokens = {given.tokens.begin(), given.tokens.end()},
      .bound = bound_of(*spec_),
      .memory = memory_.get(),
      .interface = order_.interface,
      .carriers = order_.carriers,
      .linked = linked(),
      .protection = {given.plain_tensors ? PlainTensors::anywhere : PlainTensors::within_machine,
                     order_.keys, given.keys},
      .on_wire_message =
          [this](int from, PlayerId to, WireMessage wire_message) {
            arrived(from, to, std::move(wire_message));
          },
      .on_lost = [this](int other, const std::string& why) { lost(other, why); }};
  auto opened = Mesh::open(context_.network, std::move(mesh));
  if (!opened) return opened.error();
  mesh_ = std::move(*opened);
  return Done{};
}

std::vector<DataHere> NodeAttempt::Work::data_here() const {
  std::vector<DataHere> data;
  for (const auto& file : spec_->data) data.push_back({file.path, to_string(file.digest)});
  return data;
}

bool NodeAttempt::Work::is_here(PlayerId player) const {
  return order_.prepare.placement.process_of(player) == order_.prepare.here;
}

/// Returns nothing if all tensors must go by TCP.
LinkedDevices NodeAttempt::Work::linked() const {
  auto devices = home_->linked();
  const bool has_any = std::ranges::any_of(devices, [](const auto* device) { return device; });
  if (!has_any || order_.carriers == Carriers::tcp) return {};
  return {std::move(devices), traffic_of(*spec_, order_.prepare.placement), order_.edges};
}

Route NodeAttempt::Work::route() {
  const auto process_of = [this](PlayerId to) { return order_.prepare.placement.process_of(to); };
  return {.carry = [this, process_of](PlayerId to, WireMessage wire_message) -> Status {
            if (to.kind != PlayerId::Kind::supervisor || !wire_message.tensors.empty())
              return mesh_->send(process_of(to), to, wire_message);
            return tell(as_message(to, std::move(wire_message)));
          },
          .is_linked =
              [this](PlayerId to, const WireMessage& wire_message) {
                return mesh_->is_linked(to, wire_message);
              },
          .executors = spec_->executors};
}

std::string NodeAttempt::Work::name_of(int process) const {
  return name_of_process(process, order_.prepare.placement.head(), order_.attempt);
}

void NodeAttempt::Work::start(const Start& start) {
  if (phase_ != Phase::prepared) return;
  start_ = start;
  if (auto good = check_start(); !good) return fail(good.error().text);
  enter(Event::start_asked);
  mesh_->connect(start_.addresses, {start_.tokens.begin(), start_.tokens.end()}, context_.loop,
                 [this](const Status& connected) {
                   if (phase_ != Phase::connecting) return;
                   if (!connected) return fail(connected.error().text);
                   enter(Event::connected);
                   load();
                 });
}

}  // namespace troupe::actors
