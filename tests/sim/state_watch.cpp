#include "tests/sim/state_watch.h"

#include <cstring>
#include <span>
#include <sstream>
#include <vector>

#include "actors/messages.h"
#include "actors/nodes/mesh.h"
#include "core/value.h"
#include "transport/channels/frame.h"

namespace troupe::simulation {
namespace {

/// Returns whether a packet may be a frame with a state. It may be none all the same.
bool may_be_state(const Parts& parts) {
  if (parts.size() != 2 || parts[0].size() < sizeof(transport::FrameHeader)) return false;
  return parts[0].find(actors::Snapshot::type) != std::string::npos ||
         parts[0].find(actors::StateCopy::type) != std::string::npos;
}

}  // namespace

std::optional<std::string> StateWatch::look(const Parts& parts) {
  if (!may_be_state(parts)) return {};
  transport::FrameHeader header;
  std::memcpy(&header, parts[0].data(), sizeof header);
  const transport::Bound bound{.bytes = parts[1].size(), .parcels = 1};
  const auto wanted = transport::check_header(header, {header.epoch, header.sequence, bound});
  const auto front = std::as_bytes(std::span(parts[0])).subspan(sizeof header);
  if (header.kind != transport::FrameKind::parcel || !wanted || front.size() != *wanted) return {};
  std::vector<transport::TensorPlan> plans;
  if (!transport::check_records(header, front, plans)) return "its tensors cannot be read";
  const auto head =
      actors::read_head(std::string_view(parts[0]).substr(sizeof header, header.head_bytes));
  if (!head) return "its head cannot be read: " + head.error().text;
  const auto& message = head->second;
  if (message.type != actors::Snapshot::type && message.type != actors::StateCopy::type) return {};
  const auto step = integer_in(message.body, "step");
  std::istringstream names(text_in(message.body, "weights") + "\n" +
                           text_in(message.body, "moments"));
  const auto payload = std::as_bytes(std::span(parts[1]));
  auto plan = plans.begin();
  for (std::string name; std::getline(names, name);) {
    if (name.empty()) continue;
    if (plan == plans.end()) return "a state of step " + std::to_string(step) + " lacks " + name;
    const auto digest = digest_of(payload.subspan(plan->offset, plan->bytes));
    const auto [known, is_new] = states_.emplace(std::pair(step, name), digest);
    if (!is_new && known->second != digest)
      return name + " after step " + std::to_string(step) + " has two values";
    ++plan;
    ++seen_;
  }
  return {};
}

}  // namespace troupe::simulation
