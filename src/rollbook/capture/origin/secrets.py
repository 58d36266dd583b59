"""What is a secret in a configuration, a command line or a URL, and hiding it: one rule for all of them.

A name such as `wandb_api_key`, `password` or `hf_token` hides its value; so does a value that has the form of a
credential (`sk-…`, `ghp_…`, `Bearer …`, a login in a URL), whatever its name. ROLLBOOK_SECRETS=keep turns it off.
Standard library only; never raises.
"""

from __future__ import annotations

import os
import re

__all__ = ["HIDDEN", "hidden", "is_secret_name", "without_secrets"]

HIDDEN = "***"

_SECRET = ("secret", "passw", "credential", "apikey", "cookie", "authorization")  # anywhere in a name
_SECRET_ENDS = frozenset({"auth", "pas", "pass", "pwd", "token"})
_KEY_OF = frozenset({"access", "account", "api", "auth", "encryption", "license", "private", "ssh"})
_TOKEN_OF = frozenset({
    "begin", "bos", "end", "eos", "mask", "max", "min", "num",
    "pad", "per", "sep", "special", "start", "stop", "think", "unk",
})  # fmt: skip
_SERVICES = frozenset({
    "anthropic", "aws", "azure", "cohere", "comet", "gemini", "github", "google", "groq", "hf", "huggingface",
    "mistral", "neptune", "openai", "together", "wandb", "weave",
})  # fmt: skip

# Forms that credentials are handed out in, each with a prefix that says what it is.
_CREDENTIAL = re.compile(
    r"(?<![A-Za-z0-9])("
    r"sk-[A-Za-z0-9_-]{16,}|(?:ghp|gho|ghu|ghs|ghr)_[A-Za-z0-9]{20,}"
    r"|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,}"
    r"|hf_[A-Za-z0-9]{20,}|xox[abprs]-[A-Za-z0-9-]{10,}|(?:AKIA|ASIA)[A-Z0-9]{16}|AIza[A-Za-z0-9_-]{30,}"
    r"|pypi-[A-Za-z0-9_-]{16,}|eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}"
    r")"
)
_SCHEME = re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{6,}")
_LOGIN = re.compile(r"(?i)\b([a-z][a-z0-9+.-]*://)[^/\s@]+@")
_QUERY = re.compile(r"(?i)([?&;][^=&;#\s]*?)=([^&;#\s]+)")


def is_secret_name(name: object) -> bool:
    """Whether a name says that its value is a secret: `hf_token`, `--api-key`, `wandb.password`; not `pad_token`."""
    text = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", str(name)).strip("-+").replace("-", "_").replace(".", "_").lower()
    if any(word in text for word in _SECRET):
        return True
    parts = text.split("_")
    last, kind = parts[-1].removesuffix("s"), parts[-2] if len(parts) > 1 else ""
    if last in _SECRET_ENDS:
        return kind not in _TOKEN_OF
    return last == "key" and (kind in _KEY_OF or bool(_SERVICES & set(parts)))


def without_secrets(text: str) -> str:
    """A text with logins and secret parameters of URLs, and everything that has the form of a credential, hidden."""
    if len(text) < 8 or _kept():
        return text
    text = _LOGIN.sub(rf"\1{HIDDEN}@" if "://" in text else r"\1", text) if "@" in text else text
    if "://" in text and "=" in text:
        text = _QUERY.sub(lambda match: f"{match[1]}={HIDDEN}" if _in_query(match[1]) else match[0], text)
    text = _SCHEME.sub(rf"\1 {HIDDEN}", text)
    return _CREDENTIAL.sub(HIDDEN, text)


def hidden(name: object, value: object) -> object:
    """What may be kept of a named value: the value, or "***"; texts without what looks like a credential in them.

    Numbers, booleans and None are no secrets whatever their name: `max_token = 512`.
    """
    if not isinstance(value, str) or _kept():
        return value
    if value and is_secret_name(name):
        return HIDDEN
    return without_secrets(value)


def _in_query(name: str) -> bool:
    return is_secret_name(name[1:]) or name[1:].lower() in ("key", "sig", "signature", "code")


def _kept() -> bool:
    return os.environ.get("ROLLBOOK_SECRETS", "").lower() == "keep"
