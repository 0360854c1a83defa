#include "transport/wire/message_types.h"

#include <algorithm>
#include <utility>

namespace troupe::transport {
namespace {

constexpr std::pair<Role, std::string_view> role_names[] = {
    {Role::head, "head"},          {Role::daemon, "daemon"}, {Role::node, "node"},
    {Role::operator_, "operator"}, {Role::viewer, "viewer"},
};

constexpr bool each_name_has_one_row() {
  for (const auto& type : rows::table)
    if (find_message_type(type.name) != &type) return false;
  return true;
}
static_assert(each_name_has_one_row());

constexpr bool each_row_has_a_handler() {
  for (const auto& type : rows::table)
    if (type.handlers.empty()) return false;
  return true;
}
static_assert(each_row_has_a_handler());
static_assert(std::ranges::is_sorted(rows::table, {}, &MessageType::topic));

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

std::size_t largest_message() {
  return std::ranges::max(rows::table, {}, &MessageType::bytes).bytes;
}

bool may_send(Roles roles, std::string_view type) {
  const auto* known = find_message_type(type);
  return known && roles.meets(known->from);
}

}  // namespace troupe::transport
