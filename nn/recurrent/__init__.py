"""Networks over sequences: cells, the loop over them, layers of them, attention, decoders.

A cell is one step: `y, state = cell(x, state)`. `rnn` runs it over a sequence with rows of different
lengths; everything else here is a cell, is made of `rnn`, or decodes what a step predicts.
"""
