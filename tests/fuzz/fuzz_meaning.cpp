#include <algorithm>
#include <caf/all.hpp>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/caf_shim.h"
#include "actors/checkpoints.h"
#include "actors/exchange.h"
#include "actors/lead/progress.h"
#include "actors/nodes/placement.h"
#include "actors/nodes/wire_message.h"
#include "actors/rounds.h"
#include "config/model_kinds.h"
#include "models/description/option.h"
#include "transport/wire/msgpack.h"

using namespace troupe;
using namespace troupe::actors;

namespace {

template <class... Message>
std::vector<std::string> names_of(std::tuple<Message...>*) {
  return {std::string(Message::type)...};
}

/// A run in its second round, on two nodes and the head.
class Run {
 public:
  Run() : model_(make_model()), rounds_(make_rounds()), config_(1), system_(config_) {
    spec_.model = &model_;
    spec_.stages = {{0, 2}, {2, static_cast<int>(model_.units.size())}};
    spec_.optimizer = models::OptimizerConfig::of(models::OptimizerConfig::Kind::adamw);
    spec_.delays = rounds_.delays();
    spec_.round = [this](std::int64_t first, std::int64_t left) { return rounds_.at(first, left); };
    spec_.evaluation = evaluation_round(*rounds_.of_one_step(), 4);
    spec_.steps = 100;
    spec_.samples_in_step = 8;
    cut_stages(spec_, Exchange::all_to_all);
    const auto devices = static_cast<std::size_t>(rounds_.of_one_step()->devices()) * 2;
    spec_.executors.resize(devices);
    placement_ = place(spec_, {0, 1, 0, 1}, 2);
    bounds_ = RunBounds::of(spec_);
    progress_.run_begins(0);
    progress_.change(spec_);
  }

  void hear(WireMessage wire_message, int process, PlayerId to) {
    caf::scoped_actor self(system_);
    const auto told = deliver(std::move(wire_message), {process, to, placement_, bounds_}, spec_,
                              caf::actor_cast<caf::actor>(self));
    if (!told) {
      if (told.error().text.empty()) std::abort();
      return;
    }
    // Acts like the supervisor in Course.
    progress_.attempt_begins(spec_);
    progress_.go_on_after(3);
    progress_.give_out({spec_.round(3, 1), 3});
    self->receive(
        [&](const RoundPlayed& played) { take(played); },
        [&](const StepDone& done) {
          if (progress_.is_under_way(done.step) && !progress_.ledger().has(done))
            progress_.ledger().add(done);
        },
        [&](const MicroBatchLoss& loss) {
          const bool is_training = loss.purpose == Round::Purpose::training;
          if (is_training && progress_.is_under_way(loss.step) && !progress_.ledger().has(loss))
            progress_.ledger().add(loss);
        },
        [&](const LateGradients& late) {
          if (late.step < progress_.given_out()) progress_.ledger().add(late);
        },
        [&](const Snapshot& snapshot) { take(snapshot); },
        caf::others >>
            [](caf::message_view&) -> caf::result<caf::message> { return caf::message(); });
    (void)progress_.take_done();
  }

  static constexpr int processes = 3;

 private:
  static models::Model make_model() {
    Value options;
    options.set("dims", Value::List{4, 6, 5, 3});
    const auto* kind = config::find_model_kind("mlp");
    return *kind->build(*models::complete(kind->options(), options));
  }
  static Rounds make_rounds() {
    RoundShape shape;
    shape.stages = 2;
    shape.replicas = 2;
    shape.micro_batches = shape.groups = 4;
    return *Rounds::make(shape);
  }
  void take(const RoundPlayed& played) {
    if (!progress_.expects(played)) return;
    progress_.add(played);
    if (progress_.expects(played)) std::abort();  // The same report must not be expected twice.
  }
  void take(const Snapshot& snapshot) {
    (void)checkpoint_content(spec_, snapshot.step, {snapshot}, memory_);
  }

  MemoryPool memory_;
  models::Model model_;
  Rounds rounds_;
  RunSpec spec_;
  Placement placement_;
  RunBounds bounds_;
  Progress progress_;
  caf_shim::Config config_;
  caf::actor_system system_;
};

/// The input: type, sender, kind and index of the receiver, number of tensors and their size, two
/// bytes for the size of the body, and the body as msgpack. The remaining bytes are the payload.
struct Input {
  WireMessage wire_message;
  int process = 0;
  PlayerId to;
};

std::optional<Input> read(const std::uint8_t* data, std::size_t size, MemoryPool& memory) {
  static const auto names = names_of(static_cast<Travelling*>(nullptr));
  constexpr std::size_t head = 8;
  if (size < head) return {};
  Input input;
  input.wire_message.type = names[data[0] % names.size()];
  input.process = data[1] % Run::processes;
  input.to = {static_cast<PlayerId::Kind>(data[2] % 6), data[3]};
  for (int i = 0; i < data[4] % 8; ++i) {
    input.wire_message.tensors.push_back(Tensor::make(memory, {1 + data[5] % 40}));
    std::ranges::fill(input.wire_message.tensors.back().host_bytes(), std::byte{1});
  }
  const std::size_t length = std::min<std::size_t>(data[6] + 256U * data[7], size - head);
  const std::string_view all(reinterpret_cast<const char*>(data) + head, size - head);
  auto body = transport::unpack(all.substr(0, length), {}, std::size_t{1} << 20, "body");
  if (!body || !body->map()) return {};
  input.wire_message.body = std::move(*body);
  input.wire_message.bytes = all.substr(length);
  return input;
}

}  // namespace

/// Handles any message from one process of a run to another: it must be refused or harmless.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static MemoryPool memory;
  // Never destroyed, since an actor system does not survive the destructors of static objects.
  static Run& run = *new Run;
  if (auto input = read(data, size, memory))
    run.hear(std::move(input->wire_message), input->process, input->to);
  return 0;
}
