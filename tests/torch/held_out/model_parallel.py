"""Programs of several ranks whose model is parallel: tensors, stages, sequences, experts; and what jobs do beside training."""

import os
import pathlib

import loop
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
import torch.distributed.checkpoint as checkpoint
from data_parallel import BF16, train_fsdp2
from loop import adamw, train
from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict, get_state_dict, set_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.experimental import context_parallel
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, SequenceParallel, parallelize_module

from forks import join
from holdings import Holdings
from models import BATCH, LENGTH, VOCABULARY, WIDTH, Decoder
from sharded_workloads import fsdp2_holdings, joined, shard
from transformer import Block, next_token_loss


# --- tensors


def split_tensors(model, mesh):
    """Two products of a block, one by columns and one by rows, and the head."""
    for layer in model.layers:
        parallelize_module(layer, mesh, {"gate": ColwiseParallel(), "up": ColwiseParallel(), "down": RowwiseParallel()})
    return parallelize_module(model, mesh, {"embedding": RowwiseParallel(input_layouts=Replicate()), "head": ColwiseParallel(output_layouts=Replicate())})


def tensor_parallel():
    model = split_tensors(Decoder().cuda(), init_device_mesh("cuda", (4,)))
    train(model, adamw(model, foreach=False), next_token_loss, Decoder.batch)


def sharded_tensor_parallel():
    mesh = init_device_mesh("cuda", (2, 2), mesh_dim_names=("data", "tensor"))
    model = split_tensors(Decoder().cuda(), mesh["tensor"])
    shard(model, mesh=mesh["data"])
    train_fsdp2(model, optimizer=adamw(model, foreach=False))


class Split(nn.Module):
    """Norm and product by columns and by rows: what sequence parallelism is for."""

    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.RMSNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


def sequence_parallel():
    mesh = init_device_mesh("cuda", (2,))
    model = nn.Sequential(nn.Embedding(VOCABULARY, WIDTH), *(Split() for _ in range(4)), nn.Linear(WIDTH, VOCABULARY)).cuda()
    for block in model[1:5]:
        parallelize_module(block, mesh, {"norm": SequenceParallel(), "up": ColwiseParallel(input_layouts=Shard(1)), "down": RowwiseParallel(output_layouts=Shard(1))})
    parallelize_module(model, mesh, {"0": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)), "5": ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate())})
    train(model, adamw(model), next_token_loss, Decoder.batch)


# --- sequences


def long_context():
    mesh = init_device_mesh("cuda", (2,))
    model = Decoder().to(torch.bfloat16).cuda()
    optimizer = adamw(model)
    truth = Holdings(model, optimizer)
    for step in range(loop.STEPS):
        tokens, targets = (part.contiguous() for part in Decoder.batch())
        with context_parallel(mesh, buffers=[tokens, targets], buffer_seq_dims=[1, 1], no_restore_buffers={tokens, targets}):
            loss = next_token_loss(model, tokens, targets)
            if step == loop.LOOK_AT:
                truth.look("forward ends", inputs=(tokens, targets))
            loss.backward()
        if step == loop.LOOK_AT:
            truth.look("backward ends", inputs=(tokens, targets))
        for p in model.parameters():
            dist.all_reduce(p.grad)
        optimizer.step()
        if step == loop.LOOK_AT:
            truth.look("optimizer ends", inputs=(tokens, targets))
        optimizer.zero_grad()
    truth.write()


# --- experts


class Exchange(torch.autograd.Function):
    """Tokens to the ranks of their experts and back; the same number from and to each."""

    @staticmethod
    def forward(_ctx, x):
        received = torch.empty_like(x)
        dist.all_to_all_single(received, x.contiguous())
        return received

    @staticmethod
    def backward(_ctx, gradient):
        return Exchange.forward(None, gradient)


