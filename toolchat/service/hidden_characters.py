"""Characters that people do not see, or see in another place than they are."""

import re

_CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f"
# Joiners are not among them: they are part of words and of emoji.
_UNSEEN = (
    "\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0"
    "\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff"
)
CONTROLS = re.compile(f"[{_CONTROLS}]")
"""Control characters except for line breaks and tabs: they can move a terminal's cursor or fill the clipboard."""
HIDDEN = re.compile(f"[{_CONTROLS}{_UNSEEN}]")
"""These, and characters that hide or reorder their neighbours: they can smuggle instructions past a reader."""
