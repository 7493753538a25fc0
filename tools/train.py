"""`make train`: trains what later lessons load, and writes it to data/*.safetensors.

    make train
    make train WHAT=reader DEVICE=cuda
    make train WHAT=reader OVERWRITE=1
    torchrun --nproc-per-node 2 tools/train.py reader

What its recipe has made already is not trained again. A run that was stopped goes on from its
checkpoint; with the same code, machine and number of processes to the same weights, bit for bit.
Under torchrun, processes share each batch.
"""

import argparse
import json
import sys
from statistics import fmean

import torch
from rich.progress import Progress
from safetensors.torch import save

import checkpoints
import weights
from files import write_atomically
from jobs import JOBS
from made import made
from reader import place
from together import together

CURVE = 20  # steps over which a stored loss is the mean


def is_made(path, training):
    """Whether the file holds such a model, trained by this recipe."""
    if not path.exists():
        return False
    tensors, facts = weights.read(path)
    shapes = {key: value.shape for key, value in training.model.state_dict().items()}
    same_model = shapes == {key: tensor.shape for key, tensor in tensors.items()}
    return same_model and facts["recipe"] == training.recipe._asdict()


def refuse_to_lose(name, path, score, overwrite):
    """Raise ValueError if the file holds a better model than one of this score."""
    if not path.exists() or overwrite:
        return
    stored = weights.read(path)[1]["validation"]
    if stored > score:
        raise ValueError(
            f"{path} holds a better model, {stored:.2f} % on the validation data against "
            f"{score:.2f} %, and was kept. To replace it: `make train WHAT={name} OVERWRITE=1`"
        )


def finish(name, training, models, seconds, losses, overwrite):
    """Choose among the models by validation; test; write the file."""
    job, path = JOBS[name], weights.FOLDER / f"{name}.safetensors"
    scores = {which: job.score(model) for which, model in models.items()}
    which = max(scores, key=scores.get)
    refuse_to_lose(name, path, scores[which], overwrite)
    facts = {
        "recipe": training.recipe._asdict(),
        "weights": which,
        "validation": scores[which],
        "test": job.test(models[which]),
        "losses": [round(fmean(losses[i : i + CURVE]), 4) for i in range(0, len(losses), CURVE)],
        **made(seconds),
    }
    tensors = {key: value.cpu() for key, value in models[which].state_dict().items()}
    write_atomically(path, save(tensors, {"made": json.dumps(facts)}))
    checkpoints.path_of(name).unlink(missing_ok=True)
    print(f"wrote {path.name}: {which} weights, {scores[which]:.2f} % on the validation data")
    for what, found in facts["test"].items():
        low, high = found["interval"]
        print(f"  {found['exact']:.2f} % [{low:.2f}, {high:.2f}] of {what}")


def train(name, device, overwrite, progress):
    training = JOBS[name].training(device)
    first = place()[0] == 0
    if not overwrite and is_made(weights.FOLDER / f"{name}.safetensors", training):
        if first:
            print(f"{name} is there. To train it again: `make train WHAT={name} OVERWRITE=1`")
        return
    models, seconds, losses = JOBS[name].run(name, training, progress)
    if first:
        finish(name, training, models, seconds, losses, overwrite)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help=f"of {', '.join(JOBS)}; all if none is named")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--overwrite", action="store_true", help="replace also a better file")
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.names if name not in JOBS]:
        parser.error(f"no training {unknown[0]!r}; there are {', '.join(JOBS)}")
    if arguments.device == "cuda" and not torch.cuda.is_available():
        parser.error("--device cuda: PyTorch finds no such device here; leave it out for the CPU")
    torch.set_num_threads(1)
    try:
        with together(arguments.device), Progress(disable=place()[0] > 0) as progress:
            for name in arguments.names or JOBS:
                train(name, arguments.device, arguments.overwrite, progress)
    except KeyboardInterrupt:
        sys.exit(
            f"Stopped. The same command goes on from the last checkpoint in "
            f"{checkpoints.FOLDER}, if there is one."
        )
    except ValueError as error:
        sys.exit(str(error))
