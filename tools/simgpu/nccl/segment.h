// The memory that the ranks of one communicator share, and its layout.
//
//   SegmentHeader
//   RankState      [ranks]
//   RingSlot       [kRingSlots]
//   Contribution   [kRingSlots][ranks]      what each rank brought to a collective: descriptor, then
//   data           [kRingSlots][ranks][kMessageMax]
//   Mailbox        [ranks][ranks]           sender, receiver
//   mail           [ranks][ranks][kMailSlots][kMessageMax]
//
// The file is sparse: only what is used takes memory. Every word that someone waits for is 32 bits wide, for futex.
//
// Protocol of a collective with sequence number s, in slot s % kRingSlots, turn g = s / kRingSlots:
//   1. wait until finished >= g * ranks (mod 2^32): everybody has left the slot's previous turn;
//   2. write the contribution, then published = s + 1, then ++arrived;
//   3. wait for those whose data is needed: published of one rank, or arrived == (g + 1) * ranks for all;
//   4. read, then ++finished.
// A rank that needs nobody's data (a sender of a reduce) doesn't wait in step 3, so it can be up to kRingSlots ahead.
// A mailbox is an ordinary ring of one producer and one consumer.
#ifndef TOOLS_SIMGPU_NCCL_SEGMENT_H_
#define TOOLS_SIMGPU_NCCL_SEGMENT_H_

#include <nccl.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "tools/simgpu/nccl/invitation.h"
#include "tools/simgpu/nccl/process.h"

namespace simgpu::nccl {

inline constexpr int kMaxRanks = 256;
// What one rank brings to an operation is moved up to this size; anything larger stays where it is.
inline constexpr std::size_t kMessageMax = 64 << 10;
inline constexpr std::uint32_t kRingSlots = 4;
inline constexpr std::uint32_t kMailSlots = 8;
inline constexpr std::uint32_t kSplits = 2;

using Word = std::atomic<std::uint32_t>;
static_assert(Word::is_always_lock_free);

struct SegmentHeader {
  std::uint64_t nonce;
  std::uint32_t rank_count;  // 0 until the first rank joins
  std::uint32_t joined;
};

enum class RankPhase : std::uint32_t { kAbsent, kJoined, kFailed, kAborted, kLeft };

// How a rank takes part in the making of a communicator out of this one; each rank writes its own. Apart from the
// collectives' slots, because it has to work when those were left in the middle, by ncclCommRevoke or a lost rank.
// Splits are numbered from 1; number k uses place k % kSplits. All who take part in k + 1 have finished k, so two
// places would do.
struct SplitState {
  Word voted;  // number of the split, once colour and key are there
  std::int32_t color;
  std::int32_t key;
  Word offered;  // number of the split, once the leader's invitation is there
  Invitation invitation;
};

struct alignas(64) RankState {
  std::atomic<RankPhase> phase;
  ProcessIdentity process;  // written before phase becomes kJoined
  SplitState splits[kSplits];
};

struct alignas(64) RingSlot {
  Word arrived;
  Word finished;
};

// What a rank said it is doing, so that mismatched calls are told apart from slow ones.
struct CallDescriptor {
  std::uint32_t kind;
  std::uint32_t operation;
  std::uint32_t root;
  std::uint32_t datatype;
  std::uint64_t bytes;
};

struct alignas(64) Contribution {
  Word published;  // sequence number + 1
  Word left;       // the same, once the rank has read what it needed: says who is late when a slot isn't free
  CallDescriptor call;
};

struct alignas(64) Mailbox {
  alignas(64) Word sent;
  alignas(64) Word received;
  std::uint64_t bytes[kMailSlots];
};

class Segment {
 public:
  // Maps the file of `invitation` and takes `rank`'s place in it. Doesn't wait for the others.
  static ncclResult_t Join(const Invitation& invitation, int ranks, int rank, std::unique_ptr<Segment>* segment);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  int ranks() const { return ranks_; }
  Word& joined() const;
  RankState& rank(int rank) const { return rank_states_[rank]; }
  RingSlot& slot(std::uint32_t sequence) const { return slots_[sequence % kRingSlots]; }
  Contribution& contribution(std::uint32_t sequence, int rank) const;
  char* data(std::uint32_t sequence, int rank) const;
  Mailbox& mailbox(int sender, int receiver) const { return mailboxes_[sender * ranks_ + receiver]; }
  char* mail(int sender, int receiver, std::uint32_t number) const;

 private:
  Segment(void* base, std::size_t bytes, int ranks);

  char* base_;
  std::size_t bytes_;
  int ranks_;
  RankState* rank_states_;
  RingSlot* slots_;
  Contribution* contributions_;
  char* data_;
  Mailbox* mailboxes_;
  char* mail_;
};

// Adds to, or sets, a word that others may wait for, and wakes them.
void AddAndWake(Word& word, std::uint32_t wake_at);
void SetAndWake(Word& word, std::uint32_t value);

// Sleeps until `word` is no longer `seen`, but at most `nanoseconds`.
void WaitForChange(const Word& word, std::uint32_t seen, std::int64_t nanoseconds);

}  // namespace simgpu::nccl

#endif  // TOOLS_SIMGPU_NCCL_SEGMENT_H_
