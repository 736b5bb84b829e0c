# NVIDIA H200 SXM, 141 GB.
name = NVIDIA H200
memory.total_bytes = 150109945856  # 139.80 GiB in the out-of-memory messages of torch, rounded to a whole MiB
nvml.total_bytes = 150754820096  # nvidia-smi: 143771MiB
memory.clock_khz = 3201000  # assumed: from 4.8 TB/s over 6144 bits
memory.bus_bits = 6144  # assumed: six stacks
l2_bytes = 62914560  # assumed: as GH200
l2_persisting_bytes = 39321600  # assumed: 5/8 of it

compute_capability.major = 9
compute_capability.minor = 0
multiprocessors = 132  # deviceQuery
clock_khz = 1980000  # deviceQuery
threads_per_multiprocessor = 2048  # CUDA programming guide, compute capability 9.0
blocks_per_multiprocessor = 32  # the same
shared.per_multiprocessor_bytes = 233472  # the same
shared.per_block_optin_bytes = 232448  # the same
cluster_launch = 1
copy_engines = 3  # deviceQuery
nvlink.links = 18  # NVIDIA H100 data sheet: 900 GB/s in links of 50
power.limit_mw = 700000  # the same

# ---- What processes cost beside their allocations. None of these figures is documented; they follow from what
# nvidia-smi shows for small programs, and differ between drivers.
context.bytes = 545259520  # assumed: 520 MiB for a context with nothing in it
module.bytes_per_function = 49152  # assumed: device memory for one lazily loaded kernel's code and constants
memory.reserved_bytes = 0  # assumed: what is in use, of the above total, on an idle device

# ---- How allocations take physical memory.
memory.granularity = 2097152  # cuMemGetAllocationGranularity on every GPU of these generations
memory.small_limit = 1048576  # assumed: allocations up to this share chunks of one granule
pool.chunk_bytes = 33554432  # assumed: a stream-ordered pool grows by multiples of this

# ---- NCCL. Per communicator: a fixed part at its creation; per channel and connection, at its first use, the buffers of
# the three protocols (LL 0.5, LL128 4.7, Simple 4 MiB, as in NCCL's defaults), rounded up to cuMemCreate's granules.
nccl.channels = 24  # assumed: what an NVLink-switched node of eight uses for rings
nccl.p2p_channels = 32  # assumed
nccl.channel_recv_bytes = 10485760  # NCCL 2.28's default buffer sizes, rounded up to granules
nccl.channel_send_bytes = 2097152  # assumed: flags, one granule
nccl.comm_device_bytes = 4194304  # assumed
nccl.comm_host_bytes = 1048576  # assumed

# ---- Libraries.
cublas.handle_bytes = 8388608  # assumed: what cublasCreate allocates itself; PyTorch gives workspaces of its own
cudnn.workspace_bytes = 0  # assumed: no plan asks for a workspace

driver.version = 13020  # the CUDA version that the torch 2.15 wheels are built with
