// Arithmetic of the collectives on host copies of small messages.
#ifndef TOOLS_SIMGPU_NCCL_DATA_TYPES_H_
#define TOOLS_SIMGPU_NCCL_DATA_TYPES_H_

#include <nccl.h>

#include <cstddef>
#include <vector>

namespace simgpu::nccl {

// Bytes of one element, 0 for a value that is no data type.
std::size_t SizeOf(ncclDataType_t type);

// As kernels spell it: f32, bf16, u8, ... Signed integers go by their unsigned kin, as genuine NCCL's sum kernels do.
const char* KernelNameOf(ncclDataType_t type);

// Reduces `inputs` (one array of `count` elements per rank, in rank order) into `output`. `operation` is one of the
// built-in ones; the result does not depend on which rank computes it. Floating types narrower than 32 bits are summed
// in float and rounded once, where genuine NCCL's rings round at every step: the results may differ in the last place.
void Reduce(const std::vector<const void*>& inputs, void* output, std::size_t count, ncclDataType_t type,
            ncclRedOp_t operation);

// data[i] *= *scalar, both of `type`: what ncclRedOpCreatePreMulSum asks for, done to a rank's contribution.
void Scale(void* data, std::size_t count, ncclDataType_t type, const void* scalar);

}  // namespace simgpu::nccl

#endif  // TOOLS_SIMGPU_NCCL_DATA_TYPES_H_
