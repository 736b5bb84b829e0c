"""Workloads of one process. Each trains a few steps and says what it knows to be where."""

import copy

import torch
import torch.nn.functional as F
from holdings import Holdings
from models import CustomFunction, Decoder, Mlp, Selective
from optimizers import EightBit
from torch import nn
from transformer import next_token_loss, non_reentrant, reentrant

STEPS = 3


def train(model, optimizer, truth, batch, loss_of, microbatches=1, first_look=1, inside=None, after_step=lambda: None):
    """An ordinary loop, looked at before and after each backward, and after each step, once the first step is over; and, in
    the last step, when the module `inside` is called or run again, and when backward passes its input."""
    step = 0

    def look(when, **known):
        if step >= first_look:
            truth.look(f"step {step}: {when}", **known)

    def inside_is_called(_module, arguments):
        if step == STEPS - 1:
            look(f"call {truth.count('call')} inside", running=True)
            if arguments[0].requires_grad:
                arguments[0].register_hook(lambda _: look(f"backward {truth.count('backward')} inside"))

    if inside is not None:
        inside.register_forward_pre_hook(inside_is_called)
    for step in range(STEPS):
        for microbatch in range(microbatches):
            x, y = batch()
            loss = loss_of(model, x, y)
            look(f"forward {microbatch} ends", loss=loss, inputs=(x, y))
            loss.backward()
            look(f"backward {microbatch} ends", inputs=(x, y))
        optimizer.step()
        after_step()
        look("optimizer ends", inputs=(x, y))
        optimizer.zero_grad()
    truth.write()


def mlp_with(make_optimizer):
    def run():
        model = Mlp().cuda()
        optimizer = make_optimizer(model.parameters())
        train(model, optimizer, Holdings(model, optimizer), Mlp.batch, loss_of_mlp)
    return run


def loss_of_mlp(model, x, labels):
    return F.cross_entropy(model(x), labels)


def train_decoder(model, loss_of=next_token_loss):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    truth = Holdings(model, optimizer)
    truth.knows_recomputed = model.region is not reentrant  # whose graph is out of sight
    train(model, optimizer, truth, Decoder.batch, loss_of, inside=model.layers[1].norm2)


def decoder(**shape):
    return lambda: train_decoder(Decoder(**shape).cuda())


def decoder_selective():
    region = Selective()
    model = Decoder(region=region).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    truth = Holdings(model, optimizer)
    truth.also_saved = region.kept
    truth.knows_recomputed = False  # regions hold what was kept beside it

    def loss_of(model, tokens, targets):
        region.forget()
        return next_token_loss(model, tokens, targets)

    train(model, optimizer, truth, Decoder.batch, loss_of, inside=model.layers[1].norm2)


def decoder_autocast():
    def loss_of(model, tokens, targets):
        with torch.autocast("cuda", torch.bfloat16):
            return next_token_loss(model, tokens, targets)

    train_decoder(Decoder().cuda(), loss_of)


def decoder_clipped():
    """Gradients of four microbatches, clipped."""
    model = Decoder().to(torch.bfloat16).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    step = optimizer.step

    def clip_and_step():
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        step()

    optimizer.step = clip_and_step
    train(model, optimizer, Holdings(model, optimizer), Decoder.batch, next_token_loss, microbatches=4)


def compiled():
    model = Mlp().cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    train(torch.compile(model), optimizer, Holdings(model, optimizer), Mlp.batch, loss_of_mlp)


def custom_function():
    model = CustomFunction().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train(model, optimizer, Holdings(model, optimizer), Mlp.batch, loss_of_mlp)


def recreated():
    """Parameters that came to be on other devices, and in another type."""
    with torch.device("meta"):
        model = Mlp()
    model.to_empty(device="cuda")
    model.to(torch.bfloat16)
    for parameter in model.parameters():
        nn.init.ones_(parameter)
    optimizer = torch.optim.AdamW(model.parameters())

    def batch():
        x, y = Mlp.batch()
        return x.to(torch.bfloat16), y

    train(model, optimizer, Holdings(model, optimizer), batch, loss_of_mlp)


def averaged_with(make_copies):
    """`make_copies` returns the function that updates the copies, and the copies by name."""
    def run():
        model = Mlp().cuda()
        optimizer = torch.optim.AdamW(model.parameters())
        update, copies = make_copies(model)
        truth = Holdings(model, optimizer)
        truth.copies = copies
        train(model, optimizer, truth, Mlp.batch, loss_of_mlp, after_step=update)
    return run


def deep_copy(model):
    average = copy.deepcopy(model)

    @torch.no_grad()
    def update():
        for kept, parameter in zip(average.parameters(), model.parameters()):
            kept.lerp_(parameter, 0.01)

    return update, average.state_dict()


def list_of_clones(model):
    kept = [parameter.detach().clone() for parameter in model.parameters()]

    @torch.no_grad()
    def update():
        torch._foreach_lerp_(kept, list(model.parameters()), 0.01)

    return update, {str(number): tensor for number, tensor in enumerate(kept)}


def averaged_model(model):
    average = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.99))
    return lambda: average.update_parameters(model), average.state_dict()


WORKLOADS = {
    "mlp": mlp_with(torch.optim.AdamW),
    "mlp_foreach": mlp_with(lambda parameters: torch.optim.AdamW(parameters, foreach=True)),
    "mlp_fused": mlp_with(lambda parameters: torch.optim.AdamW(parameters, fused=True)),
    "mlp_for_loop": mlp_with(lambda parameters: torch.optim.AdamW(parameters, foreach=False)),
    "mlp_momentum": mlp_with(lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9)),
    "mlp_adafactor": mlp_with(torch.optim.Adafactor),
    "mlp_eight_bit": mlp_with(EightBit),
    "decoder": decoder(),
    "decoder_reentrant": decoder(region=reentrant),
    "decoder_non_reentrant": decoder(region=non_reentrant),
    "decoder_selective": decoder_selective,
    "decoder_autocast": decoder_autocast,
    "decoder_tied": decoder(tied=True),
    "decoder_accumulation": decoder_clipped,
    "compiled": compiled,
    "custom_function": custom_function,
    "recreated": recreated,
    "ema_deep_copy": averaged_with(deep_copy),
    "ema_clones": averaged_with(list_of_clones),
    "ema_averaged_model": averaged_with(averaged_model),
}
