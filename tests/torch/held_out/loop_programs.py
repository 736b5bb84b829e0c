"""Programs whose loops are not the usual one."""

import threading
import time

import torch
import torch.nn.functional as F
import transformer
from loop import LOOK_AT, STEPS, VOCABULARY, adamw, pairs, perceptron, rows, squared_loss, tokens, train
from torch import nn

from holdings import Holdings


class ActorAndCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.policy, self.value = perceptron(depth=1), nn.Linear(512, 64), nn.Linear(512, 1)

    def forward(self, seen):
        hidden = self.body(seen)
        return self.policy(hidden), self.value(hidden).squeeze(-1)


def policy_optimization():
    """A rollout into buffers on the device, and two epochs of two minibatches over it (PPO)."""
    model = ActorAndCritic().cuda()
    optimizer = adamw(model)
    seen, done = torch.zeros(32, 256, 512, device="cuda"), torch.zeros(32, 256, dtype=torch.long, device="cuda")
    logs, values, rewards = (torch.zeros(32, 256, device="cuda") for _ in range(3))
    truth = Holdings(model, optimizer)
    truth.copies = {"seen": seen, "done": done, "logs": logs, "values": values, "rewards": rewards}
    for step in range(STEPS):
        with torch.no_grad():
            for t in range(len(seen)):
                seen[t].normal_()
                scores, values[t] = model(seen[t])
                done[t] = scores.argmax(-1).clamp(0, 63)
                logs[t] = scores.log_softmax(-1).gather(-1, done[t][:, None]).squeeze(-1)
                rewards[t].normal_()
            advantages = rewards.flip(0).cumsum(0).flip(0) - values
        for epoch in range(2):
            for number, part in enumerate(torch.arange(32 * 256, device="cuda").chunk(2)):
                picked = seen.flatten(0, 1)[part]
                scores, value = model(picked)
                now = scores.log_softmax(-1).gather(-1, done.flatten()[part][:, None]).squeeze(-1)
                ratio, gain = (now - logs.flatten()[part]).exp(), advantages.flatten()[part]
                loss = -torch.min(ratio * gain, ratio.clamp(0.8, 1.2) * gain).mean() + F.mse_loss(value, values.flatten()[part] + gain)
                if step == LOOK_AT:
                    truth.look(f"forward {epoch} {number} ends", loss=loss, inputs=[picked])
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 0.5)
                optimizer.step()
    truth.write()


def replayed_experience():
    """A buffer of the past, larger than the model, and a target network that follows (DQN)."""
    model, target = perceptron(), perceptron().requires_grad_(False)
    optimizer = adamw(model)
    seen, then, rewards = torch.zeros(8192, 512, device="cuda"), torch.zeros(8192, 512, device="cuda"), torch.zeros(8192, device="cuda")
    truth = Holdings(model, optimizer)
    truth.copies = {"seen": seen, "then": then, "rewards": rewards} | dict(target.named_parameters())
    for step in range(STEPS):
        for memory in (seen, then):
            memory[step * 512:(step + 1) * 512] = torch.randn(512, 512, device="cuda")
        picked = torch.randint(8192, (2048,)).cuda()
        with torch.no_grad():
            goal = rewards[picked] + target(then[picked]).amax(-1)
        x = seen[picked]
        loss = F.smooth_l1_loss(model(x)[:, 0], goal)
        if step == LOOK_AT:
            truth.look("forward ends", loss=loss, inputs=(x, goal))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step == LOOK_AT:
            truth.look("optimizer ends", inputs=(x, goal))
        if step % 2 == 0:
            target.load_state_dict(model.state_dict())
    truth.write()


class Cached(nn.Module):
    """A decoder that attends to keys and values of earlier tokens, when it is given a place for them."""

    def __init__(self, width=384, layers=3):
        super().__init__()
        self.embedding, self.head = nn.Embedding(VOCABULARY, width), nn.Linear(width, VOCABULARY, bias=False)
        self.blocks = nn.ModuleList(transformer.Block(width, 4) for _ in range(layers))

    def forward(self, ids, cache=None, at=0):
        x = self.embedding(ids)
        for number, block in enumerate(self.blocks):
            if cache is None:
                x = block(x)
                continue
            q, k, v = (t.unflatten(-1, (4, -1)).transpose(1, 2) for t in block.qkv(block.norm1(x)).chunk(3, -1))
            keys, values = cache[number]
            keys[:, :, at:at + ids.shape[1]], values[:, :, at:at + ids.shape[1]] = k, v
            out = F.scaled_dot_product_attention(q, keys[:, :, :at + ids.shape[1]], values[:, :, :at + ids.shape[1]])
            x = x + block.out(out.transpose(1, 2).flatten(2))
            h = block.norm2(x)
            x = x + block.down(F.silu(block.gate(h)) * block.up(h))
        return self.head(x)


