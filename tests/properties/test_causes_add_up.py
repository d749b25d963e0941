"""On a cluster that does not change, what one cause does is not undone by the next (spec 2, "Causes add up")."""

from __future__ import annotations

import os

import pytest
from tests.effort import tries
from tests.properties.adding_up import announced, drawn, forbidden, guarded, improved, played, priced
from tests.properties.loaded import states, varied

CLUSTERS = int(os.environ.get("TENURE_CLUSTERS", "60"))
"""How many clusters are played; ``TENURE_CLUSTERS=20000`` takes some ten minutes on one processor."""

FIRST = int(os.environ.get("TENURE_FIRST_CLUSTER", "0"))
"""Where the seeds begin."""

CYCLES = 20
CHUNK = 20


@pytest.mark.parametrize("first", range(FIRST, FIRST + CLUSTERS, CHUNK))
def test_causes_add_up(first):
    """Nothing that was paid for is evicted, nobody is helped after all unless that was said, no plan undoes itself."""
    broken = {}
    for seed in range(first, min(first + CHUNK, FIRST + CLUSTERS)):
        found = forbidden(played(drawn(seed), CYCLES))
        if found:
            broken[seed] = found
    assert not broken


BROKEN_ONCE = {
    10095: "a moved part of a GPU was promised a node and no device, as its own device seemed to have room for it",
    10430: "the same, for three tasks that land on the devices of each other",
    10439: "two of one leaf that both stay within guaranteed take from each other: the specification allows that",
    10049: "what was bound on a nomination stays in that cycle, and was believed to stay in the next as well",
    10080: "the same, for a victim of requeue",
    10302: "of two victims that stand alike the second was asked about, and what is free goes to the first",
    20330: "the same, for moves",
    20752: "the plan after the next made a difference for a victim, and did not say so",
    21316: "quota evicted a task that a later eviction of the same plan gave its place again",
    30980: "the same, by what requeue gives away in the end",
    2075: "a finished plan was believed to give what it left over to victims of its own",
    2489: "what was under notice was believed to stay, so that its beneficiary did not grow",
    2691: "of two sets that cost nothing only the first was looked at",
    7263: "quota evicted a task for no other reason than that nothing would follow then",
    398: "requeue took what asked to be spared for a surplus task",
    6181: "surplus of a contender was placed before that of a better one, which grows only once it is bound",
    10269: "of two that grow only the second took the contender's place, and was not looked at after the first",
    8092: "a rival was believed to take the set that is best by itself, and took another, of which nothing follows",
    13008: "what stayed within guaranteed was announced to go, and was held against the queue as it was after that",
    13425: "what is put off by a minimum runtime was said to follow, and not what another cause would do at once",
    13573: "a follow-up let another one follow in the same cycle, which was not said",
    16193: "beside a reservation, what is left over was believed to be given away in the same cycle",
    17865: "another of its leaf got what was left over, and brought the leaf beyond what it is guaranteed",
    5739: "the core of a workload was moved while others were under notice for more of it",
    7555: "a move landed in room that was reserved, and put off the start of who waits first",
    9454: "moves that devices have no volume for used up the search for what follows",
    13485: "the same for sets of lower priorities, so that another cause made the moves that were said",
    40483: "what follows was searched for among more pieces than the cycle had that found it, and the search gave up",
    41549: "the same, for a move of one workload",
    40706: "what follows was served beside a reservation that counted on ends from before the set",
    50750: "what would start again beside a reservation was taken to end with what had started before it",
    62622: "of two follow-ups of one cycle only that was said which would come without the other",
    44110: "what went for a victim, as was said, let another take the contender's place",
    61879: "of two sets with follow-ups that of lower priorities was passed over, which was expected to go",
    22070: "a task that stays at home beside a reservation was promised its place twice, and the cycle broke",
    52602: "what was decided after a set let another grow into its contender's place",
    70484: "what is put off by a minimum runtime was said to follow, and not what the same cause took instead",
    278: "what is left over during a notice goes to those who ask for it then, and was taken again by who grew",
    48378: "what a quota announced was withdrawn, as a queue above held less than it is guaranteed all along",
    51785: "a notice was withdrawn, as a place was free for its contender that another was promised",
    51202: "what went first took what was promised to another before, while that waited for the end of a notice",
    45934: "the cycle that binds and the one after it were looked at as one, and what a later one takes was kept",
    61866: "a move was found by the rescheduler alone, as the first pieces of many had no place to go to",
    693: "of two that were announced the one that saves its work leaves first, and asked before the other",
    104233: "requeue was believed to take what costs least, and takes what comes first in its order",
    220427: "the same",
    102785: "moves were said that the search of the next cycle gives up before it comes to",
    221863: "a victim was believed to take from others what another one leaves it room for in the same cycle",
    103041: "the reason of an eviction at the end of its notice could not be made anew, and the cycle broke",
    104274: "what a queue within guaranteed had sent away was held against it until it had left, in this reading",
    105081: "a set that was alone in the end was not given up, though a quota had changed what it was judged on",
    104723: "the same, for promises from earlier cycles that come true at the end of their notices",
    107937: "who would take what a minimum runtime holds was believed to take nothing instead",
    100460: "what a follow-up left over went at once to another that asked, and who grows was believed to get it",
    102020: "the same, and who grew reclaimed instead",
    200702: "the same, for a follow-up of preempt",
    106409: "a follow-up was said of which another one follows, and the next cycle took a set of which none does",
    203013: "the same, for a victim of a move that grows",
    201913: "a follow-up was said whose beneficiary would lose its place again",
    203867: "requeue took a set of which a follow-up let another take its contender's place",
    222521: "what is left over was believed to be kept for a victim that grows, and went to who asked before it",
    102508: "what a set leads to was not asked where it was said what follows, and a later cycle took a larger one",
    507706: "what fits beside a follow-up is bound in the next cycle and stays in it, and was believed to go there",
    505742: "the same",
    508714: "a victim that was not needed in the end was counted by a budget still, and nothing was said to follow",
    508075: "what starts again beside a reservation in the next cycle was taken to end with what started before it",
    515557: "the same",
    514689: "in the cycle in which its notice ended a victim asked for no share, and another was ahead for that cycle",
    622588: "the same",
    510625: "the move of a core that a minimum runtime holds was expected, and that of surplus came",
    504570: "the same, beside a reservation",
    109306: "the rescheduler gave the room that it made to one behind another that would have got it",
    517461: "the same, for a victim",
    515046: "what was left over went in the same cycle to one that waited, and others came before it grew",
    202847: "what is moved was taken to end after what is bound in the same cycle, and to put off a reserved start",
    213973: "the same",
    501636: "what would go for a victim of an earlier plan was not said where a part of that was promised a place",
    214383: "the same",
    214180: "what was to be moved and stays after all used up a budget, so that it was not said what follows",
    503636: "a move that only the rescheduler makes, in the end, was said, and preempt came before it",
    614587: "a set could not be given up by itself, as its contender might then have had the room of another one",
    506267: "a notice ended as its contender had got another place, though what it left was promised to another",
    510140: "the same",
    613728: "the same, for the place where another was to land",
    603157: "what follows from a set was said to follow also where another would take its place after the next one",
    703433: "requeue was believed to have nothing to send back, as that was asked where all that is overdue had gone",
    623634: "a move for one that waited let a victim reclaim, and only victims and who grows were looked at",
    819706: "a victim was given back, and what grows took from the plan's other contender, having no room left over",
    815726: "the same, and what was given back went for another victim, of which room was left over for who grows",
    804430: "one grows in the cycle that binds it, in which what is bound with it stays, and was believed to take that",
    832516: "the search for moves gave up and kept three dear ones, where one would do that was said before",
    201574: "the rescheduler's program moved what no search among the first of many pieces comes to",
    802242: "the same",
    804206: "the same, for what fits by all that is free on a node together, and on none of its devices",
    868650: "the same, for what asked to be spared, and for tasks of which each would fit by itself",
    859753: "half of a core was believed to be bound before the notice for the other half ended, and to grow",
    871628: "what had lost something in a cycle was believed to contend in it, and had its turn before another victim",
    874655: "one that was no victim reclaimed, as its leaf held less then, and it was not looked at",
    862097: "a victim was given back, and what waited to grow took its contender, having no room left over",
    865462: "requeue was believed to help first who comes first, and goes from candidate to candidate",
    862022: "a notice was withdrawn as its contender ran already, and what was promised its room took that from it",
    851055: "a set could not be given up as its victim goes with a core that goes for another, and was kept",
    105677: "the same, as what would run on kept a queue over its maximum",
    857589: "what was bound on room left over before was taken for what others went for, in this reading",
    872916: "a notice whose contender needed it no more went on for a victim, which was promised what was left over",
    879136: "what others had gone for was moved at once, by the rescheduler's program for what had waited long",
    942394: "the rescheduler's program moved for a victim at once, which no search among the first of many comes to",
    955666: "requeue was believed to evict for one that fits as it is, and waits for its turn beside a reservation",
    952539: "what had left at the end of its notice counted in its queue, and kept what was promised from binding",
    950765: "a quota that a guarantee held back is enforced once that is met otherwise, and that was not looked at",
    983079: "of two candidates of which a guarantee lets one go the other was believed to go for a victim",
    976735: "a victim of the plan that gave a notice to move took the move from its contender, by age alone",
    993976: "what is announced in a later cycle was believed to leave at once, and its room was promised before",
    993942: "a notice was judged beside what was promised by a set that came after it in its plan, and withdrawn",
    1003734: "what was under notice was let run on by a plan that did not say so, and quotas had counted on its going",
    1014837: "what was placed as a later cycle begins was believed to stay, and may be undone in that cycle",
    1020948: "the rescheduler was believed to move at once for what was evicted, which it leaves alone for a while",
    1032366: "what a maximum keeps out until notices have ended gave its room to others, and evicted to make it good",
    1057486: "a contender lost its core to another one, and evicted for itself in the same pass",
    1045671: "the rescheduler's program moved a core of which one task landed where it stood",
    1094029: "the rescheduler was believed to move to other devices of a node, as only consolidate does",
    1086783: "a leaf that was within its guaranteed once something of it had gone was believed to be so before",
    1131107: "what was moved lost its landing to a quota, and evicted others to have it again",
    1154815: "what had left at the end of its notice was believed to contend while it still terminates",
    1173733: "of moves that had begun what others needed to land was withdrawn, as their contender needed it no more",
    1133658: "a set could not be given up as two others rested on what it frees, and was kept",
    1072788: "what was promised under notice was beaten by rank before it was bound, so that this reading says no more",
    905756: "the same",
}
"""Clusters on which a plan broke it, and what was wrong."""

