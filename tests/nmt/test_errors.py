"""Messages: one short line, whatever they quote."""

import pickle

from nmt.errors import DataError, one_line


def test_a_message_is_one_short_line_without_control_characters() -> None:
    assert one_line("a\nb\u2028c\r\td  e") == "a b c d  e"
    assert one_line("\x1b[2Ja\0") == "\\x1b[2Ja\\x00"
    assert len(one_line("\udc8a" * 10**6)) < 500 and len(one_line("\0 " * 10**6)) < 2000
    assert len(one_line("x" * 10**6)) < 500 and len(one_line("x y " * 10**6)) < 2000


def test_a_long_path_keeps_both_ends() -> None:
    assert one_line(f"/tmp/{'x' * 5000}/text:3: bad").endswith("x/text:3: bad") and one_line(
        f"/tmp/{'x' * 5000}/text:3: bad"
    ).startswith("/tmp/xx")


def test_every_error_of_a_user_is_such_a_line_and_crosses_processes() -> None:
    error = DataError(f"text:1: {'é' * 5000}\n")
    assert (
        str(error) == str(pickle.loads(pickle.dumps(error)))
        and len(str(error)) < 500
        and "\n" not in str(error)
    )
