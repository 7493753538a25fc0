"""Training images a second of the reader: one process or, under torchrun, all together.

Run as `tools/train.py` is run; it writes nothing.
"""

import argparse
import time

import torch

from jobs import reader_training
from together import together

WARM_UP, STEPS = 10, 100

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    device = parser.parse_args().device
    with together(device):
        training = reader_training(device)
        for _ in range(WARM_UP):
            training.step()
        start = time.perf_counter()
        for _ in range(STEPS):
            training.step()
        rate = STEPS * training.recipe.batch_size / (time.perf_counter() - start)
        if training.rank == 0:
            each = f"{torch.get_num_threads()} threads each"
            print(f"{rate:.0f} images a second: {training.processes} processes, {each}, {device}")
