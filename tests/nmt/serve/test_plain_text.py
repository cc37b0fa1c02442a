"""Text for an engine that reads words between blanks."""

from nmt.serve.engine import Hypothesis, Translated
from nmt.serve.plain_text import PlainText

KNOWN = set("the house isn &apos;t isn &apos;t a&amp;b Paris big . , &quot;".split())
RULES = PlainText("en", "fr", KNOWN.__contains__)


def test_text_becomes_the_words_that_the_engine_knows() -> None:
    assert RULES.line('The HOUSE isn\'t "big" Paris.') == "the house isn &apos;t &quot; big &quot; Paris ."
    assert RULES.line("Zyzzyva & <b>") == "Zyzzyva &amp; &lt; b &gt;"  # an unknown word keeps its case
    assert RULES.lines(["", "the"]) == ["", "the"]


def test_words_become_text() -> None:
    found = Translated(
        ["the", "&quot;"], [Hypothesis("", "l&apos; homme dit : « oui » .".split(), -1.0)], unknown=[0]
    )
    told = RULES.translation("The man", found)
    assert told.hypotheses[0].text == "L'homme dit : « oui »."
    assert told.hypotheses[0].words[0] == "l'" and told.words == ["the", '"'] and told.unknown == [0]
    assert RULES.translation("the man", found).hypotheses[0].text.startswith("l'homme")
