#include "transport/wire/message_types.h"

#include <algorithm>
#include <array>

namespace troupe::transport {
namespace {

constexpr std::size_t operator""_KiB(unsigned long long count) { return count << 10; }
constexpr std::size_t operator""_MiB(unsigned long long count) { return count << 20; }

constexpr auto unordered = MessageType::Order::any;
constexpr auto kept = MessageType::Order::kept;
constexpr auto opens = MessageType::Session::opens;

constexpr Roles head = {Role::head};
constexpr Roles node = {Role::node};
constexpr Roles daemon = {Role::daemon};
constexpr Roles hosts = {Role::daemon, Role::node};
constexpr Roles person = {Role::operator_};
constexpr Roles looks = {Role::operator_, Role::viewer};
constexpr Roles anyone = {Role::head, Role::daemon, Role::node, Role::operator_, Role::viewer};

// Sorted by name, so that it can be searched.
constexpr MessageType table[] = {
    {"abort", head, 1_KiB},
    {"abort_save", head, 1_KiB},
    {"ack", anyone, 1_KiB},
    {"activate", head, 1_KiB},
    {"answer", anyone, 4_MiB},
    {"chaos", {Role::head, Role::operator_}, 4_KiB},
    {"checkpoint.abort", head, 1_KiB},
    {"checkpoint.commit", head, 1_MiB},
    {"checkpoint.prepare", head, 1_MiB},
    {"checkpoint.saved", head, 64_KiB},
    {"complaint", node, 1_KiB, unordered},
    {"config.validate", person, 1_MiB},
    {"deposed", hosts, 4_KiB},
    {"digest_dispute", node, 1_KiB},
    {"dismiss", head, 4_KiB},
    {"divergence", node, 4_KiB},
    {"drain", head, 4_KiB},
    {"drained", node, 4_KiB},
    {"error", anyone, 64_KiB},
    {"eval", head, 64_KiB},
    {"exit_notice", hosts, 8_KiB},
    {"forget", head, 1_KiB},
    {"freeze", head, 1_KiB},
    {"hello", all_dialers, 64_KiB, kept, opens},
    {"inventory", node, 1_MiB},
    {"journal_copy", head, 64_KiB},
    {"keep_step", head, 1_KiB},
    {"kept", node, 4_KiB},
    {"kill", head, 1_KiB},
    {"late_gradients", node, 64_KiB},
    {"load", head, 4_MiB},
    {"load_failed", node, 8_KiB},
    {"loaded", node, 64_KiB},
    {"micro_batch_loss", node, 4_KiB},
    {"node.cordon", person, 4_KiB},
    {"node.cordoned", head, 64_KiB},
    {"node.drain", person, 4_KiB},
    {"node.end", person, 4_KiB},
    {"node.gpus", node, 64_KiB, unordered},
    {"node.heartbeat", hosts, 2_KiB, unordered},
    {"node.join", hosts, 64_KiB, kept, opens},
    {"node.joined", head, 64_KiB},
    {"node.leaving", {Role::head, Role::daemon, Role::node}, 4_KiB},
    {"node.list", looks, 4_KiB},
    {"node.lost", head, 64_KiB},
    {"node.reject", head, 4_KiB},
    {"node.straggler", head, 64_KiB},
    {"node.uncordon", person, 4_KiB},
    {"node.uncordoned", head, 64_KiB},
    {"node.unfit", head, 64_KiB},
    {"node.welcome", head, 4_KiB},
    {"plan.changed", head, 1_MiB},
    {"plan.request", person, 1_MiB},
    {"play", head, 4_KiB},
    {"player_pulse", node, 4_KiB, unordered},
    {"prepare", head, 4_MiB},
    {"prepare_failed", node, 8_KiB},
    {"prepared", node, 256_KiB},
    {"pulse", head, 1_KiB, unordered},
    {"retire", head, 4_KiB},
    {"round_played", node, 4_MiB},
    {"run.changed", head, 64_KiB},
    {"run.checkpoint", person, 4_KiB},
    {"run.chosen", head, 1_MiB},
    {"run.events", looks, 4_KiB},
    {"run.get", looks, 4_KiB},
    {"run.list", looks, 4_KiB},
    {"run.pause", person, 4_KiB},
    {"run.recovered", head, 64_KiB},
    {"run.resume", person, 4_KiB},
    {"run.set", person, 64_KiB},
    {"run.state", head, 64_KiB},
    {"run.stop", person, 4_KiB},
    {"run.submit", person, 1_MiB},
    {"save", head, 1_MiB},
    {"save_failed", node, 8_KiB},
    {"save_from_memory", head, 4_KiB},
    {"saved", head, 1_KiB},
    {"shard_written", node, 4_KiB},
    {"sim.request", person, 1_MiB},
    {"stage.assign", head, 4_MiB},
    {"stage.failed", node, 8_KiB},
    {"stage.stalled", head, 64_KiB},
    {"stage.start", head, 1_MiB},
    {"stage.status", node, 4_KiB, unordered},
    {"stage.stop", head, 4_KiB},
    {"stage.transfer", head, 4_MiB},
    {"start", head, 256_KiB},
    {"started", daemon, 4_KiB},
    {"status", looks, 4_KiB},
    {"step", head, 64_KiB},
    {"step_done", node, 256_KiB},
    {"take_snapshot", head, 4_KiB},
    {"warn", head, 64_KiB},
    {"welcome", head, 4_KiB},
};
static_assert(std::ranges::is_sorted(table, {}, &MessageType::name));

constexpr std::pair<Role, std::string_view> role_names[] = {
    {Role::head, "head"},          {Role::daemon, "daemon"}, {Role::node, "node"},
    {Role::operator_, "operator"}, {Role::viewer, "viewer"},
};

}  // namespace

std::string_view to_string(Role role) {
  for (const auto& [known, name] : role_names)
    if (known == role) return name;
  return "?";
}

std::optional<Role> parse_role(std::string_view text) {
  for (const auto& [role, name] : role_names)
    if (name == text) return role;
  return std::nullopt;
}

std::string to_string(Roles roles) {
  std::string out;
  for (const auto& [role, name] : role_names) {
    if (!roles.has(role)) continue;
    if (!out.empty()) out += ", ";
    out += name;
  }
  return out.empty() ? "none" : out;
}

std::span<const MessageType> message_types() { return table; }

const MessageType* find_message_type(std::string_view name) {
  const auto* found = std::ranges::lower_bound(table, name, {}, &MessageType::name);
  return found != std::end(table) && found->name == name ? found : nullptr;
}

std::size_t largest_message() { return std::ranges::max(table, {}, &MessageType::bytes).bytes; }

bool may_send(Roles roles, std::string_view type) {
  const auto* known = find_message_type(type);
  return known && roles.meets(known->from);
}

}  // namespace troupe::transport
