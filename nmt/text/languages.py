"""Language codes: the two letters of ISO 639-1, else the three of ISO 639-2, and those of Moses' own."""

import logging
from functools import cache
from pathlib import Path

from nmt.errors import ConfigError
from nmt.numbers import shown
from nmt.text.units import SPACELESS

log = logging.getLogger(__name__)


def check(language: str, key: str = "language") -> None:
    """ConfigError for anything but a language code; a warning for a language that Moses has no rules for.
    `key`: what the message calls it."""
    if language not in with_rules() | CODES:
        raise ConfigError(
            f"{key}: {shown(language)} is unknown; expected an ISO 639 code, of two letters where it has "
            "one: en, fr, de, zh, hsb ..."
        )
    warn(language)


@cache
def warn(language: str) -> None:
    """Say once that the tokenizer has no rules for a language."""
    if language not in with_rules():
        log.warning(
            "language %s: the tokenizer has no list of its abbreviations, so English ones keep their dots, "
            "as in Moses",
            language,
        )


@cache
def with_rules() -> frozenset[str]:
    """The languages that the tokenizer or the normalizer has rules for."""
    from sacremoses.corpus import NonbreakingPrefixes

    return frozenset(NonbreakingPrefixes().available_langs.values()) | OTHERS


def of_file(path: str) -> str:
    """The language that the ending of a file's name says, or nothing: corpus/train.tok.en.gz -> en"""
    name = Path(path).name.removesuffix(".gz").removesuffix(".txt")
    ending = Path(name).suffix.removeprefix(".")
    return ending if ending in CODES - AMBIGUOUS or ending in with_rules() else ""


OTHERS = {"cjk", "cz", "ko"} | SPACELESS  # rules of their own in the tokenizer or the normalizer
# They end the names of other files, too.
AMBIGUOUS = set("art bin inc man map min new pro".split())
CODES = frozenset(
    """
aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee
el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is
it iu ja jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms
mt my na nb nd ne ng nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk
sl sm sn so sq sr ss st su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi
yo za zh zu ace ach ada ady afa afh ain akk ale alg alt ang anp apa arc arn arp art arw ast ath aus awa bad
bai bal ban bas bat bej bem ber bho bik bin bla bnt bra btk bua bug byn cad cai car cau ceb cel chb chg chk
chm chn cho chp chr chy cmc cnr cop cpe cpf cpp crh crp csb cus dak dar day del den dgr din doi dra dsb dua
dum dyu efi egy eka elx enm ewo fan fat fil fiu fon frm fro frr frs fur gaa gay gba gem gez gil gmh goh gon
gor got grb grc gsw gwi hai haw hil him hit hmn hsb hup iba ijo ilo inc ine inh ira iro jbo jpr jrb kaa kab
kac kam kar kaw kbd kha khi kho kmb kok kos kpe krc krl kro kru kum kut lad lah lam lez lol loz lua lui lun
luo lus mad mag mai mak man map mas mdf mdr men mga mic min mkh mnc mni mno moh mos mun mus mwl mwr myn myv
nah nai nap nds new nia nic niu nog non nqo nso nub nwc nym nyn nyo nzi osa ota oto paa pag pal pam pap pau
peo phi phn pon pra pro raj rap rar roa rom rup sad sah sai sal sam sas sat scn sco sel sem sga sgn shn sid
sio sit sla sma smi smj smn sms snk sog son srn srr ssa suk sus sux syc syr tai tem ter tet tig tiv tkl tlh
tli tmh tog tpi tsi tum tup tut tvl tyv udm uga umb vai vot wak wal war was wen xal yao yap ypk zap zbl zen
zgh znd zun zza
""".split()
)
