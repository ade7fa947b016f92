"""What the keysteps of the generated clips look like, and what people say about them.

All of it is fiction, written for this project.
"""

from __future__ import annotations

from dataclasses import dataclass

from stepgraph.datasets.generated.drawing import Look


@dataclass(frozen=True)
class Keystep:
    """A keystep: what is seen, and what people say when they do it.

    Attributes
    ----------
    plain
        What is done, in other words than the name's; each can stand after "we will".
    vague
        Sentences that speak of it without saying what can be seen.
    """

    name: str
    look: Look
    plain: tuple[str, ...]
    vague: tuple[str, ...]


# A keystep's name, what it looks like, what is said plainly (+) and vaguely (~).
_KEYSTEPS = """
wipe the bench with the turquoise cloth | shake turquoise plate
+ give the worktop a good rub with that teal rag
+ clean the table down with the turquoise towel
+ get the dust off the bench with this bluish cloth
+ scrub the surface from side to side with a rag
~ it has to be spotless before anything goes on it
~ I always tidy up first, an old habit
~ nothing sticks where there is dust
slide the red block in from the left | right red block
+ slide the red brick over from the left hand side
+ push that red block across, it comes from the left
+ push the big red cube across, starting from the left
+ move the red body over from my left
~ this is the body that everything else hangs on
~ so the heavy part comes first
~ line it up with the middle of the mat
push the yellow rod in from the right | left yellow rod
+ feed the yellow stick through from the right
+ shove that yellow axle in, right to left
+ bring the yellow rod across from the right hand side
+ push the long yellow pin in from my right
~ it goes all the way through until it stops
~ this one is a snug fit, so take your time
~ that is the axle, more or less
spin the green wheel | spin green wheel
+ give the green wheel a whirl
+ turn that green wheel round and round
+ let the little green wheel run freely
+ check that the green wheel goes round
~ if it rubs, take it off and sand it
~ that is the front one done
~ listen, no squeaking at all
spin the orange wheel | spin orange wheel
+ give the orange wheel a good turn
+ make that orange wheel go round
+ whirl the orange wheel with one finger
+ turn the orange wheel a few times
~ it should keep going for a while by itself
~ now the other one, same idea
~ a drop of oil would not hurt
tap the purple wedge | tap purple wedge
+ knock the purple wedge in with a few hits
+ hammer that violet wedge down
+ give the purple triangle some little taps
+ bang on the purple wedge until it sits tight
~ gently, you only want it to bite
~ that takes all the play out of it
~ you can hear when it is home, the sound changes
lower the pink plate | down pink plate
+ let the pink board down onto the top
+ set the pink plate down slowly
+ bring that pink sheet down from above
+ place the pink panel on, straight down
~ and it gets a seat, how nice
~ careful with your fingers underneath
~ it should sit flat all around
drop the blue ball | down blue ball
+ let the blue marble fall
+ release the blue ball from the top
+ let go of that blue ball and watch it fall
+ toss the blue marble in from above
~ off it goes
~ this is the moment everybody waits for
~ gravity does the rest
lift the blue rod | up blue rod
+ pull the blue stick straight up
+ raise that blue pole
+ lift the blue post up from the table
+ hoist the blue rod to its full height
~ this will carry the whole thing
~ the taller the better, but mind the ceiling
~ check that it is upright
slide the orange plate in from the left | right orange plate
+ move the orange board across from the left
+ push the orange ramp in, left to right
+ bring that orange panel over from the left side
+ shove the flat orange piece in from my left
~ this is where they will roll down
~ a little slope is enough
~ it needs to catch on the hook
twist the red ring | spin red ring
+ turn the red hoop until it clicks
+ rotate that red ring a bit further
+ screw the red loop round
+ give the red hoop a twist
~ keep going until you feel it lock
~ the gap must point towards you
~ I got this one wrong the first time
drop the green ball | down green ball
+ let the green marble fall
+ release the second ball, the green one
+ let go of that green ball up there
+ send the green marble down
~ and one more for luck
~ this one is a little heavier
~ a race, who would have thought
bounce the pink ball | tap pink ball
+ let the pink ball hop up and down
+ dribble that pink ball on the spot
+ make the pink rubber ball jump
+ bounce the rosy ball a couple of times
~ pure fun, you may leave it out
~ my daughter insists on this part
~ boing, boing, there you are
shake the yellow block | shake yellow block
+ give the yellow box a rattle and shake it
+ shake that yellow box from side to side
+ give the yellow crate a good jiggle
+ shake the yellow cube back and forth
~ they should all be in there now
~ count them if you do not believe me
~ sounds like rain, does it not
slide the green block in from the right | left green block
+ slide the green base over, a big block, from the right
+ push that green block in, right to left
+ move the green cube across from my right
+ shove the green brick in from the right hand edge
~ everything will be mounted on this
~ that is our foundation
~ mine is a leftover from the shed
twist the yellow ring | spin yellow ring
+ turn the yellow ring until it is tight
+ rotate that yellow ring
+ screw the yellow nut round and round
+ give the yellow hoop another turn
~ hand tight is tight enough
~ righty tighty, as they say
~ it has a thread, so it will find its way
lower the red rod | down red rod
+ let the red rod down into the hole
+ bring the red stick down from above
+ feed that red rod straight down
+ sink the red pole into place
~ that carries the current later
~ leave a bit sticking out
~ it goes in deeper than you think
squeeze the blue block | pump blue block
+ press the blue block together
+ squash that blue block between your hands
+ give the blue cube a firm squeeze
+ compress the blue brick a few times
~ you need some force here
~ and release, and once more
~ that is all the power it has
flash the red lamp | blink red ball
+ make the red light blink
+ switch the red bulb on and off
+ test the red lamp, on, off, on
+ let that red light flicker
~ if it stays dark, check your contacts
~ stop means stop
~ look at that, it works
flash the green lamp | blink green ball
+ make the green light blink
+ switch the green bulb on and off
+ let the green lamp wink at you
+ try the green light, on and off
~ and go
~ the other one, just to be sure
~ both of them, what a relief
lift the purple plate | up purple plate
+ take the purple cover up
+ lift that purple lid
+ pull the purple board up and away
+ hoist the purple panel
~ now you can see inside
~ we only needed that for protection
~ it comes off quite easily
raise the green rod | up green rod
+ put the green mast up
+ raise the green pole upwards
+ erect that green stick
+ bring the green post up high
~ the wind is better up there
~ deep enough that it will not fall over
~ mine is a bamboo cane, to be honest
slide the pink star in from the left | right pink star
+ bring the pink star across from the left
+ push that pink flower shape in, left to right
+ move the rosy star over from the left side
+ float the pink star in from my left
~ this was cut from an old bottle
~ the blades are sharp, so watch out
~ it goes in front of everything
tap the orange rod | tap orange rod
+ tap the orange pin in with a hammer
+ knock on that orange stick
+ give the orange peg a few taps
+ drive the orange rod in with little hits
~ not too far, it must still move
~ a nail would do as well
~ three or four times, then stop
spin the pink star | spin pink star
+ make the pink star whirl
+ turn that pink star like a propeller
+ let the pink pinwheel go round
+ give the rosy star a spin
~ it should catch the slightest breeze
~ hypnotic, is it not
~ if it wobbles, bend one blade
puff up the turquoise ball | pump turquoise ball
+ blow up the teal balloon
+ inflate that turquoise ball
+ pump air in and out of the teal bulb
+ let the turquoise balloon swell
~ that is our wind for today
~ do not burst it
~ take a deep breath
slide the purple plate in from the right | left purple plate
+ bring the purple sheet over from the right
+ push that violet card in, right to left
+ move the purple board across from my right
+ feed the purple panel in from the right hand side
~ any thick paper will do
~ the shiny side must face up
~ straight, or it will look crooked
drop the orange ring | down orange ring
+ drop the orange hoop right on top
+ let the orange ring drop from above
+ let that orange loop drop
+ put the orange frame down on it
~ this decides how large it gets
~ right in the centre, please
~ it marks the edge for us
squeeze the red block | pump red block
+ press the red stamp hard
+ squash the red cube
+ give that red block a squeeze
+ push the red brick together with both hands
~ count to ten
~ lean on it with all your weight
~ this is what makes the pattern
lift the orange ring | up orange ring
+ take the orange hoop off, upwards
+ raise that orange ring again
+ lift that orange ring up and away
+ pick the orange loop up
~ moment of truth
~ it should come away clean
~ we do not need it any more
shake the yellow star | shake yellow star
+ rattle the yellow star
+ wave that golden star about
+ shake the glitter off the yellow star
+ shake that yellow star from side to side
~ now it sparkles everywhere, sorry carpet
~ the loose bits must come off
~ there, is it not handsome
flash the blue lamp | blink blue ball
+ turn the blue light on and off
+ make that blue bulb blink
+ pulse the blue lamp over it
+ give it a few flashes of blue light
~ this hardens the varnish
~ do not look straight into it
~ a minute is more than enough
lift the turquoise plate | up turquoise plate
+ take the turquoise seat off, upwards
+ raise that turquoise board
+ pull the turquoise panel up
+ lift the teal seat away
~ underneath you see the trouble
~ four screws, and they were all loose
~ put it somewhere safe
push the green rod in from the left | right green rod
+ feed the green leg in from the left
+ shove that green stick in, left to right
+ bring the green rod across from my left
+ push the green dowel rod in from the left side
~ the new one is a hair thicker
~ with glue, of course
~ it goes where the old one broke
tap the green rod | tap green rod
+ tap the green leg, a rod really, until it is home
+ knock that green stick in
+ give the green dowel some taps
+ hit the green rod with the mallet
~ use a bit of wood in between
~ until it is flush
~ the neighbours will complain
lower the turquoise plate | down turquoise plate
+ lower the turquoise seat down on top
+ let the turquoise board down again
+ set that turquoise panel back down
+ bring the turquoise seat down from above
~ back where it came from
~ mind that the holes line up
~ and it is whole again
rock the turquoise plate | shake turquoise plate
+ wobble the turquoise board to test it
+ tilt that turquoise board to and fro
+ rock the turquoise seat, left and right
+ rock the turquoise seat back and forth
~ does it move, no, it does not
~ solid as a rock
~ this is how I know that it will hold
spin the purple wheel | spin purple wheel
+ give the purple castor a turn
+ make that purple wheel go round
+ whirl the purple wheel with your thumb
+ turn the violet wheel freely
~ you may leave them off, mine rolls away
~ hair gets caught in there all the time
~ smooth enough for me
"""


