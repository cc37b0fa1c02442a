"""Moses' escapes: its tokenizer writes `&#124;` for a vertical bar, `&apos;` for an apostrophe ..."""

# The order matters: `&amp;` is undone last.
ESCAPES = [
    ("&#124;", "|"),
    ("&#91;", "["),
    ("&#93;", "]"),
    ("&lt;", "<"),
    ("&gt;", ">"),
    ("&apos;", "'"),
    ("&quot;", '"'),
    ("&amp;", "&"),
]


def unescape(word: str) -> str:
    """The word without Moses' escapes."""
    if "&" not in word:
        return word
    for escaped, plain in ESCAPES:
        word = word.replace(escaped, plain)
    return word


def escape(word: str) -> str:
    """The word as Moses' tokenizer escapes it; a word that is escaped already stays."""
    if unescape(word) != word:
        return word
    for escaped, plain in reversed(ESCAPES):
        word = word.replace(plain, escaped)
    return word


def escape_raw(word: str) -> str:
    """A word of raw text with every special character escaped: `unescape` always gives it back, also where it
    looks like an escape itself, `&amp;` -> `&amp;amp;`."""
    for escaped, plain in reversed(ESCAPES):
        word = word.replace(plain, escaped)
    return word
