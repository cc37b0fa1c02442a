"""Text in scripts without blanks, made by a program: English and Japanese pairs, Chinese lines."""

import random

NOUNS = [
    ("dog", "犬"), ("cat", "猫"), ("man", "男"), ("woman", "女の人"), ("child", "子供"), ("teacher", "先生"),
    ("bird", "鳥"), ("fish", "魚"), ("king", "王様"), ("doctor", "医者"),
]  # fmt: skip
ADJECTIVES = [("red", "赤い"), ("big", "大きい"), ("small", "小さな"), ("old", "古い"), ("new", "新しい")]
VERBS = [("sees", "を見る"), ("buys", "を買う"), ("likes", "が好きだ"), ("chases", "を追いかける")]


def japanese(count: int, seed: int = 1) -> list[tuple[str, str]]:
    """English sentences and their translations, which have no blanks; one in twenty has full-width
    letters."""
    draw = random.Random(seed)

    def phrase() -> tuple[str, str]:
        (adjective, too), (noun, also) = draw.choice(ADJECTIVES), draw.choice(NOUNS)
        return f"the {adjective} {noun}", too + also

    pairs = []
    for _ in range(count):
        subject, object_, verb = phrase(), phrase(), draw.choice(VERBS)
        end = "ＡＢＣ！" if draw.random() < 0.05 else "。"
        pairs.append(
            (
                f"{subject[0]} {verb[0]} {object_[0]} .".capitalize(),
                f"{subject[1]}は{object_[1]}{verb[1]}{end}",
            )
        )
    return pairs


def chinese(words: int, seed: int = 1) -> str:
    """A line as long as an English one of this many words: 1.6 ideographs a word, and a full stop."""
    draw = random.Random(seed)
    return "".join(chr(draw.randrange(0x4E00, 0x4E00 + 3000)) for _ in range(round(1.6 * words))) + "。"