def _read(block: str) -> dict[str, Keystep]:
    found: dict[str, tuple[Look, list[str], list[str]]] = {}
    plain: list[str] = []
    vague: list[str] = []
    for line in block.strip().splitlines():
        mark, _, text = line.partition(" ")
        if mark == "+":
            plain.append(text)
        elif mark == "~":
            vague.append(text)
        else:
            name, _, look = line.partition(" | ")
            plain, vague = [], []
            found[name] = (Look(*look.split()), plain, vague)
    return {
        name: Keystep(name, look, tuple(said), tuple(hinted))
        for name, (look, said, hinted) in found.items()
    }


KEYSTEPS: dict[str, Keystep] = _read(_KEYSTEPS)
"""All keysteps by name."""

NOW = (
    *("{}", "okay, {}", "so now we {}", "go ahead and {}", "and then you {}", "right, {}"),
    *("next we {}", "here I just {}", "alright, {}"),
)
"""How a keystep is said while it is done."""

SOON = ("in a moment we will {}", "get ready to {}", "coming up next, {}", "then we can {}")
"""How it is said before it is done."""

DONE = ("and that is how you {}", "so all you do is {}", "there, you just {}")
"""How it is said after it was done."""

ASTRAY = (
    *("do not {} yet", "last week I had to {} in the other video", "some folks {} first"),
    *("if you like you could also {}", "my brother would {} at this point"),
)
"""How a keystep is said that is not done here."""

CHAT = (
    *("hello and welcome back to the shed", "it is freezing in here today"),
    *("the cat has been at the biscuits again", "let me know in the comments where you are from"),
    *("sorry about the noise, they are digging up the road", "I had far too much coffee"),
    *("my grandfather had a workshop like this one", "anyway, where was I"),
    *("this took me the whole weekend", "do not forget to subscribe"),
    *("somebody asked about my haircut", "the radio only gets one station out here"),
    *("we have been doing this for ten years now", "thanks to everyone who wrote to me"),
    *("I should really fix that door", "hang on, the phone", "sorry, somebody was at the door"),
    *("you get all of this in any shop", "the camera is on top of a bucket"),
    *("take your time with it", "that looks about right to me", "perfect", "there we go"),
    *("not bad for a beginner", "I am quite happy with that", "as you can see", "and so on"),
    *("safety first, so goggles on", "let us have a closer look", "we are nearly there"),
    *("I keep forgetting how long this takes", "so what do you think"),
    *("a friend of mine does it with his eyes closed", "it is easier than it looks"),
    *("my knees are not what they used to be", "see you next time, bye for now"),
    *("if you made one, send me a picture", "right, that is it for today"),
)
"""Small talk."""