def generate_and_train(mode):
    model = Cached().cuda()
    optimizer = adamw(model)
    truth = Holdings(model, optimizer)
    for step in range(STEPS):
        with mode():
            cache = [tuple(torch.zeros(16, 4, 160, 96, device="cuda") for _ in range(2)) for _ in model.blocks]
            ids = [tokens(16, 128)]
            for t in range(16):
                scores = model(ids[-1], cache, at=0 if t == 0 else 127 + t)
                ids.append(scores[:, -1:].argmax(-1).clamp(0, VOCABULARY - 1))
        ids = torch.cat(ids, 1).clone()
        del cache, scores
        goals = ids[:, 1:].clone()
        loss = transformer.next_token_loss(model, ids[:, :-1], goals)
        if step == LOOK_AT:
            truth.look("forward ends", loss=loss, inputs=(ids, goals))
        optimizer.zero_grad()
        loss.backward()
        if step == LOOK_AT:
            truth.look("backward ends")
        optimizer.step()
    truth.write()


def generate_without_gradients():
    generate_and_train(torch.no_grad)


def generate_in_inference():
    generate_and_train(torch.inference_mode)


def preferences():
    """A frozen reference model judges the same batch in each step (DPO)."""
    model, reference = (transformer.Decoder(384, vocabulary=VOCABULARY).cuda() for _ in range(2))
    reference.requires_grad_(False)
    reference.load_state_dict(model.state_dict())
    truth = Holdings(model, optimizer := adamw(model))
    truth.copies = dict(reference.named_parameters())

    def logs_of(model, ids):
        return model(ids[:, :-1]).log_softmax(-1).gather(-1, ids[:, 1:, None]).squeeze(-1).sum(-1)

    def loss_of(model, ids):
        with torch.no_grad():
            was = logs_of(reference, ids)
        (better, worse), (better_was, worse_was) = logs_of(model, ids).chunk(2), was.chunk(2)
        return -F.logsigmoid(0.1 * ((better - better_was) - (worse - worse_was))).mean()

    train(model, optimizer, loss_of, lambda: (tokens(),), truth=truth)


def evaluated_with_gradients():
    """An evaluation after each step whose graph is made and dropped, and one that makes none. The next batch is there by then."""
    model = perceptron()
    (x, y), upcoming = pairs(), pairs()

    def batch():
        return upcoming

    def evaluate():
        nonlocal upcoming
        upcoming = pairs()
        model.eval()
        squared_loss(model, x, y).detach()
        with torch.no_grad():
            squared_loss(model, x, y)
        model.train()

    train(model, adamw(model), squared_loss, batch, after_step=evaluate)


def growing_batches():
    size = 512

    def batch():
        nonlocal size
        size += 512
        return rows(size), rows(size)

    model = perceptron()
    train(model, adamw(model), squared_loss, batch, microbatches=2)


def trained_in_a_thread():
    """The program's first thread only waits. The other one has a while to go before its first step, as reading data takes."""
    def work():
        model = perceptron()
        time.sleep(2)
        train(model, adamw(model), squared_loss, pairs)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def steps_of_a_generator():
    """A step is the body of a generator, which holds its tensors when it is not running."""
    model = perceptron()
    truth = Holdings(model, optimizer := adamw(model))

    def steps():
        while True:
            x, y = pairs()
            loss = squared_loss(model, x, y)
            yield "forward ends", {"loss": loss, "inputs": (x, y)}
            loss.backward()
            yield "backward ends", {"inputs": (x, y)}
            optimizer.step()
            optimizer.zero_grad()
            yield "optimizer ends", {"inputs": (x, y)}

    running = steps()
    for step in range(STEPS):
        for _ in range(3):
            mark, known = next(running)
            if step == LOOK_AT:
                truth.look(mark, **known)
            del known
    truth.write()