BROKEN_WITH_PRICES = {
    51694: "what is put off by patience was said to follow, and not what another cause did at once",
    300867: "of moves that were announced the first went early, and the rest was withdrawn and moved for the first",
}
"""The same with prices and patience."""

BROKEN_WITH_DISRUPTION_BUDGETS = {
    910633: "what a set evicts itself was not counted when it was asked what a budget lets others take after it",
    403168: "moves were said to follow, which consolidate does not make where preempt comes cheaper",
}
"""The same with PodDisruptionBudgets."""

BROKEN_WITH_NOTICES = {
    940278: "what follows with a notice was believed to leave before what was announced earlier",
    940119: "the core of a workload was evicted while others were under notice for more of it",
    404440: "what a victim of an earlier plan gets while others are under notice, which ask for nothing, was not said",
    402030: "the same",
    403864: "a notice was withdrawn, and what moved since was to land there: its victim went for that",
    601813: "who had gone since was kept waiting, so that another seemed to come before the contender of a notice",
    721093: "a move of one task of several was withdrawn, as only the last or all of them were thought to go",
    403053: "the core of a workload was evicted while a task of it was under notice to move",
    401521: "what is under notice was held against a queue within its guaranteed, in this reading",
    401523: "a notice went on for what moves, a victim of the same plan, as its contender needed no more",
    720417: "what others take once something has gone at the end of its notice was not looked at, and left it a move",
    726377: "a set could not be given up as its victim holds what another was promised, and was kept",
    726909: "one that waits was asked about by preempt, where only moves for it are looked at, and victims got nothing",
    401560: "a notice went on for a victim once its time was over, as its contender needed it no more",
    404074: "a notice was judged beside what was promised by a set that came after it in its plan, and withdrawn",
    851917: "the same: notices of one plan were given and withdrawn in turns",
    405174: "what a maximum keeps out until notices have ended was not promised its room, and something moved for it",
    409320: "what was under notice was let run on by a plan that did not say so",
}
"""The same where all evictions are announced."""

