"""Words that have an order, such as answers on a scale from never to always."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

# From the lowest on; a stroke divides words for one level. The first scale that has all words of a
# column orders it.
_SCALES = (
    "strongly disagree/disagree strongly/completely disagree/totally disagree < disagree/tend to "
    "disagree < neutral/neither agree nor disagree/neither/undecided/unsure < agree/tend to agree "
    "< strongly agree/agree strongly/completely agree/totally agree",
    "strongly disagree < disagree/mostly disagree < somewhat disagree/slightly disagree/rather "
    "disagree < neutral/neither agree nor disagree < somewhat agree/slightly agree/rather agree < "
    "agree/mostly agree < strongly agree",
    "very low < low < medium/moderate/average/mid/middle/normal < high < very high",
    "none < low/mild/minor < medium/moderate < high/severe/major < critical/very severe/extreme",
    "terrible < very poor/very bad < poor/bad < fair/average/okay/ok/acceptable/neutral < good < "
    "very good/great < excellent",
    "very dissatisfied < dissatisfied/somewhat dissatisfied < neutral/neither satisfied nor "
    "dissatisfied < satisfied/somewhat satisfied < very satisfied",
    "very unhappy < unhappy < neutral/so-so/neither < happy < very happy",
    "never < rarely/seldom/almost never < sometimes/occasionally < often/frequently/regularly < "
    "very often/usually/almost always < always",
    "never < yearly/once a year < quarterly < monthly/once a month < weekly/once a week < "
    "daily/every day",
    "not at all < slightly/a little/a bit < moderately/somewhat < very/quite/very much < "
    "extremely/completely",
    "very unlikely < unlikely < neutral/neither likely nor unlikely < likely < very likely",
    "not important/unimportant < slightly important < moderately important/important < very "
    "important < extremely important",
    "intern/trainee/apprentice < junior/entry/entry level/entry-level < "
    "mid/mid level/mid-level/intermediate/regular < senior < lead/staff < principal",
    "beginner/novice < intermediate < advanced < expert",
    "xs < s < m < l < xl < xxl",
    "tiny/very small < small < medium < large/big < huge/very large/extra large",
    "bronze < silver < gold < platinum < diamond",
    "young < middle-aged/middle aged < old",
    "cold < cool < mild < warm < hot",
    "stimme überhaupt nicht zu/stimme gar nicht zu/lehne stark ab < stimme nicht zu/stimme eher "
    "nicht zu/lehne ab < teils teils/teils/neutral/weder noch/unentschieden < stimme zu/stimme "
    "eher zu < stimme voll zu/stimme voll und ganz zu/stimme völlig zu/stimme stark zu",
    "trifft überhaupt nicht zu/trifft gar nicht zu/trifft nicht zu < trifft eher nicht zu/trifft "
    "wenig zu < teils teils/teils/neutral/weder noch < trifft eher zu/trifft zu < trifft voll "
    "zu/trifft völlig zu/trifft voll und ganz zu",
    "sehr niedrig/sehr gering < niedrig/gering < mittel/normal < hoch < sehr hoch",
    "sehr schlecht < schlecht < mittelmäßig/mittel/befriedigend/neutral < gut < sehr gut",
    "sehr unzufrieden < unzufrieden/eher unzufrieden < neutral/teils teils/weder noch < "
    "zufrieden/eher zufrieden < sehr zufrieden",
    "nie/niemals < selten < manchmal/gelegentlich < oft/häufig < sehr oft/meistens < immer",
    "sehr klein < klein < mittel < groß < sehr groß",
    "pas du tout d'accord < pas d'accord/plutôt pas d'accord < neutre/ni d'accord ni pas d'accord "
    "< d'accord/plutôt d'accord < tout à fait d'accord",
    "très faible/très bas < faible/bas < moyen/modéré < élevé/fort/haut < très élevé/très fort",
    "jamais < rarement < parfois < souvent < toujours",
    "totalmente en desacuerdo/muy en desacuerdo < en desacuerdo < neutral/ni de acuerdo ni en "
    "desacuerdo < de acuerdo < totalmente de acuerdo/muy de acuerdo",
    "muy bajo < bajo < medio < alto < muy alto",
    "nunca < rara vez/casi nunca < a veces < a menudo/frecuentemente < siempre",
    "per niente d'accordo < poco d'accordo/in disaccordo < neutrale < d'accordo/abbastanza "
    "d'accordo < molto d'accordo/completamente d'accordo",
    "mai < raramente < a volte/qualche volta < spesso < sempre",
)
_NUMBERED = re.compile(r"(\d+)\s*[-–:.)(=]\s*\D.*")
_RANGE = re.compile(
    r"(?:under|below|up to|less than|unter|bis|<|≤|over|above|more than|über|ab|>|≥)?\s*[$£€]?"
    r"(\d+(?:[.,]\d+)?)\s*[km]?\s*(?:[-–]|to|bis)?\s*[$£€]?(?:\d+(?:[.,]\d+)?)?\s*[km]?\s*"
    r"(?:\+|or more|and over)?\s*\w{0,6}"
)
_NONE_AT_ALL = (
    *("never", "none", "no", "nil", "zero", "nie", "keine", "jamais", "aucun"),
    *("nunca", "mai", "nessuno"),
)
_BELOW = re.compile(r"(?:under|below|up to|less than|unter|bis|<|≤)")


def levels_of(words: Collection[str], given: Sequence[Sequence[str]] = ()) -> dict[str, int] | None:
    """Return the level of each word by a scale in `given` or a known one, or None if none fits."""
    plain = {word: _plain(word) for word in words}
    scales = [[{_plain(word)} for word in scale] for scale in given]
    scales += [[set(level.strip().split("/")) for level in each.split(" < ")] for each in _SCALES]
    for scale in scales:
        levels = {word: number for number, level in enumerate(scale, 1) for word in level}
        if all(word in levels for word in plain.values()):
            return {word: levels[each] for word, each in plain.items()}
    return _by_number(plain)


def _plain(word: str) -> str:
    plain = re.sub(r"(?<=\d)[.,](?=\d{3}\b)", "", word.replace("’", "'"))  # 25,000
    return " ".join(plain.casefold().replace("/", " ").replace(",", " ").split()).strip(" .!")


def _by_number(plain: dict[str, str]) -> dict[str, int] | None:
    """Return the levels of words that begin with a number, or are ranges such as 18-24."""
    firsts = _firsts(plain, _NUMBERED)
    is_range = any(re.search(r"\d\s*[-–]\s*[$£€]?\d", each) for each in plain.values())
    if firsts is None and is_range:
        firsts = _firsts(plain, _RANGE)
    if firsts is None or len(set(firsts.values())) < len(firsts):
        return None
    order = sorted(firsts, key=lambda word: firsts[word])
    return {word: number for number, word in enumerate(order, 1)}


def _firsts(plain: dict[str, str], pattern: re.Pattern[str]) -> dict[str, float] | None:
    """Return the first number of each word, below all others for none at all."""
    found = {word: pattern.fullmatch(each) for word, each in plain.items()}
    nothing = [word for word, each in plain.items() if each in _NONE_AT_ALL]
    if any(match is None for word, match in found.items() if word not in nothing):
        return None
    numbers = {word: float(match[1].replace(",", ".")) for word, match in found.items() if match}
    numbers |= dict.fromkeys(nothing, -1.0)
    # "under 18" comes before "18-24".
    return {word: n - 0.5 * bool(_BELOW.match(plain[word])) for word, n in numbers.items()}
