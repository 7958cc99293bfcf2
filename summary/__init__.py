"""`jt.summary`: what a program says of itself while it runs, for TensorBoard to show.

    with jt.summary.Writer("runs/first"):
        for step in range(1000):
            train(step)  # calls jt.summary.scalar("loss", loss, step), compiled or not

A summary goes to the writer whose `with` block the program is in when it runs, or to `writer=`; without
either it is dropped, so that a function with summaries runs anywhere. In compiled code it is an effect:
it happens each time that the program comes there, in program order, in loops and branches and under
`jt.grad`. Each costs a call of Python, so in a hot loop write every hundredth.

Files are TensorBoard's own, written by its package on a thread of its own:
`pip install "jitney[summary]"`. This room uses public names only.
"""

from .embeddings import embedding as embedding
from .graphs import graph as graph
from .kinds import add_activation_summary as add_activation_summary
from .kinds import add_gradient_summary as add_gradient_summary
from .kinds import audio as audio
from .kinds import figure as figure
from .kinds import histogram as histogram
from .kinds import hparams as hparams
from .kinds import image as image
from .kinds import scalar as scalar
from .kinds import text as text
from .writer import Writer as Writer

__all__ = [
    "Writer",
    "add_activation_summary",
    "add_gradient_summary",
    "audio",
    "embedding",
    "figure",
    "graph",
    "histogram",
    "hparams",
    "image",
    "scalar",
    "text",
]
