"""Questions about one run: each is one struct, its answer another, one function answers it, and one makes its words.

`asked.py` has the structs, `source.py` what they are read from: the files, or what a server keeps of them.
"""

from __future__ import annotations

from rollbook.system.lazy import attach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.book.questions.asked import ONE_RUN as ONE_RUN
    from rollbook.book.questions.asked import AboutRollouts as AboutRollouts
    from rollbook.book.questions.asked import Cause as Cause
    from rollbook.book.questions.asked import Checkpoints as Checkpoints
    from rollbook.book.questions.asked import Episodes as Episodes
    from rollbook.book.questions.asked import Log as Log
    from rollbook.book.questions.asked import MediaQuestion as MediaQuestion
    from rollbook.book.questions.asked import Novelty as Novelty
    from rollbook.book.questions.asked import Prompts as Prompts
    from rollbook.book.questions.asked import RolloutAnswer as RolloutAnswer
    from rollbook.book.questions.asked import RolloutCurves as RolloutCurves
    from rollbook.book.questions.asked import Rollouts as Rollouts
    from rollbook.book.questions.asked import Rows as Rows
    from rollbook.book.questions.asked import Samples as Samples
    from rollbook.book.questions.asked import Stages as Stages
    from rollbook.book.questions.asked import Text as Text
    from rollbook.book.questions.asked import Unused as Unused
    from rollbook.book.questions.asked import Window as Window
    from rollbook.book.questions.cause import Surroundings as Surroundings
    from rollbook.book.questions.cause import around as around
    from rollbook.book.questions.cause import next_row as next_row
    from rollbook.book.questions.checkpoints import chosen_checkpoints as chosen_checkpoints
    from rollbook.book.questions.checkpoints import saved_checkpoints as saved_checkpoints
    from rollbook.book.questions.logs import LogFile as LogFile
    from rollbook.book.questions.logs import LogLine as LogLine
    from rollbook.book.questions.logs import LogPart as LogPart
    from rollbook.book.questions.logs import asked_log as asked_log
    from rollbook.book.questions.logs import end_of_lines as end_of_lines
    from rollbook.book.questions.logs import lines_from as lines_from
    from rollbook.book.questions.logs import lines_near as lines_near
    from rollbook.book.questions.logs import log_files as log_files
    from rollbook.book.questions.logs import log_named as log_named
    from rollbook.book.questions.logs import part_of_log as part_of_log
    from rollbook.book.questions.novelty import NoveltyPage as NoveltyPage
    from rollbook.book.questions.novelty import counted_new as counted_new
    from rollbook.book.questions.overview import OURS as OURS
    from rollbook.book.questions.overview import STATES as STATES
    from rollbook.book.questions.overview import Overview as Overview
    from rollbook.book.questions.overview import remarks_of as remarks_of
    from rollbook.book.questions.positions import OUTCOMES as OUTCOMES
    from rollbook.book.questions.positions import Near as Near
    from rollbook.book.questions.positions import axis_values as axis_values
    from rollbook.book.questions.positions import cells_of as cells_of
    from rollbook.book.questions.positions import check_range as check_range
    from rollbook.book.questions.positions import clocks_of as clocks_of
    from rollbook.book.questions.positions import in_seconds as in_seconds
    from rollbook.book.questions.positions import in_time as in_time
    from rollbook.book.questions.positions import numbers as numbers
    from rollbook.book.questions.positions import outcomes as outcomes
    from rollbook.book.questions.positions import position_in_sql as position_in_sql
    from rollbook.book.questions.positions import row_id as row_id
    from rollbook.book.questions.positions import seconds_column as seconds_column
    from rollbook.book.questions.positions import usual_axis_of as usual_axis_of
    from rollbook.book.questions.positions import with_outcome as with_outcome
    from rollbook.book.questions.prompts import PromptPage as PromptPage
    from rollbook.book.questions.prompts import axis_in as axis_in
    from rollbook.book.questions.prompts import chosen_prompts as chosen_prompts
    from rollbook.book.questions.rollout_answers import OTHER_TABLES as OTHER_TABLES
    from rollbook.book.questions.rollout_answers import ROLLOUTS as ROLLOUTS
    from rollbook.book.questions.rollout_answers import answer_in as answer_in
    from rollbook.book.questions.rollout_answers import answered as answered
    from rollbook.book.questions.rollout_answers import see_now as see_now
    from rollbook.book.questions.rollout_curves import chosen_curves as chosen_curves
    from rollbook.book.questions.rollout_curves import curves_in as curves_in
    from rollbook.book.questions.rollouts import GROUP_COLUMNS as GROUP_COLUMNS
    from rollbook.book.questions.rollouts import RolloutPage as RolloutPage
    from rollbook.book.questions.rollouts import chosen_rollouts as chosen_rollouts
    from rollbook.book.questions.rollouts import listed as listed
    from rollbook.book.questions.rollouts import see_rollouts as see_rollouts
    from rollbook.book.questions.rows_of_tables import MADE as MADE
    from rollbook.book.questions.rows_of_tables import chosen_rows as chosen_rows
    from rollbook.book.questions.rows_of_tables import see_episodes as see_episodes
    from rollbook.book.questions.rows_of_tables import see_samples as see_samples
    from rollbook.book.questions.source import OVERVIEW as OVERVIEW
    from rollbook.book.questions.source import Files as Files
    from rollbook.book.questions.source import Queries as Queries
    from rollbook.book.questions.source import Source as Source
    from rollbook.book.questions.source import kept as kept
    from rollbook.book.questions.sql import VIEWS_OF_SQL as VIEWS_OF_SQL
    from rollbook.book.questions.sql import known_tables as known_tables
    from rollbook.book.questions.sql import see_views as see_views
    from rollbook.book.questions.sql import tables_for as tables_for
    from rollbook.book.questions.stages import SECONDS as SECONDS
    from rollbook.book.questions.stages import Over as Over
    from rollbook.book.questions.stages import Stage as Stage
    from rollbook.book.questions.stages import StagesPage as StagesPage
    from rollbook.book.questions.stages import chosen_stages as chosen_stages
    from rollbook.book.questions.stages import over as over
    from rollbook.book.questions.unused import UnusedPage as UnusedPage
    from rollbook.book.questions.unused import groups_unused as groups_unused
    from rollbook.book.questions.unused import reward_column as reward_column
    from rollbook.book.questions.windows import Page as Page
    from rollbook.book.questions.windows import words_of as words_of
    from rollbook.book.sql import mistake_in_words as mistake_in_words

