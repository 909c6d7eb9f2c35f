"""The gazetteer: names of places, their time zones, regions and countries, and the names of languages.

Hand-checked tables instead of a library: GeoNames has 410 of the 652 Chinese names here, in 179 MB, and takes Venice
for the one in Ohio; CLDR has 161. Neither has the usual Chinese names of Hanoi, Cape Town or Seattle. A table is parsed
at its first use, so importing costs next to nothing.
"""
