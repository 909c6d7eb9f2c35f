"""Knowledge of places: their names, time zones, regions and countries, and how Chinese names are spelled elsewhere.

Hand-checked tables instead of a library: GeoNames knows 410 of the 652 Chinese names here in 179 MB and takes Venice
for the one in Ohio, CLDR knows 161; neither knows how Chinese speakers call Hanoi, Cape Town or Seattle. What needs a
table is read when it is first asked for; importing costs next to nothing.
"""