BROKEN_WITH_BETTER_LAYOUTS = {
    160: "what others had just been evicted for was moved for a better layout",
    244: "the same",
    310: "the same, for a contender of requeue",
    693: "what is announced was believed to leave at once, and leaves one after the other",
}
"""The same where the layout is improved."""


@pytest.mark.parametrize("first", range(0, tries(60, 600), CHUNK))
def test_they_add_up_with_prices_and_patience(first):
    """What has to be worth something is judged together with what would follow from it."""
    broken = {seed: found for seed in range(first, first + CHUNK) if (found := forbidden(played(priced(seed), CYCLES)))}
    assert not broken


@pytest.mark.parametrize("first", range(0, tries(40, 400), CHUNK))
def test_they_add_up_with_disruption_budgets(first):
    """What a PodDisruptionBudget allows once more is up is looked at before."""
    seeds = range(first, first + CHUNK)
    broken = {seed: found for seed in seeds if (found := forbidden(played(guarded(seed), CYCLES)))}
    assert not broken


@pytest.mark.parametrize("first", range(0, tries(40, 400), CHUNK))
def test_they_add_up_where_the_layout_is_improved(first):
    """What only improves the layout leaves what was paid for where it is."""
    seeds = range(first, first + CHUNK)
    broken = {seed: found for seed in seeds if (found := forbidden(played(improved(seed), CYCLES)))}
    assert not broken


