"""docs/remote.md does what it says: its blocks run one after the other, with a store of S3 behind them."""

from __future__ import annotations

from pathlib import Path

import run_page
from stores import Moto, aws


def test_the_blocks_ship_a_run_and_read_it_with_and_without_rollbook(moto: Moto, tmp_path: Path, monkeypatch) -> None:
    moto.bucket("bucket")
    monkeypatch.chdir(tmp_path)
    with aws(monkeypatch, moto.url):
        monkeypatch.setenv("AWS_ALLOW_HTTP", "true")  # obstore, which the last block uses by itself, asks for it
        run_page.run(Path(__file__).parents[2] / "docs" / "remote.md")