class Experts(nn.Module):
    def __init__(self, exchange):
        super().__init__()
        self.exchange = exchange
        self.norm, self.router = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 2 * dist.get_world_size(), bias=False)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH)) for _ in range(2))

    def forward(self, x):
        h = self.norm(x).flatten(0, 1)
        gate = self.router(h).softmax(-1)
        chosen = gate.topk(len(h) // gate.shape[1], dim=0).indices % len(h)  # by experts, of fixed capacity
        sent = h[chosen.clamp(0, len(h) - 1)].transpose(0, 1).flatten(0, 1)
        received = self.exchange(sent).view(dist.get_world_size(), 2, -1, WIDTH)
        done = torch.stack([expert(received[:, number].flatten(0, 1)).view(dist.get_world_size(), -1, WIDTH) for number, expert in enumerate(self.experts)], 1)
        back = self.exchange(done.flatten(0, 2))
        return x + (back.view_as(h) * gate.amax(-1, keepdim=True)).view_as(x)


class ExpertsModel(nn.Module):
    def __init__(self, exchange):
        super().__init__()
        self.embedding, self.head = nn.Embedding(VOCABULARY, WIDTH), nn.Linear(WIDTH, VOCABULARY)
        self.layers = nn.Sequential(*(Experts(exchange) for _ in range(3)))

    def forward(self, tokens):
        return self.head(self.layers(self.embedding(tokens)))


def train_experts(exchange, exchanges):
    """Experts are this rank's own; what all ranks have is reduced by hand. `exchanges`: by call, how often for each."""
    model = ExpertsModel(exchange).cuda()
    optimizer = adamw(model)
    shared = [p for name, p in model.named_parameters() if ".experts." not in name]
    truth = Holdings(model, optimizer)
    for step in range(loop.STEPS):
        tokens, targets = Decoder.batch()
        loss = next_token_loss(model, tokens, targets)
        if step == loop.LOOK_AT:
            truth.look("forward ends", loss=loss, inputs=(tokens, targets))
        loss.backward()
        flat = torch.cat([p.grad.flatten() for p in shared])
        dist.all_reduce(flat)
        for p, part in zip(shared, flat.split([p.numel() for p in shared])):
            p.grad.copy_(part.view_as(p))
        if step == loop.LOOK_AT:
            truth.look("gradients are reduced", inputs=(tokens, targets))
        optimizer.step()
        if step == loop.LOOK_AT:
            truth.look("optimizer ends", inputs=(tokens, targets))
        optimizer.zero_grad()
    capacity = BATCH * LENGTH * WIDTH * 4
    truth.calls = {call: [12 * times, 12 * capacity] for call, times in exchanges.items()} | {"all_reduce": [1, 4 * sum(p.numel() for p in shared)]}
    truth.write()


def experts():
    train_experts(Exchange.apply, {"all_to_all": 1})


def experts_functional():
    """With sizes of parts, which PyTorch makes sends and receives of."""
    ranks = dist.get_world_size()
    train_experts(lambda x: functional.all_to_all_single_autograd(x, None, None, dist.group.WORLD), {"send": ranks, "receive": ranks})


# --- stages


class Stage(nn.Module):
    def __init__(self, number, stages):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH) if number == 0 else None
        self.layers = nn.Sequential(*(Block(WIDTH, 4) for _ in range(2)))
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False) if number == stages - 1 else None

    def forward(self, x):
        x = self.layers(self.embedding(x) if self.embedding else x)
        return self.head(x) if self.head else x


def pipeline(schedule_of, ranks=2):
    def run():
        rank, micro = dist.get_rank(), BATCH // 4
        model = Stage(rank, ranks).cuda()
        tokens = torch.zeros(micro, LENGTH, dtype=torch.long, device="meta")
        hidden, logits = (torch.zeros(micro, LENGTH, width, device="meta", requires_grad=True) for width in (WIDTH, VOCABULARY))
        stage = PipelineStage(model, rank, ranks, torch.device("cuda", rank), input_args=(hidden if rank else tokens,), output_args=(hidden if rank < ranks - 1 else logits,))
        schedule = schedule_of(stage, n_microbatches=4, loss_fn=lambda out, targets: nn.functional.cross_entropy(out.flatten(0, 1), targets.flatten()))
        optimizer = adamw(model)
        truth = Holdings(model, optimizer)
        for step in range(loop.STEPS):
            tokens, targets = Decoder.batch()
            first, last = rank == 0, rank == ranks - 1
            schedule.step(*((tokens,) if first else ()), **({"target": targets} if last else {}))
            if step == loop.LOOK_AT:
                truth.look("backward ends", inputs=(*((tokens,) if first else ()), *((targets,) if last else ())))
            optimizer.step()
            if step == loop.LOOK_AT:
                truth.look("optimizer ends")
            optimizer.zero_grad()
        neighbours = (rank > 0) + (rank < ranks - 1)
        sent = BATCH * LENGTH * WIDTH * 4
        truth.calls = dict.fromkeys(("send", "receive"), [4 * neighbours, neighbours * sent])
        truth.write()
    return run


