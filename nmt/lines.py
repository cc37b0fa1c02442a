"""Lines that a Python program passes: a str where a list of them is expected would be read as a list of its
characters."""


def check_lines(lines: object, what: str = "lines") -> None:
    """TypeError for a str where a list of lines is expected."""
    if isinstance(lines, str):
        raise TypeError(f"expected a list of {what}, found a str; write [text] for one")


def check_pairs(pairs: object) -> None:
    """TypeError for a str, or one pair of them, where a list of pairs is expected."""
    if isinstance(pairs, str) or (isinstance(pairs, tuple | list) and any(isinstance(p, str) for p in pairs)):
        raise TypeError("expected a list of pairs, found a str; write [(source, target)] for one")


def check_texts(texts: object, what: str) -> None:
    """TypeError for a str, or a list of them, where a list of texts is expected, each a list of lines."""
    if isinstance(texts, str) or (isinstance(texts, tuple | list) and any(isinstance(t, str) for t in texts)):
        raise TypeError(
            f"expected a list of {what}, each a list of lines, found a str; write [lines] for one"
        )
