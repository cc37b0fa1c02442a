"""Forward and backward passes of the layers of nmt/layers/variable.py over all steps; the gradient of each
matrix is one product after the loop.

E input size, H hidden units, B sentences, N tokens, R rows of a step. h̄ and x̄ are masked vectors.
"""

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from nmt.compute.autograd import Context
from nmt.compute.mixed import in_mode
from nmt.layers.computation import mask_of

Gradients = tuple[Tensor | None, ...]


class Masks:
    """m and the masks of all steps, and the masked vectors: what both cells do before their products."""

    def __init__(self, x: Tensor, projected: Tensor, u: Tensor, sharpness: Tensor) -> None:
        """Inputs (N, E), v x + b (N,)"""
        N, H = len(x), len(u)
        self.x, self.projected, self.u, self.sharpness = x, projected, u, sharpness
        self.m, self.state_mask = x.new_empty(N), x.new_empty(N, H)
        self.input_mask = self.state_mask if x.shape[1] == H else torch.empty_like(x)
        self.previous, self.h, self.inputs = x.new_empty(N, H), x.new_empty(N, H), torch.empty_like(x)

    def step(self, now: slice, h: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The states before a step, (R, H) -> mask (R, H), h̄ (R, H), x̄ (R, E)"""
        self.previous[now] = h
        m = torch.add(self.projected[now], torch.mv(h, self.u), out=self.m[now]).sigmoid_()
        self.state_mask[now] = mask_of(m, h.shape[1], self.sharpness)
        if self.input_mask is not self.state_mask:
            self.input_mask[now] = mask_of(m, self.x.shape[1], self.sharpness)
        e = self.state_mask[now]
        return (
            e,
            torch.mul(e, h, out=self.h[now]),
            torch.mul(self.input_mask[now], self.x[now], out=self.inputs[now]),
        )

    @property
    def saved(self) -> tuple[Tensor, ...]:
        """For `MaskGradients`."""
        return (
            self.x, self.u, self.sharpness, self.m, self.state_mask, self.input_mask, self.previous, self.h,
            self.inputs,
        )  # fmt: skip


class MaskGradients:
    """The way back through the masks to inputs, states and scheduler."""

    def __init__(self, saved: tuple[Tensor, ...], share_grad: Tensor | None) -> None:
        """`share_grad`: the gradient of m, (N,)"""
        (self.x, self.u, self.sharpness, self.m, self.state_mask, self.input_mask, self.previous, self.h,
         self.inputs) = saved  # fmt: skip
        self.share_grad = share_grad
        self.x_grad, self.sum_grad = torch.empty_like(self.x), torch.empty_like(self.m)

    def step(self, now: slice, dh: Tensor, de: Tensor, h_grad: Tensor, x_grad: Tensor) -> Tensor:
        """The gradients of a step in h directly and in the mask, (R, H) each, and in h̄ and x̄ -> in the
        states before it, (R, H)"""
        H, E = self.h.shape[1], self.x.shape[1]
        e, f, m = self.state_mask[now], self.input_mask[now], self.m[now]
        de = torch.addcmul(de, h_grad, self.previous[now])
        torch.mul(x_grad, f, out=self.x_grad[now])
        slope = H * (de * e * (1 - e)).sum(1) + E * (x_grad * self.x[now] * f * (1 - f)).sum(1)
        dm = self.sharpness * slope  # a mask of 0 or 1 has no slope, wherever the threshold set it so
        if self.share_grad is not None:
            dm = dm + self.share_grad[now]
        torch.mul(dm, m * (1 - m), out=self.sum_grad[now])
        return torch.addcmul(dh, h_grad, e).addr_(self.sum_grad[now], self.u)

    def of_scheduler(self) -> Tensor:
        """The gradient of u: (H,)"""
        return torch.mv(self.previous.t(), self.sum_grad)


class VCRNNFunction(torch.autograd.Function):
    """h' = h + e ⊙ (σ(U h̄ + V x̄ + b) - h)"""

    @staticmethod
    def forward(
        ctx: Context, x: Tensor, projected: Tensor, base: Tensor, start: Tensor, U: Tensor, V: Tensor,
        u: Tensor, sharpness: Tensor, sizes: list[int],
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        """x (N, E), v x + b (N,), biases and contexts (N, H), start (B, H) -> states (N, H), m (N,)"""
        masks = Masks(x, projected, u, sharpness)
        new, states = torch.empty_like(masks.h), torch.empty_like(masks.h)
        h, end = start, 0
        for rows in sizes:
            now = slice(end, end + rows)
            h = h[:rows]
            e, masked, inputs = masks.step(now, h)
            s = torch.addmm(base[now], masked, U.t(), out=new[now]).addmm_(inputs, V.t()).sigmoid_()
            h = torch.lerp(h, s, e, out=states[now])
            end += rows
        ctx.save_for_backward(U, V, new, *masks.saved)
        ctx.sizes = sizes
        ctx.set_materialize_grads(False)
        return states, masks.m

    @staticmethod
    @once_differentiable
    @in_mode
    def backward(ctx: Context, grad: Tensor | None, share_grad: Tensor | None) -> Gradients:
        U, V, new, *saved = ctx.saved_tensors
        masks = MaskGradients(tuple(saved), share_grad)
        grad = torch.zeros_like(new) if grad is None else grad
        da, dh, end = torch.empty_like(new), new.new_zeros(0, new.shape[1]), len(new)
        for rows in reversed(ctx.sizes):
            now = slice(end - rows, end)
            d = grad[now].clone()
            d[: len(dh)] += dh
            e, s, h = masks.state_mask[now], new[now], masks.previous[now]
            torch.mul(d * e, s * (1 - s), out=da[now])
            dh = masks.step(now, d * (1 - e), d * (s - h), da[now] @ U, da[now] @ V)
            end -= rows
        dU, dV = da.t() @ masks.h, da.t() @ masks.inputs
        return masks.x_grad, masks.sum_grad, da, dh, dU, dV, masks.of_scheduler(), None, None


class VCGRUFunction(torch.autograd.Function):
    """z, r = σ(U_zr h̄ + V_zr x̄ + b);  h̃ = tanh(U (r ⊙ h̄) + V x̄ + b);  h' = h + e ⊙ z ⊙ (h̃ - h)"""

    @staticmethod
    def forward(
        ctx: Context, x: Tensor, projected: Tensor, base: Tensor, start: Tensor, U: Tensor, V: Tensor,
        u: Tensor, sharpness: Tensor, sizes: list[int],
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        """x (N, E), v x + b (N,), biases and contexts (N, 3H), start (B, H) -> states (N, H), m (N,)"""
        N, H = len(x), start.shape[1]
        masks = Masks(x, projected, u, sharpness)
        gates, reset, states = x.new_empty(N, 3 * H), torch.empty_like(masks.h), torch.empty_like(masks.h)
        h, end = start, 0
        for rows in sizes:
            now = slice(end, end + rows)
            h = h[:rows]
            e, masked, inputs = masks.step(now, h)
            a = torch.addmm(base[now], inputs, V.t(), out=gates[now])
            z, r = a[:, : 2 * H].addmm_(masked, U[: 2 * H].t()).sigmoid_().chunk(2, 1)
            rh = torch.mul(r, masked, out=reset[now])
            c = a[:, 2 * H :].addmm_(rh, U[2 * H :].t()).tanh_()
            h = torch.lerp(h, c, e * z, out=states[now])
            end += rows
        ctx.save_for_backward(U, V, gates, reset, *masks.saved)
        ctx.sizes = sizes
        ctx.set_materialize_grads(False)
        return states, masks.m

    @staticmethod
    @once_differentiable
    @in_mode
    def backward(ctx: Context, grad: Tensor | None, share_grad: Tensor | None) -> Gradients:
        U, V, gates, reset, *saved = ctx.saved_tensors
        masks, H = MaskGradients(tuple(saved), share_grad), reset.shape[1]
        grad = torch.zeros_like(reset) if grad is None else grad
        da, dh, end = torch.empty_like(gates), reset.new_zeros(0, H), len(reset)
        for rows in reversed(ctx.sizes):
            now = slice(end - rows, end)
            d = grad[now].clone()
            d[: len(dh)] += dh
            z, r, c = gates[now].chunk(3, 1)
            dz, dr, dc = da[now].chunk(3, 1)
            e, h = masks.state_mask[now], masks.previous[now]
            through = d * (c - h)
            torch.mul(through * e, z * (1 - z), out=dz)
            torch.mul(d * e * z, 1 - c * c, out=dc)
            drh = dc @ U[2 * H :]
            torch.mul(drh * masks.h[now], r * (1 - r), out=dr)
            masked = torch.addmm(drh * r, da[now, : 2 * H], U[: 2 * H])
            dh = masks.step(now, d * (1 - e * z), through * z, masked, da[now] @ V)
            end -= rows
        dU = torch.cat([da[:, : 2 * H].t() @ masks.h, da[:, 2 * H :].t() @ reset])
        dV = da.t() @ masks.inputs
        return masks.x_grad, masks.sum_grad, da, dh, dU, dV, masks.of_scheduler(), None, None