def ring():
    """Each rank passes its part of a sequence around, both ways, while it computes (batched sends and receives)."""
    rank, ranks = dist.get_rank(), dist.get_world_size()

    class Ring(nn.Module):
        def __init__(self):
            super().__init__()
            self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

        def forward(self, x):
            out, passed = x, x.detach()
            for _ in range(ranks - 1):
                received = torch.empty_like(passed)
                for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, passed, (rank + 1) % ranks), dist.P2POp(dist.irecv, received, (rank - 1) % ranks)]):
                    work.wait()
                passed = received
                out = out + self.down(nn.functional.gelu(self.up(passed)))
            return out

    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), Ring(), nn.Linear(WIDTH, 10)).cuda()
    truth = Holdings(model, optimizer := adamw(model))
    truth.calls = {"send": [ranks - 1, (ranks - 1) * 2048 * WIDTH * 4], "receive": [ranks - 1, (ranks - 1) * 2048 * WIDTH * 4]}
    train(model, optimizer, lambda model, x, y: nn.functional.cross_entropy(model(x), y), lambda: (torch.randn(2048, WIDTH, device="cuda"), torch.randint(10, (2048,), device="cuda")),
          truth=truth)


# --- beside training


def with_objects(run):
    """A group through which objects go, too."""
    def program():
        join("cpu:gloo,cuda:nccl")
        run()
        dist.barrier()
        dist.destroy_process_group()
    return program


def checkpoint_saved(save):
    def run():
        model = shard(Decoder().cuda(), mp_policy=BF16)
        optimizer = adamw(model)
        folder = pathlib.Path(os.environ["LEDGER_DIR"], "checkpoint")
        steps = 0

        def after_step():
            nonlocal steps
            steps += 1
            if steps == loop.LOOK_AT:
                weights, states = get_state_dict(model, optimizer)
                save({"model": weights, "optimizer": states}, folder)

        train_fsdp2(model, optimizer=optimizer, truth=fsdp2_holdings(model, optimizer), after_step=after_step)
    return run


def saved(state, folder):
    checkpoint.save(state, checkpoint_id=folder)


def saved_async(state, folder):
    checkpoint.async_save(state, checkpoint_id=folder).result()


def weights_from_first_rank():
    """A whole state dict on rank 0, broadcast into shards; and at the end gathered to the host."""
    whole = Decoder().state_dict() if dist.get_rank() == 0 else {}
    with torch.device("meta"):
        model = Decoder()
    model = shard(model)
    model.to_empty(device="cuda")
    set_model_state_dict(model, whole, options=StateDictOptions(full_state_dict=True, broadcast_from_rank0=True))
    train_fsdp2(model)
    get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=True))


PROGRAMS = {function.__name__: joined(function) for function in (
    tensor_parallel, sharded_tensor_parallel, sequence_parallel, long_context, experts, experts_functional, ring)} | {
    "pipeline_gpipe": joined(pipeline(ScheduleGPipe)),
    "pipeline_1f1b": joined(pipeline(Schedule1F1B)),
    "pipeline_1f1b_deep": joined(pipeline(Schedule1F1B, 4)),
    "checkpoint_saved": with_objects(checkpoint_saved(saved)),
    "checkpoint_saved_async": with_objects(checkpoint_saved(saved_async)),
    "weights_from_first_rank": with_objects(weights_from_first_rank),
}
RANKS = dict.fromkeys(PROGRAMS, 2) | dict.fromkeys(("tensor_parallel", "sharded_tensor_parallel", "pipeline_1f1b_deep"), 4)
