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

/// The contents of a file of records. Each record is a line: 16 hexadecimal digits, a blank, and a
/// map as JSON. The digits are a checksum of this map and all earlier ones, so no line can be
/// changed, removed or inserted unnoticed.
struct Records {
  struct Record {
    int line = 0;
    std::size_t end = 0;  // The offset of the next line.
    Value value;
  };

  std::vector<Record> good;    // The records before the first flaw.
  std::uint64_t checksum = 0;  // The checksum of all good records.
  bool is_torn = false;        // A crash cut off the last line.
  std::string flaw;            // The first error and its place, or empty.
};

/// Reads records from any text and returns the trustworthy ones. A line that a crash tore is no
/// flaw, because nobody was told that it was on the disk.
///
/// `before` is the checksum of all records of earlier segments.
Records read_records(std::string_view text, std::uint64_t before = 0);

/// The older segments of a file of records: PATH.1, PATH.2 and so on, which never change. PATH
/// itself grows. Together they are one file: the checksum of a segment's first record continues
/// from the last record of the segment before.
struct Segments {
  std::vector<std::string> older;  // Oldest first.
  std::uint64_t checksum = 0;      // The checksum of all their records.
  std::optional<Value> last;       // Their last record.
};
/// Returns the checksum of all records of these segments, or 0 for none.
Result<std::uint64_t> checksum_up_to(Files& files, const std::vector<std::string>& segments);
/// Finds the older segments of PATH. Reads only the end of the last one.
Result<Segments> segments_of(Files& files, const std::string& path);
/// Returns whether PATH grows. After a crash it may still name the last older segment.
Existence grows(Files& files, const std::string& path, const Segments& segments);
/// Returns the text of all segments, in order, or an error if there is none.
Result<std::string> read_segments(Files& files, const std::string& path);

/// A writer that appends to a file of records. `files` must outlive it.
class RecordWriter {
 public:
  /// Opens a file of records. Rewrites its growing segment to a new file, without a torn line, so
  /// that all its records are on the disk when this returns. A file that reaches `segment_bytes`
  /// becomes an older segment and a new one begins, so that opening reads no more than one segment.
  static Result<RecordWriter> open(Files& files, const std::string& path,
                                   std::size_t segment_bytes = one_segment);
  static constexpr std::size_t one_segment = std::numeric_limits<std::size_t>::max();

  /// Returns the last record at opening time, if there was one.
  const std::optional<Value>& last_before() const { return last_before_; }

  /// Writes a record to the system, so that it survives a kill of the process. Keeps records that
  /// could not be written, within bounds, and writes them before the next one.
  Status append(const Value& record);
  /// Returns when all records are on the disk. After a failure nothing in the file can be trusted,
  /// even if a later sync succeeds. The next write then puts all records into a new file that
  /// replaces this one.
  Status sync();
  /// Drops the records that were appended since the last sync.
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
  std::unique_ptr<FileWriter> file_;  // Null: the file on disk cannot be trusted.
  std::size_t segment_bytes_;
  std::size_t older_;              // The number of older segments.
  std::uint64_t older_checksum_;   // The checksum of all their records.
  std::size_t bytes_ = 0;          // The size of this segment.
  std::size_t synced_;             // Records of this segment that are on the disk.
  std::uint64_t synced_checksum_;  // The checksum up to the synced records.
  std::deque<std::string> lines_;  // Records appended since the last sync.
  std::size_t written_ = 0;        // How many of lines_ were written.
  std::uint64_t checksum_;
  bool line_is_open_ = false;  // The file ends within a line.
  std::string lost_;           // Why the file is lost for good, or empty.
};

}  // namespace troupe::storage
