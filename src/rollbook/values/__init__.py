"""Values that can be logged or reach a sink, and the conversion of foreign values to plain ones.

    kinds       Histogram, Image, Video: values that are neither numbers nor text
    known       these by name: how each is logged, read back and passed on; a new kind is a class and one line there
    scalars     a value as a number; the leaves of nested mappings
    arrays      the numpy array of a tensor or array of any framework
    devices     values that are still on a device
    walk        one pass over a nested foreign value, part by part
    describe    summaries of numbers; content: any item as bytes and a fingerprint
    arrow       Arrow arrays from buffers; raw_array: an array as stored in a frame
    spaces      the spaces of an environment as text
    spool       images and videos before and after encoding

Frameworks are recognised by the attributes of their values, never by importing them. The training process loads this;
numpy is imported only to read an array.
"""

from __future__ import annotations

from rollbook.values.kinds import MAX_RAW_ARRAY, Histogram, Image, Value, Video
from rollbook.values.scalars import flatten, is_missing, key_of, scalar_of

__all__ = ["MAX_RAW_ARRAY", "Histogram", "Image", "Value", "Video", "flatten", "is_missing", "key_of", "scalar_of"]
