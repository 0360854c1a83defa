#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

/// The sockets between the members of a simulated communicator, one for each pair. They close when
/// a process is killed. No function blocks.
namespace cuda_on_cores {

/// Ends the process, since real NCCL would not detect the misuse in time.
[[noreturn]] void end_by_misuse(const std::string& what);

/// A member's description of itself for the other members.
struct Introduction {
  std::int32_t member = 0;
  std::int32_t of = 0;
  std::uint64_t host = 0;  // The host that the member claims to be on.
  std::array<char, 32> bus{};
};

/// A piece of a part that one member sends to another.
struct Packet {
  static constexpr std::size_t most = std::size_t{32} << 10;

  std::uint64_t operation = 0;  // The number of earlier operations for that member.
  std::uint64_t kind = 0;
  std::uint64_t bytes = 0;   // The total size of the part.
  std::uint64_t offset = 0;  // The offset of this piece, which is as long as possible.

  std::size_t size() const { return bytes - offset < most ? bytes - offset : most; }
};

class Wires {
 public:
  Wires(const std::string& name, const Introduction& own);
  ~Wires();
  Wires(const Wires&) = delete;
  Wires& operator=(const Wires&) = delete;

  /// Makes progress; returns true once all members have met.
  bool meet();
  /// Returns a member with the same GPU as this one; -1 if there is none.
  int twin() const;
  /// Returns whether all members are connecting, and announces that this one does. Call it after
  /// meet().
  bool connect();
  /// Returns whether a member has hung up or died, even if data of it is still unread.
  bool has_lost_one() const;
  /// Tells all other members that this one has hung up. Any thread.
  void hang_up();

  // These functions require that the members are connected.

  /// Returns false if there is no room yet, or if the member is gone.
  bool send(int to, const Packet& packet, const std::byte* memory);
  /// Returns the next packet's header without taking it, if one has come.
  bool look(int from, Packet& packet);
  void take(int from, std::byte* memory);

 private:
  struct Peer {
    int socket = -1;
    bool has_met = false;
    bool connects = false;
    Introduction said;
  };

  void reach(std::size_t member);
  void accept_one();

  const std::string name_;
  const Introduction own_;
  int listening_ = -1;
  std::vector<int> strangers_;  // Connections that have not introduced themselves yet.
  std::vector<Peer> peers_;     // Indexed by member; this member's own place is empty.
  bool has_said_connect_ = false;
};

}  // namespace cuda_on_cores
