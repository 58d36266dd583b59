"""What can be logged, what a sink can receive, and the way from foreign values to plain ones.

    kinds       Histogram, Image, Video: what is neither a number nor text
    known       those by name: how each is logged, read back and handed on; a new kind is a class and one line there
    scalars     the number that a value stands for; the leaves of nested mappings
    arrays      the numpy array of a tensor or array of any framework
    devices     values that still lie on a device
    walk        one pass over a nested foreign value, part by part

Frameworks are recognised by what their values offer, never by importing them. The training process loads this: numpy
is imported where there is an array to be read, and nowhere else.
"""

from __future__ import annotations

from rollbook.ground.values.kinds import MAX_RAW_ARRAY, Histogram, Image, Value, Video
from rollbook.ground.values.scalars import flatten, scalar_of

__all__ = ["MAX_RAW_ARRAY", "Histogram", "Image", "Value", "Video", "flatten", "scalar_of"]
