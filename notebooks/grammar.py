"""A small English-French grammar that knows which word came from which.

Lessons use it as their parallel corpus; none teaches it. Each pair of sentences carries its gold
word alignment. Adjectives of colour follow the noun in French, those of size precede it; articles
and adjectives agree in gender and number; negation takes two words; object pronouns move before
the verb and adverbs behind it. No French word after an article or `ne` begins with a vowel, so
that nothing is elided.
"""

import random
from typing import NamedTuple

PEOPLE = {  # English singular and plural: French singular and plural, gender
    ("boy", "boys"): ("garçon", "garçons", "m"),
    ("girl", "girls"): ("fille", "filles", "f"),
    ("king", "kings"): ("roi", "rois", "m"),
    ("queen", "queens"): ("reine", "reines", "f"),
    ("dog", "dogs"): ("chien", "chiens", "m"),
    ("mouse", "mice"): ("souris", "souris", "f"),
}
THINGS = {
    ("book", "books"): ("livre", "livres", "m"),
    ("letter", "letters"): ("lettre", "lettres", "f"),
    ("hat", "hats"): ("chapeau", "chapeaux", "m"),
    ("car", "cars"): ("voiture", "voitures", "f"),
    ("cake", "cakes"): ("gâteau", "gâteaux", "m"),
    ("flower", "flowers"): ("fleur", "fleurs", "f"),
    ("knife", "knives"): ("couteau", "couteaux", "m"),
    ("key", "keys"): ("clé", "clés", "f"),
}
PLACES = {
    ("garden", "gardens"): ("jardin", "jardins", "m"),
    ("house", "houses"): ("maison", "maisons", "f"),
    ("park", "parks"): ("parc", "parcs", "m"),
    ("street", "streets"): ("rue", "rues", "f"),
}
NOUNS = PEOPLE | THINGS | PLACES
SIZES = {  # before the noun; masculine and feminine, singular and plural
    "small": ("petit", "petite", "petits", "petites"),
    "big": ("grand", "grande", "grands", "grandes"),
    "beautiful": ("beau", "belle", "beaux", "belles"),
    "young": ("jeune", "jeune", "jeunes", "jeunes"),
}
COLOURS = {  # behind the noun
    "black": ("noir", "noire", "noirs", "noires"),
    "white": ("blanc", "blanche", "blancs", "blanches"),
    "green": ("vert", "verte", "verts", "vertes"),
    "red": ("rouge", "rouge", "rouges", "rouges"),
    "blue": ("bleu", "bleue", "bleus", "bleues"),
}
ADJECTIVES = SIZES | COLOURS
SINGULAR_ARTICLES = {
    "the": ("le", "la"),
    "a": ("un", "une"),
    "this": ("ce", "cette"),
    "my": ("mon", "ma"),
}
PLURAL_ARTICLES = {"the": "les", "these": "ces", "my": "mes"}
SUBJECTS = {"he": ("il", False), "she": ("elle", False), "they": ("ils", True)}
OBJECTS = {"him": "le", "her": "la", "it": "le", "them": "les"}
VERBS = {  # base form, third person, participle: French singular and plural
    ("watch", "watches", "watching"): ("regarde", "regardent"),
    ("find", "finds", "finding"): ("trouve", "trouvent"),
    ("take", "takes", "taking"): ("prend", "prennent"),
    ("paint", "paints", "painting"): ("peint", "peignent"),
    ("draw", "draws", "drawing"): ("dessine", "dessinent"),
    ("hide", "hides", "hiding"): ("cache", "cachent"),
    ("sell", "sells", "selling"): ("vend", "vendent"),
}
VERBS_WITHOUT_OBJECT = {
    ("sleep", "sleeps", "sleeping"): ("dort", "dorment"),
    ("sing", "sings", "singing"): ("chante", "chantent"),
    ("dance", "dances", "dancing"): ("danse", "dansent"),
    ("work", "works", "working"): ("travaille", "travaillent"),
}
ADVERBS = {"often": "souvent", "always": "toujours"}
PREPOSITIONS = {"in": "dans", "behind": "derrière", "with": "avec"}
CONJUNCTIONS = {"and": "et", "but": "mais", "when": "quand"}
MOST_CLAUSES = 2  # clauses


class Pair(NamedTuple):
    """A sentence in both languages; alignments hold an entry for each French word."""

    english: tuple[str, ...]
    french: tuple[str, ...]
    sure: tuple[int, ...]  # the English word that it translates
    possible: tuple[tuple[int, ...], ...]  # that word, and auxiliaries that share its meaning


class Phrase(NamedTuple):
    french: list[tuple[str, int]]  # words in French order, each with its English word's place
    plural: bool


