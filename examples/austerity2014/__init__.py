"""The experiments of Korattikara, Chen and Welling (2014), run again and compared with the paper.

Run ``python -m examples.austerity2014``; see README.md beside this file.
"""
