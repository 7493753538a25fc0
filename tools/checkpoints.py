"""Training step by step, with checkpoints in _build/train/ from which a stopped run goes on."""

import io
import time

import torch

from files import write_atomically
from lessons import BUILD
from reader import restore, snapshot

FOLDER = BUILD / "train"
EVERY = 500  # steps from one checkpoint to the next


def path_of(name):
    return FOLDER / f"{name}.pt"


def read(checkpoint, recipe):
    """The state in a checkpoint, None if there is none.

    Raises ValueError for a checkpoint that cannot be read or is of another recipe.
    """
    if not checkpoint.exists():
        return None
    try:
        state = torch.load(checkpoint, weights_only=True, map_location="cpu")
        stored = state["recipe"]
    except Exception as error:  # torch.load raises many kinds, depending on where the damage is
        pickled = "weights_only" in str(error)  # which it advises to drop
        reason = "it holds more than tensors and numbers" if pickled else error
        raise ValueError(
            f"{checkpoint} cannot be read: {reason}. Remove it to begin anew."
        ) from error
    if stored != recipe._asdict():
        raise ValueError(
            f"{checkpoint} is of another recipe, {stored}. Go back to that, or remove it to begin "
            "anew."
        )
    return state


def resume(training, checkpoint):
    """Put the run where its checkpoint is; return the seconds that it took, and its losses.

    The first process reads the checkpoint for all. Raises ValueError for a checkpoint that cannot
    be read, or is of another recipe or model.
    """
    state = read(checkpoint, training.recipe) if training.rank == 0 else None
    if training.processes > 1:
        shared = [state]
        torch.distributed.broadcast_object_list(shared)
        state = shared[0]
    if state is None:
        return 0.0, []
    try:
        restore(training, state)
    except RuntimeError as error:
        raise ValueError(
            f"{checkpoint} is of another model. Remove it to begin anew. {error}"
        ) from error
    return state["seconds"], state["losses"]


def save(training, checkpoint, seconds, losses):
    content = io.BytesIO()
    facts = {"recipe": training.recipe._asdict(), "seconds": seconds, "losses": losses}
    torch.save({**facts, **snapshot(training)}, content)
    write_atomically(checkpoint, content.getvalue())


def by_steps(name, training, progress):
    """Train to the end of the recipe, from the checkpoint if there is one.

    Returns the models to choose from, the seconds that it took, and the loss of each step.
    """
    checkpoint, steps = path_of(name), training.recipe.steps
    seconds, losses = resume(training, checkpoint)
    start = time.monotonic() - seconds
    line = progress.add_task(name, total=steps, completed=training.done)
    while training.done < steps:
        losses.append(training.step())
        progress.update(line, advance=1, description=f"{name}  loss {losses[-1]:.3f}")
        if training.rank == 0 and (training.done % EVERY == 0 or training.done == steps):
            save(training, checkpoint, time.monotonic() - start, losses)
    models = {"last": training.model, "average": training.average.module}
    return models, time.monotonic() - start, losses
