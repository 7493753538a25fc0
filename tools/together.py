"""Processes that torchrun starts to train together, one for each core or GPU."""

import os
from contextlib import contextmanager

import torch


@contextmanager
def together(device):
    """Meet the other processes, if there are any. On "cuda" each of a machine has its own GPU."""
    if "RANK" not in os.environ:  # which torchrun sets
        yield
        return
    if device == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    torch.distributed.init_process_group()
    try:
        yield
    finally:
        torch.distributed.destroy_process_group()