class Writer:
    """Writes one pair: the English in English order, then the French in its own."""

    def __init__(self, generator):
        self.generator = generator
        self.english, self.french, self.sure, self.possible = [], [], [], []
        self.described = []  # the pairs of adjective and noun

    def chance(self, probability):
        return self.generator.random() < probability

    def pick(self, options):
        # random() alone is promised to give the same draws in every version of Python.
        return list(options)[int(self.generator.random() * len(options))]

    def say(self, word):
        self.english.append(word)
        return len(self.english) - 1

    def translate(self, word, sure, *auxiliaries):
        self.french.append(word)
        self.sure.append(sure)
        self.possible.append((sure, *auxiliaries))

    def noun_phrase(self, nouns):
        noun = self.pick(nouns)
        singular, several, gender = nouns[noun]
        plural, feminine = self.chance(0.4), gender == "f"
        article = self.pick(PLURAL_ARTICLES if plural else SINGULAR_ARTICLES)
        agreed = PLURAL_ARTICLES[article] if plural else SINGULAR_ARTICLES[article][feminine]
        words = [(agreed, self.say(article))]
        after = []
        for adjectives, probability, place in ((SIZES, 0.3, words), (COLOURS, 0.4, after)):
            if self.chance(probability):
                adjective = self.pick(adjectives)
                self.described.append((adjective, noun))
                agreed = adjectives[adjective][feminine + 2 * plural]
                place.append((agreed, self.say(adjective)))
        words.append((several if plural else singular, self.say(noun[plural])))
        return Phrase(words + after, plural)

    def subject(self):
        if self.chance(0.7):
            return self.noun_phrase(PEOPLE)
        pronoun = self.pick(SUBJECTS)
        french, plural = SUBJECTS[pronoun]
        return Phrase([(french, self.say(pronoun))], plural)

    def verb(self, verbs, plural):
        """Say a verb with its adverb: in French (words before it, itself, words behind it)."""
        verb = self.pick(verbs)
        form = self.pick(("plain", "progressive", "negative"))
        helpers = []
        if form == "progressive":
            helpers.append(self.say("are" if plural else "is"))
        elif form == "negative":
            helpers.append(self.say("do" if plural else "does"))
            negation = self.say("not")
        adverb = self.pick(ADVERBS) if self.chance(0.25) else None
        adverb_place = self.say(adverb) if adverb else None
        spoken = {"plain": verb[not plural], "progressive": verb[2], "negative": verb[0]}[form]
        itself = (verbs[verb][plural], self.say(spoken), *helpers)
        before = [("ne", negation, *helpers)] if form == "negative" else []
        behind = [("pas", negation, *helpers)] if form == "negative" else []
        if adverb:
            behind.append((ADVERBS[adverb], adverb_place))
        return before, itself, behind

    def clause(self):
        subject = self.subject()
        takes_object = self.chance(0.75)
        verbs = VERBS if takes_object else VERBS_WITHOUT_OBJECT
        before, itself, behind = self.verb(verbs, subject.plural)
        if takes_object and self.chance(0.25):
            pronoun = self.pick(OBJECTS)
            before.append((OBJECTS[pronoun], self.say(pronoun)))
        elif takes_object:
            behind += self.noun_phrase(THINGS | PEOPLE).french
        if self.chance(0.3):
            preposition = self.pick(PREPOSITIONS)
            behind.append((PREPOSITIONS[preposition], self.say(preposition)))
            behind += self.noun_phrase(PEOPLE if preposition == "with" else PLACES).french
        for word, *places in [*subject.french, *before, itself, *behind]:
            self.translate(word, *places)

    def sentence(self, clauses):
        self.clause()
        for _ in range(clauses - 1):
            conjunction = self.pick(CONJUNCTIONS)
            self.translate(CONJUNCTIONS[conjunction], self.say(conjunction))
            self.clause()
        parts = (self.english, self.french, self.sure, self.possible)
        return Pair(*map(tuple, parts))


def is_held_out(adjective, noun):
    """Whether a noun with this adjective is kept for testing: a fifth of all combinations."""
    return (list(ADJECTIVES).index(adjective) + list(NOUNS).index(noun)) % 5 == 0


def pairs(count, seed, held_out=False, clauses=None):
    """A list of `count` random `Pair`s of one or two clauses, or of the given number of them.

    Without held_out, no sentence has a held-out combination of adjective and noun; with it,
    every one has. Raises ValueError for a count below 1 or a number of clauses out of range.
    """
    if count < 1:
        raise ValueError(f"count is {count}: ask for at least one pair")
    if clauses is not None and not 1 <= clauses <= MOST_CLAUSES:
        raise ValueError(f"clauses is {clauses}: a sentence has 1 to {MOST_CLAUSES}")
    generator = random.Random(seed)
    found = []
    while len(found) < count:
        writer = Writer(generator)
        pair = writer.sentence(clauses or 1 + int(generator.random() * MOST_CLAUSES))
        if any(is_held_out(*described) for described in writer.described) == held_out:
            found.append(pair)
    return found
