#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/value.h"
#include "storage/files.h"

namespace troupe::storage {

/// What a file of records holds. Each is a line: 16 hexadecimal digits, a blank and a map as JSON.
/// The digits are a checksum of this map and of all before it, so that no line can change, go or
/// come unseen.
struct Records {
  struct Record {
    int line = 0;
    Value value;
  };

  std::vector<Record> good;    // Up to the first flaw.
  std::uint64_t checksum = 0;  // Of all that are good.
  bool is_torn = false;        // The end has no line of its own: a crash came as it was written.
  int torn_before = 0;         // Lines that a crash had torn, and whoever wrote on has left out.
  std::string flaw;            // What is wrong and where; empty where nothing is.
};

/// Any text gives what can be relied on in it. What a crash tore is no flaw, as nobody was told
/// that it was on the disk.
Records read_records(std::string_view text);

/// Writes a file of records, from where it ends on.
class RecordWriter {
 public:
  static Result<RecordWriter> open(Files& files, const std::string& path);
  /// The same where a sync has failed: what is good is written to a file of its own, as nothing can
  /// be believed of the old one any more.
  static Result<RecordWriter> open_anew(Files& files, const std::string& path);

  /// Hands it to the system: a process that is killed then loses nothing. What could not be written
  /// is kept, within bounds, and written before the next.
  Status append(const Value& record);
  /// Returns when all is on the disk. Once this has failed it fails for ever: the system may have
  /// thrown away what it could not write.
  Status sync();

 private:
  RecordWriter(std::unique_ptr<FileWriter> file, const Records& there);
  Status flush();

  std::unique_ptr<FileWriter> file_;
  std::uint64_t checksum_;
  bool line_is_open_;                  // What is there ends amid a line.
  std::deque<std::string> unwritten_;  // Lines.
  std::string lost_;                   // Why no sync will help any more.
};

}  // namespace troupe::storage
