"""Training programs out of public libraries: models as they are published, made small, with random weights and data.

No rule of attribution was made with these in view before they were measured first (docs/agreement.md). Each trains a few steps and says, at a few instants, what it knows to be where.
"""

import copy
import os
import weakref

import torch
import torch.nn.functional as F
from loop import LOOK_AT, STEPS, VOCABULARY, Optimizers, adamw, classify_loss, images, language_loss, tokens, train
from torch import nn

import forks
from holdings import Holdings, tensors_of


# --- transformers


def llama_config(**options):
    import transformers
    shape = {"vocab_size": VOCABULARY, "hidden_size": 512, "intermediate_size": 1408, "num_hidden_layers": 6, "num_attention_heads": 8, "num_key_value_heads": 4}
    return transformers.LlamaConfig(**(shape | options))


def llama():
    import transformers
    model = transformers.LlamaForCausalLM(llama_config()).to("cuda", torch.bfloat16)
    train(model, adamw(model), language_loss, lambda: (tokens(),), clip=1.0)


def llama_checkpointed():
    import transformers
    model = transformers.LlamaForCausalLM(llama_config()).cuda()
    model.gradient_checkpointing_enable()
    model.train()
    kept = {}  # what regions are called with by keyword, and keep: name → weak reference

    def remember(_module, _arguments, options):
        kept.update((name, weakref.ref(tensor)) for name, tensor in tensors_of(options) if tensor.grad_fn is None)

    model.model.layers[0].register_forward_pre_hook(remember, with_kwargs=True)
    truth = Holdings(model, optimizer := adamw(model))
    truth.also_saved = lambda: [tensor for reference in kept.values() if (tensor := reference()) is not None]
    train(model, optimizer, language_loss, lambda: (tokens(),), microbatches=2, truth=truth)


def qwen_moe():
    import transformers
    config = transformers.Qwen3MoeConfig(vocab_size=VOCABULARY, hidden_size=384, intermediate_size=768, moe_intermediate_size=384, num_hidden_layers=4,
                                         num_attention_heads=6, num_key_value_heads=2, head_dim=64, num_experts=8, num_experts_per_tok=2)
    model = transformers.Qwen3MoeForCausalLM(config).cuda()
    train(model, adamw(model), language_loss, lambda: (tokens(),))


def gpt2():
    import transformers
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=VOCABULARY, n_embd=512, n_layer=6, n_head=8)).cuda()
    train(model, adamw(model), language_loss, lambda: (tokens(),), microbatches=2, clip=1.0)


def bert():
    import transformers
    config = transformers.BertConfig(vocab_size=VOCABULARY, hidden_size=512, num_hidden_layers=6, num_attention_heads=8, intermediate_size=2048)
    model = transformers.BertForMaskedLM(config).cuda()

    def loss_of(model, ids, mask):
        with torch.autocast("cuda", torch.bfloat16):
            return model(input_ids=ids, attention_mask=mask, labels=ids).loss

    train(model, adamw(model), loss_of, lambda: (tokens(), torch.ones(4, 256, dtype=torch.long, device="cuda")))


def t5():
    import transformers
    config = transformers.T5Config(vocab_size=VOCABULARY, d_model=512, d_kv=64, d_ff=1024, num_layers=4, num_heads=8, decoder_start_token_id=0)
    model = transformers.T5ForConditionalGeneration(config).cuda()
    optimizer = transformers.Adafactor(model.parameters(), lr=1e-3, relative_step=False, scale_parameter=False)
    train(model, optimizer, lambda model, ids, labels: model(input_ids=ids, labels=labels).loss, lambda: (tokens(), tokens(length=64)))


def clip():
    import transformers
    text = {"vocab_size": VOCABULARY, "hidden_size": 256, "intermediate_size": 1024, "num_hidden_layers": 4, "num_attention_heads": 4, "eos_token_id": 2}
    vision = {"hidden_size": 384, "intermediate_size": 1536, "num_hidden_layers": 4, "num_attention_heads": 6, "image_size": 128, "patch_size": 16}
    model = transformers.CLIPModel(transformers.CLIPConfig(text_config=text, vision_config=vision)).cuda()

    def loss_of(model, ids, x):
        return model(input_ids=ids, pixel_values=x, return_loss=True).loss

    train(model, adamw(model), loss_of, lambda: (tokens(16, 64), images(16)[0]))


