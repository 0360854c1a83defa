#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/descriptor.h"

namespace troupe::transport {

/// A man in the middle between a sender and a door. It reads all bytes and can change some. It
/// serves one connection.
class Middleman {
 public:
  using Bytes = std::vector<std::byte>;
  /// A range of bytes of one direction that is held back until it is complete, and then changed.
  struct Window {
    std::size_t begin = 0;
    std::size_t size = 0;
    std::function<void(Bytes&)> change;
    bool then_hang_up = false;
  };

  Middleman(std::string door, std::optional<Window> forth, std::optional<Window> back = {});
  ~Middleman();

  std::string address() const;
  /// Returns everything that the sender has sent, unchanged.
  Bytes said() const;

 private:
  struct Direction {
    std::optional<Window> window;
    std::size_t passed = 0;  // The number of bytes before the window that were passed on.
    Bytes held;
  };

  void serve();
  /// Returns false at the end of the connection.
  bool pass_on(int from, int to, Direction& direction);

  std::string door_;
  Descriptor listening_;
  Direction forth_, back_;
  mutable std::mutex mutex_;
  Bytes said_;
  std::thread thread_;
};

}  // namespace troupe::transport
