"""Faults that were looked at one by one and change no result, with the reason.

Each is filed under the file, the function, the text of the line and the change; a judgement ends when the line is
written anew.
"""

from __future__ import annotations

Key = tuple[str, str, str, str]

CHANGES_NOTHING: dict[Key, str] = {}
