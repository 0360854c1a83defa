#include "schedules/formats/pprof.h"

#include <cassert>
#include <map>
#include <string_view>

#include "schedules/formats/proto_writer.h"

namespace troupe::schedules {

namespace {

// The field numbers of profile.proto in github.com/google/pprof.
namespace field {
enum Profile {
  sample_type = 1,
  sample = 2,
  mapping = 3,
  location = 4,
  function = 5,
  string_table = 6,
  duration_nanos = 10,
  comment = 13,
  default_sample_type = 14,
};
enum ValueType { type = 1, unit = 2 };
enum Sample { location_id = 1, value = 2, label = 3 };
enum Label { key = 1, str = 2 };
enum Mapping {
  mapping_id = 1,
  filename = 5,
  has_functions = 7,
  has_filenames = 8,
  has_line_numbers = 9,
  has_inline_frames = 10,
};
enum Location { id = 1, in_mapping = 2, line = 4 };
enum Line { function_id = 1 };
enum Function { same_id = 1, name = 2, system_name = 3 };
}  // namespace field

// The only mapping. pprof shows its file name as the profile's name.
constexpr std::int64_t the_mapping = 1;

/// The string table: each text once. Number 0 is the empty string, as the format requires.
class Texts {
 public:
  Texts() { number(""); }

  std::int64_t number(std::string_view text) {
    const auto [known, is_new] = numbers_.emplace(text, static_cast<std::int64_t>(numbers_.size()));
    if (is_new) in_order_.push_back(known->first);
    return known->second;
  }
  const std::vector<std::string>& all() const { return in_order_; }

 private:
  std::map<std::string, std::int64_t, std::less<>> numbers_;
  std::vector<std::string> in_order_;
};

class PprofWriter {
 public:
  explicit PprofWriter(const StackProfile& profile) : profile_(profile) {}

  std::string write() && {
    for (const auto& measure : profile_.measures) {
      ProtoWriter type;
      type.add(field::type, texts_.number(measure.what));
      type.add(field::unit, texts_.number(measure.unit));
      out_.add(field::sample_type, type);
    }
    for (const auto& sample : profile_.samples) add(sample);
    add_mapping();
    for (const auto& [name, id] : frames_) add_frame(name, id);
    for (const auto& comment : profile_.comments) out_.add(field::comment, texts_.number(comment));
    if (profile_.duration.count() > 0)
      out_.add(field::duration_nanos, std::int64_t{profile_.duration.count()});
    if (!profile_.measures.empty())
      out_.add(field::default_sample_type, texts_.number(profile_.measures.front().what));
    for (const auto& text : texts_.all()) out_.add(field::string_table, std::string_view(text));
    return out_.bytes();
  }

 private:
  void add(const StackProfile::Sample& sample) {
    assert(!sample.stack.empty() && sample.amounts.size() == profile_.measures.size());
    std::vector<std::int64_t> stack;  // Innermost frame first.
    for (auto name = sample.stack.rbegin(); name != sample.stack.rend(); ++name)
      stack.push_back(frame(*name));
    ProtoWriter message;
    message.add_packed(field::location_id, stack);
    message.add_packed(field::value, sample.amounts);
    for (const auto& [key, text] : sample.labels) {
      ProtoWriter label;
      label.add(field::key, texts_.number(key));
      label.add(field::str, texts_.number(text));
      message.add(field::label, label);
    }
    out_.add(field::sample, message);
  }

  std::int64_t frame(const std::string& name) {
    return frames_.emplace(name, static_cast<std::int64_t>(frames_.size()) + 1).first->second;
  }

  /// Declares all names known, so that viewers do not look for a program's symbols.
  void add_mapping() {
    ProtoWriter mapping;
    mapping.add(field::mapping_id, the_mapping);
    mapping.add(field::filename, texts_.number(profile_.name));
    for (const auto known : {field::has_functions, field::has_filenames, field::has_line_numbers,
                             field::has_inline_frames})
      mapping.add(known, std::int64_t{1});
    out_.add(field::mapping, mapping);
  }

  /// Adds a frame as a function with one location.
  void add_frame(const std::string& name, std::int64_t id) {
    ProtoWriter function;
    function.add(field::same_id, id);
    function.add(field::name, texts_.number(name));
    function.add(field::system_name, texts_.number(name));
    out_.add(field::function, function);
    ProtoWriter line;
    line.add(field::function_id, id);
    ProtoWriter location;
    location.add(field::id, id);
    location.add(field::in_mapping, the_mapping);
    location.add(field::line, line);
    out_.add(field::location, location);
  }

  const StackProfile& profile_;
  ProtoWriter out_;
  Texts texts_;
  std::map<std::string, std::int64_t> frames_;  // Ids start at 1.
};

}  // namespace

std::string to_pprof(const StackProfile& profile) { return PprofWriter(profile).write(); }

}  // namespace troupe::schedules
