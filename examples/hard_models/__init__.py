"""Models on which a sampler may be wrong without a word: does this one say so?"""
