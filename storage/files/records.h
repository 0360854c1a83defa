#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/value.h"
#include "storage/files/files.h"

namespace troupe::storage {

/// What a file of records holds. Each is a line: 16 hexadecimal digits, a blank and a map as JSON.
/// The digits are a checksum of this map and of all before it, so that no line can change, go or
/// come unseen.
struct Records {
  struct Record {
    int line = 0;
    std::size_t end = 0;  // Where the next line begins.
    Value value;
  };

  std::vector<Record> good;    // Up to the first flaw.
  std::uint64_t checksum = 0;  // Of all that are good.
  bool is_torn = false;        // The end has no line of its own: a crash came as it was written.
  std::string flaw;            // What is wrong and where; empty where nothing is.
};

/// Any text gives what can be relied on in it. What a crash tore is no flaw, as nobody was told
/// that it was on the disk.
///
/// `before` is the checksum of all records of earlier segments.
Records read_records(std::string_view text, std::uint64_t before = 0);

/// A file of records may be kept in segments: PATH.1, PATH.2 and so on, which are whole and do not
/// change any more, and PATH, which grows. Together they are one file: the checksum of a segment's
/// first record goes on from the last one of the segment before.
struct Segments {
  std::vector<std::string> older;  // Oldest first.
  std::uint64_t checksum = 0;      // Of all records in these,
  std::optional<Value> last;       // and the last of them.
};
/// The checksum of all records up to the end of the last of these segments; 0 for none.
Result<std::uint64_t> checksum_up_to(Files& files, const std::vector<std::string>& segments);
/// Reads only the end of the last older segment.
Result<Segments> segments_of(Files& files, const std::string& path);
/// Whether there is a segment that grows. A crash may leave its name to the last older one.
Existence grows(Files& files, const std::string& path, const Segments& segments);
/// The text of all segments, in order. An error if there is none.
Result<std::string> read_segments(Files& files, const std::string& path);

/// Writes a file of records, from where it ends on. `files` must outlive it.
class RecordWriter {
 public:
  /// What is there already is on the disk when this returns: in a file that takes the place of the
  /// one that was there, and without what a crash tore. Once the file has `segment_bytes`, it
  /// becomes an older segment and a new one begins, so that opening reads no more than that.
  static Result<RecordWriter> open(Files& files, const std::string& path,
                                   std::size_t segment_bytes = one_segment);
  static constexpr std::size_t one_segment = std::numeric_limits<std::size_t>::max();

  /// The last one that was there when it was opened; nothing where there was none.
  const std::optional<Value>& last_before() const { return last_before_; }

  /// Hands it to the system: a process that is killed then loses nothing. What could not be written
  /// is kept, within bounds, and written before the next.
  Status append(const Value& record);
  /// Returns when all is on the disk. Where that fails nothing can be believed of the file any
  /// more, even if another sync should succeed: from then on all is written anew, to a file that
  /// takes its place.
  Status sync();
  /// Records that were appended since the last sync are not to be.
  Status take_back();

 private:
  RecordWriter(Files& files, std::string path, Segments segments, const Records& there,
               std::size_t segment_bytes);
  Status flush();
  Status write_anew();
  Status replace_with(std::string kept);
  void begin_segment();

  Files* files_;
  std::string path_;
  std::optional<Value> last_before_;
  std::unique_ptr<FileWriter> file_;  // Null: what is there is not to be believed.
  std::size_t segment_bytes_;
  std::size_t older_;              // Segments before this one,
  std::uint64_t older_checksum_;   // and the checksum of their records.
  std::size_t bytes_ = 0;          // Of this segment.
  std::size_t synced_;             // Records of this segment that are on the disk,
  std::uint64_t synced_checksum_;  // and theirs.
  std::deque<std::string> lines_;  // Since then,
  std::size_t written_ = 0;        // and how many of them the system has.
  std::uint64_t checksum_;
  bool line_is_open_ = false;  // What is there ends amid a line.
  std::string lost_;           // Why nothing will help any more.
};

}  // namespace troupe::storage
