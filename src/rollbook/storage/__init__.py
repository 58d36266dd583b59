"""The files of a run folder: names of files, parts, columns, encodings, pyramids."""

from __future__ import annotations

from rollbook.system.lazy import attach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.storage.damage import join_damage as join_damage
    from rollbook.storage.damage import losses as losses
    from rollbook.storage.damage import note_files as note_files
    from rollbook.storage.damage import note_missing as note_missing
    from rollbook.storage.durable import settled as settled
    from rollbook.storage.encode import write_part as write_part
    from rollbook.storage.footers import may_be_asked as may_be_asked
    from rollbook.storage.history import IDENTITY as IDENTITY
    from rollbook.storage.history import CheckpointRow as CheckpointRow
    from rollbook.storage.history import History as History
    from rollbook.storage.history import identity as identity
    from rollbook.storage.lane_numbers import missing_numbers as missing_numbers
    from rollbook.storage.live import Moved as Moved
    from rollbook.storage.parts import Part as Part
    from rollbook.storage.parts import belonging as belonging
    from rollbook.storage.pieces import BadPiece as BadPiece
    from rollbook.storage.pieces import Lines as Lines
    from rollbook.storage.pieces import Piece as Piece
    from rollbook.storage.pieces import Pieces as Pieces
    from rollbook.storage.pieces import RunFiles as RunFiles
    from rollbook.storage.pyramid import Pyramid as Pyramid
    from rollbook.storage.pyramid import bucket_rows as bucket_rows
    from rollbook.storage.salvage import rescue as rescue
    from rollbook.storage.sealed_rows import SealedRows as SealedRows
    from rollbook.storage.sealed_so_far import SealedSoFar as SealedSoFar
    from rollbook.storage.sealed_so_far import missing_parts as missing_parts
    from rollbook.storage.sealing.folder import seal as seal
    from rollbook.storage.sealing.helpers import most_processes as most_processes
    from rollbook.storage.sealing.merge import merge as merge
    from rollbook.storage.sealing.one_pass import keep_aside as keep_aside
    from rollbook.storage.sealing.trimming import Trimming as Trimming
    from rollbook.storage.sealing.writers_file import write_writers_file as write_writers_file
    from rollbook.storage.tabulate import damage_of as damage_of

__getattr__, __dir__ = attach(
    __name__,
    {
        "rollbook.storage.damage": ("join_damage", "losses", "note_files", "note_missing"),
        "rollbook.storage.durable": ("settled",),
        "rollbook.storage.encode": ("write_part",),
        "rollbook.storage.footers": ("may_be_asked",),
        "rollbook.storage.history": ("CheckpointRow", "History", "IDENTITY", "identity"),
        "rollbook.storage.lane_numbers": ("missing_numbers",),
        "rollbook.storage.live": ("Moved",),
        "rollbook.storage.parts": ("Part", "belonging"),
        "rollbook.storage.pieces": ("BadPiece", "Lines", "Piece", "Pieces", "RunFiles"),
        "rollbook.storage.pyramid": ("Pyramid", "bucket_rows"),
        "rollbook.storage.salvage": ("rescue",),
        "rollbook.storage.sealed_rows": ("SealedRows",),
        "rollbook.storage.sealed_so_far": ("SealedSoFar", "missing_parts"),
        "rollbook.storage.sealing.folder": ("seal",),
        "rollbook.storage.sealing.helpers": ("most_processes",),
        "rollbook.storage.sealing.merge": ("merge",),
        "rollbook.storage.sealing.one_pass": ("keep_aside",),
        "rollbook.storage.sealing.trimming": ("Trimming",),
        "rollbook.storage.sealing.writers_file": ("write_writers_file",),
        "rollbook.storage.tabulate": ("damage_of",),
    },
)