def whisper():
    import transformers
    config = transformers.WhisperConfig(vocab_size=VOCABULARY, d_model=384, encoder_layers=4, decoder_layers=4, encoder_attention_heads=6, decoder_attention_heads=6,
                                        encoder_ffn_dim=1536, decoder_ffn_dim=1536, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1)
    model = transformers.WhisperForConditionalGeneration(config).cuda()
    train(model, adamw(model), lambda model, x, labels: model(input_features=x, labels=labels).loss,
          lambda: (torch.randn(2, 80, 3000, device="cuda"), tokens(2, 64)))


class Texts(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        ids = torch.randint(VOCABULARY, (256,), generator=torch.Generator().manual_seed(index))
        return {"input_ids": ids, "labels": ids}


def trainer():
    """Gradient checkpointing, accumulation over two batches, and evaluation after each step."""
    import transformers
    model = transformers.LlamaForCausalLM(llama_config())
    options = transformers.TrainingArguments(
        output_dir=os.environ["LEDGER_DIR"] + "/trainer", per_device_train_batch_size=4, per_device_eval_batch_size=4, gradient_accumulation_steps=2, max_steps=STEPS,
        gradient_checkpointing=True, eval_strategy="steps", eval_steps=2, save_strategy="no", report_to=[], bf16=True, disable_tqdm=True, dataloader_num_workers=0)

    class Look(transformers.TrainerCallback):
        truth = None

        def on_pre_optimizer_step(self, _options, state, _control, **known):
            if Look.truth is None:
                Look.truth = Holdings(known["model"], known["optimizer"])
            if state.global_step == LOOK_AT:
                Look.truth.look("before the optimizer")

        def on_optimizer_step(self, _options, state, _control, **_known):
            if state.global_step == LOOK_AT:
                Look.truth.look("optimizer ends")

    transformers.Trainer(model, options, train_dataset=Texts(), eval_dataset=torch.utils.data.Subset(Texts(), range(8)), callbacks=[Look()]).train()
    Look.truth.write()


def trainer_data_parallel():
    """On two devices in one process."""
    trainer()


def lora():
    import peft
    import transformers
    base = transformers.LlamaForCausalLM(llama_config()).to("cuda", torch.bfloat16)
    model = peft.get_peft_model(base, peft.LoraConfig(r=16, target_modules=["q_proj", "v_proj", "up_proj"]))
    train(model, adamw(model), language_loss, lambda: (tokens(),))


# --- vision


def vit():
    import timm
    model = timm.create_model("vit_small_patch16_224", img_size=128, num_classes=100, drop_path_rate=0.1).cuda()
    average = timm.utils.ModelEmaV3(model)
    truth = Holdings(model, optimizer := adamw(model))
    truth.copies = dict(average.module.named_parameters()) | dict(average.module.named_buffers())
    train(model, optimizer, classify_loss, images, after_step=lambda: average.update(model), truth=truth)


def resnet50():
    import torchvision
    model = torchvision.models.resnet50(num_classes=100).cuda().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)

    def batch():
        x, labels = images()
        return x.contiguous(memory_format=torch.channels_last), labels

    def loss_of(model, x, labels):
        with torch.autocast("cuda", torch.float16):
            return F.cross_entropy(model(x), labels)

    train(model, optimizer, loss_of, batch, scaler=torch.amp.GradScaler("cuda"))


def convnext():
    import timm
    model = timm.create_model("convnext_tiny", num_classes=100).cuda()
    train(model, adamw(model), classify_loss, images)


def efficientnet():
    import timm
    import timm.optim
    model = timm.create_model("efficientnet_b0", num_classes=100).cuda()
    train(model, timm.optim.create_optimizer_v2(model, "rmsproptf", lr=0.01, momentum=0.9), classify_loss, images)


def segmentation():
    import torchvision
    model = torchvision.models.segmentation.deeplabv3_resnet50(weights=None, weights_backbone=None, num_classes=21).cuda()
    train(model, torch.optim.SGD(model.parameters(), lr=0.01), lambda model, x, labels: F.cross_entropy(model(x)["out"], labels),
          lambda: (images(4)[0], torch.randint(21, (4, 128, 128), device="cuda")))


def diffusion():
    import diffusers
    model = diffusers.UNet2DModel(sample_size=32, in_channels=3, out_channels=3, layers_per_block=1, block_out_channels=(64, 128, 256),
                                  down_block_types=("DownBlock2D", "AttnDownBlock2D", "DownBlock2D"), up_block_types=("UpBlock2D", "AttnUpBlock2D", "UpBlock2D")).cuda()
    average = diffusers.training_utils.EMAModel(model.parameters())
    scheduler = diffusers.DDPMScheduler()
    truth = Holdings(model, optimizer := adamw(model))
    truth.copies = {f"average {number}": tensor for number, tensor in enumerate(average.shadow_params)}

    def batch():
        x = torch.randn(8, 3, 32, 32, device="cuda")
        noise, times = torch.randn_like(x), torch.randint(1000, (len(x),), device="cuda")
        return scheduler.add_noise(x, noise, times), noise, times

    def loss_of(model, x, noise, times):
        return F.mse_loss(model(x, times).sample, noise)

    train(model, optimizer, loss_of, batch, after_step=lambda: average.step(model.parameters()), truth=truth)


