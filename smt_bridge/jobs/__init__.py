"""Long jobs on features: where the scores of their finished chunks are kept. nmt/jobs computes them."""
