#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "transport/links/link.h"
#include "transport/links/nccl_fabric.h"
#include "transport/links/nccl_library.h"

struct CUevent_st;  // What cudaEvent_t points to.

namespace troupe::transport {

/// What CUDA means by a result. Empty where all went well.
std::string problem_of_cuda(int outcome);
/// Likewise NCCL. What is under way yet is no problem.
std::string problem_of_nccl(const NcclLibrary& nccl, ncclResult_t outcome);

/// What is done with the pieces of a post.
enum class NcclWay : std::uint8_t { sends, receives, adds };

/// A communicator that does not block: NCCL makes it, and hands over what is posted, on a thread of
/// its own, and tells when it is asked. Until then neither it nor its stream may be touched.
class NcclLink final : public Link {
 public:
  NcclLink(const NcclLibrary& nccl, const NcclOrder& order, LinkMember member, NcclWay way)
      : nccl_(nccl), order_(order), member_(member), way_(way) {}
  /// Its communicator was aborted.
  ~NcclLink() override;

  /// Once, first of all. An error says that there is no communicator.
  Status begin(const LinkId& id);

  LinkReport report() override;
  std::string why_broken() const override { return problem_; }
  void post(std::span<const Piece> pieces) override;
  void join() override;

  ncclComm_t communicator() const { return communicator_; }
  CUstream_st* stream() const { return stream_; }

 private:
  void note(const std::string& problem);
  void note(ncclResult_t outcome) { note(problem_of_nccl(nccl_, outcome)); }
  void post(const Piece& piece, int number);
  void mark_issued();
  void count_ended();

  const NcclLibrary& nccl_;
  const NcclOrder order_;
  const LinkMember member_;
  const NcclWay way_;
  ncclComm_t communicator_ = nullptr;
  CUstream_st* stream_ = nullptr;
  std::deque<CUevent_st*> marks_;   // Behind each operation that is issued and has not ended.
  std::vector<CUevent_st*> spare_;  // Made once and used again.
  LinkReport report_;
  std::uint64_t posted_ = 0;
  std::string problem_;
};

}  // namespace troupe::transport
