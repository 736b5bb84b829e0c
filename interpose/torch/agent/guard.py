"""Keeps the agent's failures away from the program, and what it does with tensors away from the program's function modes."""

import functools

import torch

# A context: what is done inside is not passed to modes and subclasses that the program has in front of torch's functions.
unseen = torch._C.DisableTorchFunction


def describe(error):
    return f"failed: {type(error).__name__}: {error}"[:300]


def attempt(native, part, function):
    """Calls it; a failure costs this part alone, and is written to the ledger."""
    try:
        with unseen():
            function()
    except Exception as error:
        native.setting(f"layer.agent.{part}", describe(error))


def guarded(native, part):
    """Decorates what the framework calls: the first failure is written to the ledger, and from then on nothing is done.

    Nor is it while the program's compiler traces the call, as it does the hooks of an optimizer whose step is compiled: the
    graph would be another one, or none at all.
    """
    is_tracing = torch.compiler.is_dynamo_compiling

    def decorate(function):
        broken = False

        @functools.wraps(function)
        def call(*arguments):
            nonlocal broken
            if is_tracing() or broken:
                return
            try:
                with unseen():
                    function(*arguments)
            except Exception as error:
                broken = True
                native.setting(f"layer.agent.{part}", describe(error))

        return call

    return decorate
