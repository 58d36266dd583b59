"""What counts as a secret in a configuration, a command line or a URL, and how it is hidden: one rule for all of them.

A name such as `wandb_api_key`, `password` or `hf_token` hides its value, also if the name is spread over levels
(`{"api": {"key": …}}`). A value with the form of a credential (`sk-…`, `ghp_…`, `Bearer …`, a private key, a login in a
URL) is hidden under any name. Forty hexadecimal digits are a W&B key or a commit hash: they are hidden, also within a
sentence, unless a name around them, or one of the four words before, is hash, commit, revision, id or similar, or they
are a part of a path. The same holds for forty letters and digits that look random (an AWS key). ROLLBOOK_SECRETS=keep
turns hiding off.
Standard library only; never raises; takes time proportional to the length of a text.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Sequence

HIDDEN = "***"

_SECRET = ("secret", "passw", "passphrase", "credential", "apikey", "cookie", "authorization")  # anywhere in a name
_SECRET_ENDS = frozenset({"auth", "cred", "pas", "pw", "pwd", "token"})  # without an "s" at the end
_HOLDERS = frozenset({"secret", "credential", "cred", "password", "passwd"})  # all texts below such a name are secrets
_KEY_OF = frozenset({"access", "account", "api", "auth", "encryption", "license", "private", "ssh"})
# fmt: off
_TOKEN_OF = frozenset({
    "begin", "bos", "end", "eos", "mask", "max", "min", "num",
    "pad", "per", "sep", "special", "start", "stop", "think", "unk",
})
_SERVICES = frozenset({
    "anthropic", "aws", "azure", "cohere", "comet", "gemini", "github", "google", "groq", "hf", "huggingface",
    "mistral", "neptune", "openai", "together", "wandb", "weave",
})

_HASHES = frozenset({
    "branch", "checksum", "commit", "digest", "etag", "fingerprint", "git", "hash", "hashe", "head", "id", "md5", "oid",
    "ref", "rev", "revision", "sha", "sha1", "sha256", "snapshot", "tag", "tree", "uuid", "version",
})
# fmt: on

# Known forms of credentials, each with an identifying prefix. A pattern consumes what it has begun
# to its end, so that no text is scanned twice.
_CREDENTIAL = re.compile(
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:(?!-----)[\s\S])*(?:-----END [A-Z ]{0,40}-----)?"
    r"|(?<![A-Za-z0-9])("
    r"sk-[A-Za-z0-9_-]{16,}|(?:ghp|gho|ghu|ghs|ghr)_[A-Za-z0-9]{20,}"
    r"|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,}"
    r"|(?:hf|api_org)_[A-Za-z0-9]{20,}|xox[abprs]-[A-Za-z0-9-]{10,}|(?:AKIA|ASIA)[A-Z0-9]{16}|AIza[A-Za-z0-9_-]{30,}"
    r"|pypi-[A-Za-z0-9_-]{16,}|wandb_v1_[A-Za-z0-9_-]{16,}|nvapi-[A-Za-z0-9_-]{16,}|gsk_[A-Za-z0-9]{20,}"
    r"|[rs]k_(?:live|test)_[A-Za-z0-9]{16,}|r8_[A-Za-z0-9]{30,}|ya29\.[A-Za-z0-9_-]{16,}|npm_[A-Za-z0-9]{30,}"
    # JSON in base64: web tokens, also those of Neptune.
    r"|eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}|eyJ[A-Za-z0-9+/_-]{30,}={0,2}"
    r")"
)
_SCHEME = re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{6,}")
_LOGIN = re.compile(r"(?i)(?<![a-z0-9+.-])([a-z][a-z0-9+.-]*://)[^/\s@]+@")
_QUERY = re.compile(r"([?&;][^=?&;#\s]*)=([^&;#\s]+)")
_CONNECTION = re.compile(r"(?i)\b(accountkey|sharedaccesskey|password|pwd)=[^;\s\"']+")
_NAMED_HEX = re.compile(r"(?i)((?:wandb|key|token|login)[^a-z0-9]{1,3})[0-9a-f]{40}(?![0-9a-f])")
_FREE_KEY = re.compile(r"(?<![A-Za-z0-9+/@_=-])(?:local-)?[A-Za-z0-9+/]{40}(?![A-Za-z0-9+/=_-])")
_HEX_KEY = re.compile(r"(?:local-)?[0-9a-f]{40}")
_BASE64_KEY = re.compile(r"[A-Za-z0-9+/]{40}")
_BEFORE_HASHES = _HASHES | {"checked", "checkout", "cloned", "merge", "merged", "parent", "reset"}
_WORD = re.compile(r"[A-Za-z0-9]+")
_BEFORE = 48  # characters that are searched for the words before a key
_DIGIT_INSIDE = re.compile(r"[0-9][A-Za-z]")


def is_secret_name(name: object) -> bool:
    """Whether a name marks its value as a secret: `hf_token`, `--api-key`, `wandb.password`; not `pad_token`."""
    parts = _parts(name)
    text = "_".join(parts)
    return any(word in text for word in _SECRET) or _ends_as_secret(parts)


def _parts(name: object) -> list[str]:
    text = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", str(name)).strip("-+").replace("-", "_").replace(".", "_")
    return text.lower().split("_")


def _ends_as_secret(parts: list[str]) -> bool:
    last, kind = parts[-1].removesuffix("s"), parts[-2] if len(parts) > 1 else ""
    if last in _SECRET_ENDS:
        return kind not in _TOKEN_OF
    return last == "key" and (kind in _KEY_OF or bool(_SERVICES & set(parts)))


def _is_below_a_secret(name: object, above: Sequence[object]) -> bool:
    """Whether a name marks a secret together with the names around it."""
    outer = [_parts(each) for each in above]
    if any(parts[-1].removesuffix("s") in _HOLDERS for parts in outer):
        return True
    return bool(outer) and _ends_as_secret([*outer[-1], *_parts(name)])


def _is_key_by_form(value: str) -> bool:
    """Whether a text has the form of a key without a prefix: older W&B keys, and AWS keys."""
    is_hex = bool(_HEX_KEY.fullmatch(value)) and len(set(value)) > 8
    return is_hex or (bool(_BASE64_KEY.fullmatch(value)) and _is_random(value))


def _names_a_hash(names: Sequence[object], words: frozenset[str] = _HASHES) -> bool:
    return bool({part.removesuffix("s") for each in names for part in _parts(each)} & words)


def _free_key(match: re.Match[str]) -> str:
    """The placeholder for forty letters in a text."""
    if not _is_key_by_form(match[0]):
        return match[0]
    before = match.string[max(0, match.start() - _BEFORE) : match.start()]
    return match[0] if _names_a_hash(_WORD.findall(before)[-4:], _BEFORE_HASHES) else HIDDEN


def _is_random(value: str) -> bool:
    """Whether a text looks like base64 of random bytes: neither a path nor joined words."""
    kinds = ["a" if c.islower() else "A" if c.isupper() else "0" if c.isdigit() else "/" for c in value]
    changes = sum(a != b for a, b in itertools.pairwise(kinds))
    is_mixed = {"a", "A", "0"} <= set(kinds) and kinds.count("/") <= 3 and changes >= 15
    return is_mixed and _DIGIT_INSIDE.search(value) is not None


def without_secrets(text: str, *, is_hash: bool = False) -> str:
    """A text in which logins and secret parameters of URLs, and everything that looks like a credential, are hidden.

    Args:
      is_hash: a name around it says that forty hexadecimal digits are a hash.
    """
    if len(text) < 8 or _kept():
        return text
    text = _LOGIN.sub(rf"\1{HIDDEN}@" if "://" in text else r"\1", text) if "@" in text else text
    if "://" in text and "=" in text:
        text = _QUERY.sub(lambda match: f"{match[1]}={HIDDEN}" if _in_query(match[1]) else match[0], text)
    text = _SCHEME.sub(rf"\1 {HIDDEN}", text)
    text = _CONNECTION.sub(rf"\1={HIDDEN}", text) if "=" in text else text
    text = _NAMED_HEX.sub(rf"\g<1>{HIDDEN}", text) if len(text) > 40 else text
    text = _FREE_KEY.sub(_free_key, text) if len(text) >= 40 and not is_hash else text
    return _CREDENTIAL.sub(HIDDEN, text)


def hidden(name: object, value: object, above: Sequence[object] = ()) -> object:
    """A named value as it may be stored: the value or "***"; texts without the parts that look like credentials.

    Numbers, booleans and None are never secrets: `max_token = 512`.

    Args:
      above: the names of the containers of the value, outermost first.
    """
    if not isinstance(value, (str, bytes)) or _kept():
        return value
    text = value if isinstance(value, str) else value.decode("utf-8", "backslashreplace")
    if text and (is_secret_name(name) or _is_below_a_secret(name, above)):
        return HIDDEN
    shown = without_secrets(text, is_hash=_names_a_hash((*above, name)))
    return value if shown == text else shown


def _in_query(name: str) -> bool:
    return is_secret_name(name[1:]) or name[1:].lower() in ("key", "sig", "signature", "code")


def _kept() -> bool:
    return os.environ.get("ROLLBOOK_SECRETS", "").lower() == "keep"
