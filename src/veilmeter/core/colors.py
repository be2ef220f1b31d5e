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
DARK_PALETTE = (
    "#003A5C",
    "#7A3500",
    "#00513B",
    "#7D5600",
    "#6E3C58",
    "#1F6A93",
    "#2E2E2E",
    "#827A0C",
)  # for more names
