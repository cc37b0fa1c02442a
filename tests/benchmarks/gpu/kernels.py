"""What the device reaches at best, and the exact GRU layer beside torch's."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import cast

import torch
from torch import Tensor, nn

from nmt.compute.precision import Mixed
from nmt.layers.cells import GRU
from nmt.layers.initialize import initialize

from .figures import Setting


@contextmanager
def tf32(allowed: bool) -> Iterator[None]:
    """Context that allows or forbids TF32 in products and in cuDNN, where torch allows it by default."""
    before = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = allowed
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = before


def peak(setting: Setting) -> None:
    """Square products in bf16, in fp32 as torch computes it by default, and with TF32; copies in memory."""
    size = 512 if setting.small else 8192
    for name, kind, allowed in (
        ("peak bf16", torch.bfloat16, False),
        ("peak fp32", torch.float32, False),
        ("peak tf32", torch.float32, True),
    ):
        a, b = (torch.randn(size, size, device=setting.device).to(kind) for _ in range(2))
        out = torch.empty_like(a)
        with tf32(allowed):
            seconds = setting.median(lambda a=a, b=b, out=out: torch.mm(a, b, out=out))  # type: ignore[misc]
        setting.figure(name, 2 * size**3 / seconds / 1e12, "TFLOP/s", f"{size}^3")
    source = torch.randn(1 << (20 if setting.small else 30), device=setting.device)
    target = torch.empty_like(source)
    seconds = setting.median(lambda: target.copy_(source))
    moved = 2 * source.numel() * 4 / 1e9
    setting.figure("peak copy", moved / seconds, "GB/s", "read and written, on the device")
    small = torch.randn(16, device=setting.device)

    def launches() -> None:
        for _ in range(1000):
            small.add_(1)

    setting.figure("peak launch", 1000 * setting.median(launches), "us", "a small kernel, one of 1,000")


def in_graph(call: Callable[[], object]) -> Callable[[], None]:
    """The same as a CUDA graph, as training records it."""
    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        call()
    torch.cuda.current_stream().wait_stream(stream)
    with torch.cuda.graph(graph, stream=stream):
        call()
    return graph.replay


def gru(setting: Setting) -> None:
    """The exact GRU layer, forward and backward, sentences of full length, ours as a CUDA graph, against
    torch.nn.GRU."""
    T, B, H = (6, 8, 32) if setting.small else (50, 256, 1000)
    device = setting.device
    torch.manual_seed(1)
    layer = GRU(H, H, bias=True)
    initialize(layer, "uniform", 0.05)
    layer = layer.to(device)
    theirs = nn.GRU(H, H).to(device)
    rounded = nn.GRU(H, H).to(device).bfloat16()
    x = torch.randn(T, B, H, device=device)
    grad = torch.randn(T, B, H, device=device) / B
    start = torch.randn(B, H, device=device) / 10

    def ours(mode: Callable[[], AbstractContextManager[object]]) -> Tensor:
        inputs = x.flatten(0, 1).detach().requires_grad_()
        layer.zero_grad(set_to_none=False)
        with mode():
            states = layer.unroll(inputs, [B] * T, start)
            torch.autograd.backward(states, grad.flatten(0, 1))
        return states

    def torchs(module: nn.GRU) -> Tensor:
        kind = cast(Tensor, module.weight_hh_l0).dtype
        inputs = x.to(kind).requires_grad_()
        module.zero_grad(set_to_none=True)
        states: Tensor = module(inputs, start[None].to(kind))[0]
        torch.autograd.backward(states, grad.to(kind))
        return states

    flops = 3 * 2 * T * B * (3 * H * H + 3 * H * H)
    times: dict[str, float] = {}
    for name, allowed, call in (
        ("ours fp32", False, lambda: ours(nullcontext)),
        ("cuDNN fp32", False, lambda: torchs(theirs)),
        ("ours tf32", True, lambda: ours(nullcontext)),
        ("cuDNN tf32", True, lambda: torchs(theirs)),
        ("ours Mixed", False, lambda: ours(Mixed)),
        ("cuDNN bf16", False, lambda: torchs(rounded)),
    ):
        with setting.attempt(f"gru {name}", 2 * setting.seconds + 10), tf32(allowed):
            recorded = name.startswith("ours") and setting.on_gpu
            times[name] = setting.median(in_graph(call) if recorded else call)
            what = f"T {T}, B {B}, H {H}; {flops / times[name] / 1e12:.2f} TFLOP/s"
            setting.figure(f"gru {name}", 1000 * times[name], "ms", what)
    for mine, other in (("fp32", "fp32"), ("tf32", "tf32"), ("Mixed", "bf16")):
        pair = times.get(f"ours {mine}"), times.get(f"cuDNN {other}")
        if pair[0] and pair[1]:
            setting.figure(f"gru time ours {mine} / cuDNN {other}", pair[0] / pair[1], "x")
    if setting.on_gpu:
        with setting.attempt("gru rounding", 10), torch.no_grad():
            exact = layer.double().cpu().unroll(x.flatten(0, 1).double().cpu(), [B] * T, start.double().cpu())
            layer.float().to(device)
            for name, mode in (("fp32", nullcontext), ("Mixed", Mixed)):
                with tf32(False), mode():
                    states = layer.unroll(x.flatten(0, 1), [B] * T, start)
                error = float((states.double().cpu() - exact).abs().max())
                setting.figure(f"gru largest error {name} x 1e6", 1e6 * error, "", "against fp64 on the CPU")
