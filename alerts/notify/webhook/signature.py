"""Signatures of requests, as https://www.standardwebhooks.com says: any of its libraries verifies them."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from typing import Annotated

from pydantic import AfterValidator, SecretStr

PREFIX = "whsec_"
KEY_BYTES = range(24, 65)


def _key(secret: SecretStr) -> bytes:
    return base64.b64decode(secret.get_secret_value().removeprefix(PREFIX), validate=True)


def _usable(secret: SecretStr) -> SecretStr:
    try:
        length = len(_key(secret))
    except (binascii.Error, ValueError):
        raise ValueError("must be whsec_ followed by base64") from None
    if length not in KEY_BYTES:
        raise ValueError(f"must hold 24 to 64 bytes, holds {length}")
    return secret


SigningSecret = Annotated[SecretStr, AfterValidator(_usable)]


def signed_headers(message_id: str, now: float, body: bytes, secret: SecretStr | None) -> dict[str, str]:
    """``webhook-id``, the same at every try so that receivers drop repeats; and with a secret, time and signature."""
    if secret is None:
        return {"webhook-id": message_id}
    timestamp = str(int(now))
    content = b".".join((message_id.encode(), timestamp.encode(), body))
    digest = hmac.new(_key(secret), content, hashlib.sha256).digest()
    return {
        "webhook-id": message_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": f"v1,{base64.b64encode(digest).decode()}",
    }
