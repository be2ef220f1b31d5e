"""The colors of figures: Okabe and Ito's, which people with any color vision can distinguish."""

BLUE, ORANGE, GREEN, RED, PURPLE, SKY, YELLOW, GRAY = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#D55E00",
    "#CC79A7",
    "#56B4E9",
    "#F0E442",
    "#767676",
)
BROWN = "#8C613C"  # beside the palette, for an attacker that is compared with all others
PALETTE = (BLUE, RED, GREEN, ORANGE, PURPLE, SKY, GRAY, YELLOW)
