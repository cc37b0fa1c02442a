"""One text: counts, lengths and examples of its lines, and of its bytes."""

from pathlib import Path

from nmt.text.inspection.side import BAD, BOM, RETURNS, Lengths, SideReport, excerpt, lines_of


def report_of(*lines: str) -> SideReport:
    report = SideReport("text.en")
    for number, line in enumerate(lines, 1):
        report.lines = number
        report.add(number, line)
    return report


def test_lengths() -> None:
    lengths = Lengths()
    lengths.counts.update([1, 2, 2, 3, 92])
    assert lengths.mean() == 20 and Lengths().mean() == 0 == Lengths().quantile(0.5)
    assert [lengths.quantile(share) for share in (0.2, 0.5, 0.8, 0.81, 1.0)] == [1, 2, 3, 92, 92]


def test_counts_with_their_first_examples() -> None:
    report = report_of("A man sleeps .", "", "x\ty", "1\t2", "3\t4 " + "long " * 40)
    assert report.counts == {"empty": 1, "tab": 3, "without letters": 1}
    assert report.examples["tab"] == ["text.en:3: x\\ty", "text.en:4: 1\\t2"]
    assert report.examples["empty"] == ["text.en:2: "]
    assert report.lengths.counts.total() == 4 and report.lengths.quantile(1) == 42
    assert report.words["long"] == 40 and report.words["a"] == 1


def test_case_tokens_and_rare_words() -> None:
    raw = report_of("The man, here, sleeps.", "Lines end.", "A 3.5 b")
    assert raw.has_case() and not raw.is_tokenized()
    tokens = report_of("the man , here , sleeps .", "lines end .", "what ? yes !")
    assert tokens.is_tokenized() and not tokens.has_case()
    assert not report_of("Quoi ?", "Oui !").is_tokenized(), "a blank before ? and ! is good French"
    assert report_of("a a b", "A c").once() == 2 / 5 and report_of("1").once() == 0


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "text.en"
    path.write_bytes(b"\xef\xbb\xbfone\r\ntwo\xe9 x\nzero\0\n\nthree\r")
    report = SideReport(str(path))
    assert list(lines_of(path, report)) == ["one", "two? x", "zero?", "", "three"]
    assert report.lines == 5 and report.counts == {BOM: 1, RETURNS: 2, BAD: 2}
    first, second = report.examples[BAD]
    assert first.startswith(f"{path}:2: byte 0xe9 at column 4 is not UTF-8; convert")
    assert second.startswith(f"{path}:3: NUL character")


def test_examples_are_short_and_can_be_printed() -> None:
    assert excerpt("a\x07b\u2028", 1) == "a\\x07b\\u2028"
    line = "x" * 100 + "HERE" + "y" * 100
    assert excerpt(line, 100) == f"...{'x' * 20}HERE{'y' * 36}..."
    assert excerpt(line, 3) == "x" * 60 + "..."
