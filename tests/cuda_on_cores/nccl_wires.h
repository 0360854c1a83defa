#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

/// How the members of a played communicator speak to one another: each two of them by a socket,
/// which a process that is killed lets go. Nothing here waits.
namespace cuda_on_cores {

/// Ends the process: nobody would notice it with NCCL before it is too late.
[[noreturn]] void end_by_misuse(const std::string& what);

/// What a member tells the others of itself.
struct Introduction {
  std::int32_t member = 0;
  std::int32_t of = 0;
  std::uint64_t host = 0;  // Where it believes to be.
  std::array<char, 32> bus{};
};

/// A part of what one member has for another one.
struct Packet {
  static constexpr std::size_t most = std::size_t{32} << 10;

  std::uint64_t operation = 0;  // So many it has had for that one before.
  std::uint64_t kind = 0;
  std::uint64_t bytes = 0;   // Of it all.
  std::uint64_t offset = 0;  // Where this part begins; it goes on as far as it can.

  std::size_t size() const { return bytes - offset < most ? bytes - offset : most; }
};

class Wires {
 public:
  Wires(const std::string& name, const Introduction& own);
  ~Wires();
  Wires(const Wires&) = delete;
  Wires& operator=(const Wires&) = delete;

  /// Goes on with it; true once all have met.
  bool meet();
  /// Of all who have met, one who has the same GPU as this one; -1 where there is none.
  int twin() const;
  /// Once they have met: whether all say that they connect. This one says so by asking.
  bool connect();
  /// Whether one has hung up or died, although it may have sent something before.
  bool has_lost_one() const;
  /// For all others to see. Any thread.
  void hang_up();

  // Once they are connected.

  /// False where there is no room for it yet, or nobody any more.
  bool send(int to, const Packet& packet, const std::byte* memory);
  /// Which part comes next, where one has come.
  bool look(int from, Packet& packet);
  /// Takes it.
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
  std::vector<int> strangers_;  // That have yet to introduce themselves.
  std::vector<Peer> peers_;     // By member; nobody at its own place.
  bool has_said_connect_ = false;
};

}  // namespace cuda_on_cores
