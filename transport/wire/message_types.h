#pragma once

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

/// The one table of the messages on the control plane: who may say them, and how much.
namespace troupe::transport {

/// What a key entitles to.
enum class Role {
  head,       // Knows all nodes and runs. The only one who dials nobody.
  daemon,     // Starts and watches the nodes of a host.
  node,       // A process with devices.
  operator_,  // A person or a script.
  viewer,     // One who may look, and change nothing.
};

/// "head", "daemon", "node", "operator", "viewer".
std::string_view to_string(Role role);
std::optional<Role> parse_role(std::string_view text);

/// A set of roles.
class Roles {
 public:
  constexpr Roles() = default;
  constexpr Roles(std::initializer_list<Role> roles) {
    for (const Role role : roles) bits_ |= bit(role);
  }

  constexpr bool empty() const { return bits_ == 0; }
  constexpr bool has(Role role) const { return (bits_ & bit(role)) != 0; }
  constexpr bool meets(Roles other) const { return (bits_ & other.bits_) != 0; }
  constexpr void add(Role role) { bits_ |= bit(role); }

  friend constexpr bool operator==(Roles, Roles) = default;

 private:
  static constexpr unsigned bit(Role role) { return 1u << static_cast<unsigned>(role); }

  unsigned bits_ = 0;
};

/// "daemon, node"
std::string to_string(Roles roles);

/// Those who dial the head.
constexpr Roles all_dialers = {Role::daemon, Role::node, Role::operator_, Role::viewer};

struct MessageType {
  /// Whether a message may overtake those before it: of a heartbeat only the newest counts.
  enum class Order { kept, any };
  /// The first message of a connection is one that opens a session; others before it are dropped.
  enum class Session { goes_on, opens };

  std::string_view name;
  Roles from;
  std::size_t bytes = 0;  // Of the body and its payload.
  Order order = Order::kept;
  Session session = Session::goes_on;
};

std::span<const MessageType> message_types();

/// Null for a type that nobody here knows: a newer minor version may have it.
const MessageType* find_message_type(std::string_view name);

/// The most that any type may have.
std::size_t largest_message();

/// What a message of a type that is not known may have.
constexpr std::size_t unknown_message_bytes = std::size_t{64} << 10;

/// Whether one of these roles may send a message of the type; nobody may send an unknown one.
bool may_send(Roles roles, std::string_view type);

}  // namespace troupe::transport