@pytest.mark.parametrize("seed", BROKEN_WITH_BETTER_LAYOUTS, ids=str)
def test_what_broke_it_once_with_better_layouts(seed):
    assert forbidden(played(improved(seed), CYCLES)) == []


@pytest.mark.parametrize("seed", BROKEN_ONCE, ids=str)
def test_what_broke_it_once(seed):
    assert forbidden(played(drawn(seed), CYCLES)) == []


def test_the_clusters_are_worth_playing():
    """The first of them see evictions of every kind, and sets of which something follows."""
    missing, said = {"quota", "consolidate", "reclaim", "preempt", "requeue"}, False
    for seed in (13, 37, 50, *range(75)):  # three that show all of it, as long as no decision is another one
        found = played(drawn(seed), CYCLES)
        missing -= {s.cause for s in found.steps if s.action == "evict"}
        said = said or bool(found.follow_ups)
        if said and not missing:
            return
    pytest.fail(f"no eviction by {sorted(missing)}" if missing else "nothing is said to follow")


@pytest.mark.parametrize("seed", BROKEN_WITH_PRICES, ids=str)
def test_what_broke_it_once_with_prices(seed):
    assert forbidden(played(priced(seed), CYCLES)) == []


@pytest.mark.parametrize("seed", BROKEN_WITH_DISRUPTION_BUDGETS, ids=str)
def test_what_broke_it_once_with_disruption_budgets(seed):
    assert forbidden(played(guarded(seed), CYCLES)) == []


@pytest.mark.parametrize("seed", BROKEN_WITH_NOTICES, ids=str)
def test_what_broke_it_once_with_notices(seed):
    assert forbidden(played(announced(seed), CYCLES)) == []


@pytest.mark.parametrize("seed", range(4, 4 + tries(2, 60)))
def test_they_add_up_at_real_scale(seed):
    """With gangs that hold half of a cluster of 128 nodes, whenever something was evicted under a load of 0.9."""
    broken = {}
    for number, state in enumerate(states(seed, tries(60, 120))):
        found = forbidden(played(varied(state, seed), CYCLES))
        if found:
            broken[number] = found
    assert not broken


BROKEN_AT_REAL_SCALE = {
    (1, 120, 7): "moves were looked for ahead among surplus tasks of one workload alone, for they are the cheapest",
    (44, 120, 1): "one that waited and was no victim got what a follow-up left over, grew, and was not looked at",
    (41, 120, 1): "the only set of a plan was kept, though it was known who would take its contender later",
}
"""Seed, jobs and number of the state, with what was wrong."""


@pytest.mark.parametrize(("seed", "jobs", "number"), BROKEN_AT_REAL_SCALE, ids=str)
def test_what_broke_it_once_at_real_scale(seed, jobs, number):
    assert forbidden(played(varied(list(states(seed, jobs))[number], seed), CYCLES)) == []
