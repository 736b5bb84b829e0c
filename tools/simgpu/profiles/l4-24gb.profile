# NVIDIA L4, 24 GB.
name = NVIDIA L4
memory.total_bytes = 23612293120  # deviceQuery (21.99 GiB), CUDA 12.0
nvml.total_bytes = 24152899584  # nvidia-smi: 23034MiB
compute_capability.major = 8
compute_capability.minor = 9
multiprocessors = 58  # deviceQuery
clock_khz = 2040000  # deviceQuery
memory.clock_khz = 6251000  # deviceQuery
memory.bus_bits = 192  # deviceQuery
l2_bytes = 50331648  # deviceQuery
l2_persisting_bytes = 31457280  # assumed: 5/8 of it
threads_per_multiprocessor = 1536  # CUDA programming guide, compute capability 8.9
blocks_per_multiprocessor = 24  # the same
shared.per_multiprocessor_bytes = 102400  # the same
shared.per_block_optin_bytes = 101376  # the same
copy_engines = 2  # assumed
nvlink.links = 0
power.limit_mw = 72000  # NVIDIA L4 data sheet

# ---- What processes cost beside their allocations. None of these figures is documented; they follow from what
# nvidia-smi shows for small programs, and differ between drivers.
context.bytes = 314572800  # assumed: 300 MiB for a context with nothing in it
module.bytes_per_function = 49152  # assumed: device memory for one lazily loaded kernel's code and constants
memory.reserved_bytes = 0  # assumed: what is in use, of the above total, on an idle device

# ---- How allocations take physical memory.
memory.granularity = 2097152  # cuMemGetAllocationGranularity on every GPU of these generations
memory.small_limit = 1048576  # assumed: allocations up to this share chunks of one granule
pool.chunk_bytes = 33554432  # assumed: a stream-ordered pool grows by multiples of this

# ---- NCCL. Per communicator: a fixed part at its creation; per channel and connection, at its first use, the buffers of
# the three protocols (LL 0.5, LL128 4.7, Simple 4 MiB, as in NCCL's defaults), rounded up to cuMemCreate's granules.
nccl.channels = 2  # assumed: over PCI Express
nccl.p2p_channels = 2  # assumed
nccl.channel_recv_bytes = 10485760  # NCCL 2.28's default buffer sizes, rounded up to granules
nccl.channel_send_bytes = 2097152  # assumed: flags, one granule
nccl.comm_device_bytes = 4194304  # assumed
nccl.comm_host_bytes = 1048576  # assumed

# ---- Libraries.
cublas.handle_bytes = 8388608  # assumed: what cublasCreate allocates itself; PyTorch gives workspaces of its own
cudnn.workspace_bytes = 0  # assumed: no plan asks for a workspace

driver.version = 13020  # the CUDA version that the torch 2.15 wheels are built with
