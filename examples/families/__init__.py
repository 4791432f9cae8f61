"""Models as PyMC users write them: does AusterityMH take them, how, and is it faster than NUTS?"""