def smaller_after_no_memory():
    """A batch that does not fit is tried, and then half of it until it does."""
    model = perceptron()
    truth = Holdings(model, optimizer := adamw(model))
    torch.cuda.set_per_process_memory_fraction(400 * 2**20 / torch.cuda.get_device_properties(0).total_memory)
    size = 16384
    for step in range(STEPS):
        while True:
            try:
                x, y = rows(size), rows(size)
                loss = squared_loss(model, x, y)
                loss.backward()
                break
            except torch.OutOfMemoryError:
                optimizer.zero_grad()
                loss = None
                size //= 2
        if step == LOOK_AT:
            truth.look("backward ends", inputs=(x, y))
        optimizer.step()
        optimizer.zero_grad()
    truth.write()


def whole_data_set_on_device():
    """Batches are picked from data that lies on the device; the curve of losses is kept."""
    model = perceptron()
    data, goals = rows(16384), rows(16384)
    truth = Holdings(model, optimizer := adamw(model))
    truth.copies = {"data": data, "goals": goals}
    losses = []

    def batch():
        picked = torch.randint(16384, (2048,)).cuda()
        return data[picked], goals[picked]

    def loss_of(model, x, y):
        loss = squared_loss(model, x, y)
        losses.append(loss.detach())
        return loss

    train(model, optimizer, loss_of, batch, truth=truth)


def contrast_with_a_queue():
    """Features of earlier batches in a buffer of the module, and the averaged encoder that made them (MoCo)."""
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder, self.averaged = perceptron(), perceptron().requires_grad_(False)
            self.register_buffer("queue", torch.randn(8192, 512))
            self.at = 0

        def forward(self, x):
            with torch.no_grad():
                for mine, other in zip(self.averaged.parameters(), self.encoder.parameters()):
                    mine.lerp_(other, 0.01)
                keys = F.normalize(self.averaged(x.flip(0)), dim=1)
            queries = F.normalize(self.encoder(x), dim=1)
            scores = torch.cat([(queries * keys).sum(1, keepdim=True), queries @ self.queue.T.clone()], 1) / 0.07
            self.queue[self.at:self.at + 1024] = keys[:1024]
            self.at = (self.at + 1024) % 8192
            return scores

    model = Model().cuda()
    train(model, adamw(model), lambda model, x: F.cross_entropy(model(x), torch.zeros(len(x), dtype=torch.long, device="cuda")), lambda: (rows(),))


def moved_out_between_steps():
    """Weights and the optimizer's state are on the host while something else has the device, in more steps than the others."""
    model = perceptron()
    truth = Holdings(model, optimizer := adamw(model))
    other = 0
    for step in range(24):
        if step != 0:
            model.cuda()
            for state in optimizer.state.values():
                state.update({key: value.cuda() for key, value in state.items() if value.ndim > 0})
            truth.add_parameters(model.named_parameters())
        x, y = pairs()
        loss = squared_loss(model, x, y)
        if step == 21:
            truth.look("forward ends", loss=loss, inputs=(x, y))
        loss.backward()
        optimizer.step()
        if step == 21:
            truth.look("optimizer ends", inputs=(x, y))
        optimizer.zero_grad()
        model.cpu()
        for state in optimizer.state.values():
            state.update({key: value.cpu() for key, value in state.items()})
        other = torch.zeros(1024 * (1 + step), 512, device="cuda")  # so that the weights come back to other places
    del other
    truth.write()


def models_in_sequence():
    """Three trainings, one after the other."""
    for number in range(3):
        model = perceptron(512 - 64 * number)
        truth = Holdings(model, optimizer := adamw(model))
        for step in range(3):
            x, y = rows(2048, 512 - 64 * number), rows(2048, 512 - 64 * number)
            loss = squared_loss(model, x, y)
            if number == 2 and step == 1:
                truth.look("forward ends", loss=loss, inputs=(x, y))
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            if number == 2 and step == 1:
                truth.look("optimizer ends", inputs=(x, y))
    truth.write()


PROGRAMS = {function.__name__: function for function in (
    policy_optimization, replayed_experience, generate_without_gradients, generate_in_inference, preferences, evaluated_with_gradients, growing_batches, trained_in_a_thread,
    steps_of_a_generator, smaller_after_no_memory, whole_data_set_on_device, contrast_with_a_queue, moved_out_between_steps,
    models_in_sequence)}
