"""A small n-best list of Moses, and the text that was translated."""

LIST = """0 ||| le chien voit  ||| LM0= -3 WordPenalty0= -3 ||| -2.1 ||| 0-1=0-1 2=2 ||| 0-0 1-1 2-2\x20
0 ||| un chien  ||| LM0= -2 WordPenalty0= -2 ||| -1.4 ||| 0=0 1-2=1 ||| 0-0 1-1\x20
1 |||  ||| LM0= 0 WordPenalty0= 0 ||| 0 |||  |||\x20
2 ||| le &apos; chat  ||| LM0= -5 WordPenalty0= -3 ||| -104 ||| 0-1=0-1 2=2 ||| 0-0\x20
2 ||| un chat  ||| LM0= -6 WordPenalty0= -2 ||| -3.8 ||| 0=0 1-2=1 ||| 0-0\x20
"""


SOURCE = "the dog sees\n\nthe &apos; cat\n"
