#pragma once

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <string>

#include "catch.h"

namespace troupe::tests {

/// A terminal for a program, which gets the slave as a stream.
class Terminal {
 public:
  explicit Terminal(unsigned short columns, unsigned short rows = 24)
      : master_(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
    REQUIRE(master_ >= 0);
    REQUIRE(grantpt(master_) == 0);
    REQUIRE(unlockpt(master_) == 0);
    const winsize size{rows, columns, 0, 0};
    slave_ = open(ptsname(master_), O_RDWR | O_NOCTTY | O_CLOEXEC);
    REQUIRE(slave_ >= 0);
    REQUIRE(ioctl(slave_, TIOCSWINSZ, &size) == 0);
  }
  ~Terminal() {
    close(master_);
    if (slave_ >= 0) close(slave_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  int slave() const { return slave_; }
  void type(const std::string& keys) const {
    CHECK(write(master_, keys.data(), keys.size()) == static_cast<ssize_t>(keys.size()));
  }
  /// Reads what is written, up to the end of this text. Gives up if nothing comes.
  std::string read_until(const std::string& end) const {
    constexpr int patience = 30'000;  // Milliseconds.
    std::string text;
    for (pollfd ready{master_, POLLIN, 0}; !text.ends_with(end) && poll(&ready, 1, patience) > 0;) {
      char byte = 0;
      if (read(master_, &byte, 1) != 1) break;
      text += byte;
    }
    return text;
  }
  /// Reads what is written until all writers have closed the terminal.
  std::string read_all() {
    close(slave_);
    slave_ = -1;
    std::string text;
    char bytes[4096];
    for (ssize_t count; (count = read(master_, bytes, sizeof bytes)) > 0;)
      text.append(bytes, static_cast<std::size_t>(count));
    return text;
  }

 private:
  int master_ = -1;
  int slave_ = -1;
};

}  // namespace troupe::tests