# --- other shapes of programs


def lstm():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(VOCABULARY, 384)
            self.cells = nn.ModuleList(nn.LSTMCell(384, 384) for _ in range(2))
            self.head = nn.Linear(384, VOCABULARY)

        def forward(self, ids):
            x = self.embedding(ids)
            states = [(torch.zeros(len(ids), 384, device="cuda"),) * 2 for _ in self.cells]
            outputs = []
            for t in range(ids.shape[1]):
                value = x[:, t]
                for number, cell in enumerate(self.cells):
                    states[number] = cell(value, states[number])
                    value = states[number][0]
                outputs.append(value)
            return self.head(torch.stack(outputs, 1))

    model = Model().cuda()
    train(model, torch.optim.Adam(model.parameters()), lambda model, ids: F.cross_entropy(model(ids).flatten(0, 1), ids.flatten()), lambda: (tokens(32, 64),))


def gan():
    def block(inward, outward):
        return [nn.ConvTranspose2d(inward, outward, 4, 2, 1), nn.BatchNorm2d(outward), nn.ReLU(True)]

    generator = nn.Sequential(nn.ConvTranspose2d(100, 512, 4), nn.BatchNorm2d(512), nn.ReLU(True), *block(512, 256), *block(256, 128), *block(128, 64),
                              nn.ConvTranspose2d(64, 3, 4, 2, 1), nn.Tanh()).cuda()
    critic = nn.Sequential(nn.Conv2d(3, 64, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(64, 128, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(128, 256, 4, 2, 1), nn.LeakyReLU(0.2),
                           nn.Conv2d(256, 512, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(512, 1, 4)).cuda()
    of_generator, of_critic = (torch.optim.Adam(each.parameters(), lr=2e-4, betas=(0.5, 0.999)) for each in (generator, critic))

    truth = Holdings(nn.ModuleList([generator, critic]), Optimizers(of_generator, of_critic))
    for step in range(STEPS):
        real, noise = torch.randn(32, 3, 64, 64, device="cuda"), torch.randn(32, 100, 1, 1, device="cuda")
        of_critic.zero_grad()
        made = generator(noise)
        loss = F.softplus(-critic(real)).mean() + F.softplus(critic(made.detach())).mean()
        loss.backward()
        of_critic.step()
        of_generator.zero_grad()
        loss = F.softplus(-critic(made)).mean()
        if step == LOOK_AT:
            truth.look("forward ends", loss=loss, inputs=(real, noise))
        loss.backward()
        of_generator.step()
        if step == LOOK_AT:
            truth.look("optimizer ends", inputs=(real, noise))
    truth.write()


def lightning_module():
    import lightning
    import torchvision

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = torchvision.models.mobilenet_v3_large(num_classes=100)
            self.truth = None

        def training_step(self, batch, _index):
            return F.cross_entropy(self.net(batch[0]), batch[1])

        def validation_step(self, batch, _index):
            self.log("loss", F.cross_entropy(self.net(batch[0]), batch[1]))

        def on_before_optimizer_step(self, optimizer):
            self.truth = self.truth or Holdings(self, getattr(optimizer, "optimizer", optimizer))
            if self.global_step == LOOK_AT:
                self.truth.look("before the optimizer")

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters(), lr=1e-3)

    data = torch.utils.data.TensorDataset(torch.randn(64, 3, 128, 128), torch.randint(100, (64,)))
    loader = torch.utils.data.DataLoader(data, batch_size=16)
    module = Module()
    lightning.Trainer(accelerator="cuda", devices=1, max_steps=STEPS, logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
                      num_sanity_val_steps=1, val_check_interval=2, default_root_dir=os.environ["LEDGER_DIR"]).fit(module, loader, loader)
    module.truth.write()


def accelerate_fsdp2():
    import accelerate
    import transformers
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29571")
    plugin = accelerate.FullyShardedDataParallelPlugin(fsdp_version=2, auto_wrap_policy="transformer_based_wrap", transformer_cls_names_to_wrap=["LlamaDecoderLayer"],
                                                       mixed_precision_policy="bf16")
    accelerator = accelerate.Accelerator(fsdp_plugin=plugin, mixed_precision="bf16")
    model = transformers.LlamaForCausalLM(llama_config())
    model, optimizer = accelerator.prepare(model, torch.optim.AdamW(model.parameters(), lr=1e-4))
    truth = Holdings(model, optimizer.optimizer)
    for step in range(STEPS):
        ids = tokens()
        loss = model(input_ids=ids, labels=ids).loss
        accelerator.backward(loss)
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step == LOOK_AT:
            truth.look("optimizer ends", inputs=[ids])
        optimizer.zero_grad()
    truth.write()
    torch.distributed.destroy_process_group()


def ddp_vit():
    import timm
    forks.join()
    model = timm.create_model("vit_small_patch16_224", img_size=128, num_classes=100).cuda()
    wrapped = nn.parallel.DistributedDataParallel(model, device_ids=[int(os.environ["RANK"])])
    truth = Holdings(wrapped, optimizer := adamw(wrapped))
    train(wrapped, optimizer, classify_loss, images, truth=truth)
    torch.distributed.destroy_process_group()


# --- those that were added when the rules that the ones above taught stood


def swin():
    import timm
    model = timm.create_model("swin_tiny_patch4_window7_224", num_classes=100).cuda()
    train(model, adamw(model, foreach=False), classify_loss, lambda: images(4, 224), microbatches=2)


def linear_probe():
    import timm
    model = timm.create_model("vit_small_patch16_224", img_size=128, num_classes=100).cuda().requires_grad_(False)
    model.head.requires_grad_(True)
    train(model, torch.optim.SGD(model.head.parameters(), lr=0.1, momentum=0.9), classify_loss, images)


def distillation():
    import torchvision
    teacher = torchvision.models.resnet50(num_classes=100).cuda().eval().requires_grad_(False)
    student = torchvision.models.resnet18(num_classes=100).cuda()
    truth = Holdings(student, optimizer := torch.optim.SGD(student.parameters(), lr=0.1, momentum=0.9))
    truth.copies = dict(teacher.named_buffers())
    truth.add_parameters(("teacher." + name, parameter) for name, parameter in teacher.named_parameters())

    def loss_of(model, x, labels):
        with torch.no_grad():
            goal = teacher(x)
        out = model(x)
        return F.cross_entropy(out, labels) + F.kl_div(out.log_softmax(1), goal.softmax(1))

    train(student, optimizer, loss_of, images, truth=truth)


def momentum_encoder():
    """A teacher made from the student, of which every step takes an average (as BYOL and DINO do)."""
    import torchvision
    student = nn.Sequential(torchvision.models.resnet18(num_classes=512), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512)).cuda()
    teacher = copy.deepcopy(student).requires_grad_(False)
    truth = Holdings(student, optimizer := adamw(student))
    truth.copies = dict(teacher.named_parameters()) | dict(teacher.named_buffers())

    def loss_of(model, x, _labels):
        with torch.no_grad():
            goal = teacher(x.flip(-1))
        return -F.cosine_similarity(model(x), goal).mean()

    def average():
        with torch.no_grad():
            for mine, other in zip(teacher.parameters(), student.parameters()):
                mine.lerp_(other, 0.01)

    train(student, optimizer, loss_of, images, after_step=average, truth=truth)


def neox_checkpointed():
    import transformers
    config = transformers.GPTNeoXConfig(vocab_size=VOCABULARY, hidden_size=512, num_hidden_layers=6, num_attention_heads=8, intermediate_size=2048)
    model = transformers.GPTNeoXForCausalLM(config).to("cuda", torch.bfloat16)
    model.gradient_checkpointing_enable({"use_reentrant": True})
    model.train()
    truth = Holdings(model, optimizer := adamw(model))
    truth.knows_recomputed = False  # their graph is out of sight
    for step in range(STEPS):
        ids = tokens()
        language_loss(model, ids).backward()
        if step == LOOK_AT:
            truth.look("backward ends", inputs=[ids])
        optimizer.step()
        optimizer.zero_grad()
    truth.write()


RANKS = {"accelerate_fsdp2": 2, "ddp_vit": 2}
DEVICES = {"trainer_data_parallel": 2}
PROGRAMS = {function.__name__: function for function in (
    llama, llama_checkpointed, qwen_moe, gpt2, bert, t5, clip, whisper, trainer, trainer_data_parallel, lora, vit, resnet50, convnext, efficientnet, segmentation, diffusion, lstm, gan,
    lightning_module, accelerate_fsdp2, ddp_vit, swin, linear_probe, distillation, momentum_encoder, neox_checkpointed)}