__getattr__, __dir__ = attach(
    __name__,
    {
        "rollbook.book.questions.asked": (
            "ONE_RUN",
            "AboutRollouts",
            "Cause",
            "Checkpoints",
            "Episodes",
            "Log",
            "MediaQuestion",
            "Novelty",
            "Prompts",
            "RolloutAnswer",
            "RolloutCurves",
            "Rollouts",
            "Rows",
            "Samples",
            "Stages",
            "Text",
            "Unused",
            "Window",
        ),
        "rollbook.book.questions.novelty": ("NoveltyPage", "counted_new"),
        "rollbook.book.questions.unused": ("UnusedPage", "groups_unused", "reward_column"),
        "rollbook.book.questions.prompts": ("PromptPage", "axis_in", "chosen_prompts"),
        "rollbook.book.questions.rollout_answers": ("OTHER_TABLES", "ROLLOUTS", "answer_in", "answered", "see_now"),
        "rollbook.book.questions.rollout_curves": ("chosen_curves", "curves_in"),
        "rollbook.book.questions.rollouts": (
            "GROUP_COLUMNS",
            "RolloutPage",
            "chosen_rollouts",
            "listed",
            "see_rollouts",
        ),
        "rollbook.book.questions.checkpoints": ("chosen_checkpoints", "saved_checkpoints"),
        "rollbook.book.questions.cause": ("Surroundings", "around", "next_row"),
        "rollbook.book.questions.rows_of_tables": ("MADE", "chosen_rows", "see_episodes", "see_samples"),
        "rollbook.book.questions.logs": (
            "LogFile",
            "LogLine",
            "LogPart",
            "asked_log",
            "end_of_lines",
            "lines_from",
            "lines_near",
            "log_files",
            "log_named",
            "part_of_log",
        ),
        "rollbook.book.questions.overview": ("OURS", "STATES", "Overview", "remarks_of"),
        "rollbook.book.questions.positions": (
            "OUTCOMES",
            "Near",
            "axis_values",
            "cells_of",
            "check_range",
            "clocks_of",
            "in_seconds",
            "in_time",
            "numbers",
            "outcomes",
            "position_in_sql",
            "row_id",
            "seconds_column",
            "usual_axis_of",
            "with_outcome",
        ),
        "rollbook.book.sql": ("mistake_in_words",),
        "rollbook.book.questions.sql": ("VIEWS_OF_SQL", "known_tables", "see_views", "tables_for"),
        "rollbook.book.questions.stages": ("SECONDS", "Over", "Stage", "StagesPage", "chosen_stages", "over"),
        "rollbook.book.questions.windows": ("Page", "words_of"),
        "rollbook.book.questions.source": ("OVERVIEW", "Files", "Queries", "Source", "kept"),
    },
)
